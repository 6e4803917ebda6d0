"""Each planted defect is found, and nothing else; a healthy database has no findings, nor has the command."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hascheduler.check.finding import FindingKind
from hascheduler.dispatch.decisions import Decision, Dispatch, RecordVerdict, Requeue
from hascheduler.model.documents.leadership import journal_id
from hascheduler.model.documents.verdict import verdict_id
from hascheduler.model.job import fire_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.schema.definition import Definition
from hascheduler.schema.noun import document_of
from hascheduler.schema.schedule import Basis
from tests.integration.check.healthy import AT_ONCE, TIMES, Healthy
from tests.unit.check.test_command import run

Plant = Callable[[Healthy], Awaitable[object]]
MINUTE_MS = 60_000


def insert(collection: str, make: Callable[[Healthy], dict[str, Any]]) -> Plant:
    return lambda healthy: healthy.database[collection].insert_one(make(healthy))


def write(collection: str, id: Any, fields: Callable[[Healthy], dict[str, Any]]) -> Plant:
    return lambda healthy: healthy.database[collection].update_one({"_id": id}, {"$set": fields(healthy)})


def remove(collection: str, id: Callable[[Healthy], Any]) -> Plant:
    return lambda healthy: healthy.database[collection].delete_one({"_id": id(healthy)})


def job(id: str, state: str, ago_ms: int, **fields: Any) -> Plant:
    return insert("jobs", lambda healthy: healthy.job(id, state, ago_ms, **fields))


async def all_of(healthy: Healthy, *plants: Plant) -> None:
    for plant in plants:
        await plant(healthy)


def both(*plants: Plant) -> Plant:
    return lambda healthy: all_of(healthy, *plants)


def schedule(name: str, fields: Callable[[Healthy], dict[str, Any]]) -> Plant:
    return insert("schedules", lambda healthy: healthy.schedule(name, **fields(healthy)))


def entry(decision: Callable[[Healthy], Decision]) -> Plant:
    """The newest of the journal, which nothing says to be applied."""
    return insert("journal", lambda healthy: healthy.entry(6, 3, decision(healthy), through=5))


def definition(**fields: Any) -> Plant:
    return insert("definitions", lambda _: document_of(Definition(name="short", **fields)))


def entry_id(seq: int) -> dict[str, Any]:
    return journal_id("default", seq)


# what is planted → kind, document: words of what and hint
ROWS: dict[str, tuple[Plant, str]] = {
    "a payload grows too large when it is filled": (
        write("schedules", "tick", lambda _: {"render": True, "payload": "${nominal_at}" * 20_000}),
        "payload_too_large schedules/tick: 480002 bytes | 262144 | hascheduler schedule edit",
    ),
    "a fired job is gone": (
        remove("jobs", lambda healthy: fire_job_id("tick", healthy.time(10))),
        "verdict_missing schedules/tick: 1 nominal time | hascheduler schedule backfill tick",
    ),
    "a run of verdicts is gone": (
        remove("verdicts", lambda healthy: verdict_id("tick", healthy.time(40))),
        "verdict_missing schedules/tick: 5 nominal times | backfill",
    ),
    "the cursor has jumped": (
        write("schedules", "tick", lambda healthy: {"cursor_ms": healthy.cursor_ms + 1_000}),
        "verdict_missing schedules/tick: 1 nominal time | backfill",
    ),
    "a skipped time has fired too": (
        insert("jobs", lambda healthy: healthy.fired(42)),
        "verdict_doubled schedules/tick: 1 nominal time | hascheduler schedule verdicts tick",
    ),
    "two runs of one time": (
        insert("verdicts", lambda healthy: healthy.run(43, 44, Verdict.MISSED)),
        "verdict_doubled schedules/tick: 2 nominal times | verdicts tick",
    ),
    "a schedule without decisions": (
        insert("schedules", lambda healthy: healthy.stands()),
        "overdue schedules/stands: a nominal time has been due for | leader",
    ),
    "a past period without decisions": (
        schedule(
            "paused-once",
            lambda healthy: {
                "cursor_ms": healthy.created_ms,
                "since_ms": healthy.now + 10_000_000,
                "past": [healthy.past(healthy.created_ms + 5_000, paused=True)],
            },
        ),
        "overdue schedules/paused-once: leader",
    ),
    "a cursor in the future": (
        schedule(
            "ahead", lambda healthy: {"trigger": {"type": "once", "at_ms": 1}, "cursor_ms": healthy.now + 3_600_000}
        ),
        "cursor_ahead schedules/ahead: s in the future | clocks | hascheduler schedule reset ahead --from now",
    ),
    "dispatched and never started": (
        job("job:x", "dispatched", 20 * MINUTE_MS),
        "not_started jobs/job:x: attempt 1 | 1200 s ago | broker",
    ),
    "held by a processor that is not there": (
        job("job:x", "running", 2 * MINUTE_MS, processor="gone"),
        "orphan_attempt jobs/job:x: attempt 1 is running at processor gone | not registered | leads",
    ),
    "held by no processor": (
        job("job:x", "dispatched", 2 * MINUTE_MS, processor=None),
        "orphan_attempt jobs/job:x: without a processor | leads",
    ),
    "held by a silent processor": (
        both(
            insert("processors", lambda healthy: healthy.processor("silent", silent_ms=200_000)),
            job("job:x", "running", 5 * MINUTE_MS, processor="silent"),
        ),
        "orphan_attempt jobs/job:x: at silent | silent for 200 s | leads",
    ),
    "asked to stop long ago": (
        write("jobs", "job:runs", lambda healthy: {"cancel_requested_at_ms": healthy.now - 20 * MINUTE_MS}),
        "cancel_ignored jobs/job:runs: requested 1200 s ago | handler",
    ),
    "an attempt beyond its timeout": (
        both(definition(timeout_ms=5_000), job("job:x", "running", 5 * MINUTE_MS, definition="short")),
        "overtime jobs/job:x: timeout of attempt 1 (5 s) | 295 s ago | leader",
    ),
    "a thread that goes on after its timeout": (
        insert(
            "jobs",
            lambda healthy: {
                **healthy.job("job:x", "running"),
                "overdue_attempt": 1,
                "overdue_since_ms": healthy.now - 295_000,
            },
        ),
        "overtime jobs/job:x: attempt 1 timed out 295 s ago | its thread | stop_requested",
    ),
    "all attempts beyond their timeout": (
        both(
            definition(total_timeout_ms=5_000),
            insert(
                "jobs",
                lambda healthy: healthy.job(
                    "job:x", "pending", definition="short", attempt=2, first_started_at_ms=healthy.now - 300_000
                ),
            ),
        ),
        "overtime jobs/job:x: total timeout (5 s) | leader",
    ),
    "expired and still waiting": (
        insert("jobs", lambda healthy: healthy.job("job:x", expires_at_ms=healthy.now - 90_000)),
        "expired jobs/job:x: 90 s ago | leader",
    ),
    "a retry that is long due beside free slots": (
        insert(
            "jobs",
            lambda healthy: healthy.job("job:x", "pending", 60 * MINUTE_MS, retry_at_ms=healthy.now - 20 * MINUTE_MS),
        ),
        "waiting_in_vain jobs/job:x: due for 1200 s | p1 has 6 of 8 slots free | hascheduler why job:x",
    ),
    "it waits for one that failed": (
        both(
            job("job:bad", "failed", 5 * MINUTE_MS),
            job("job:x", "pending", 5 * MINUTE_MS, waits_for=["job:done", "job:bad"]),
        ),
        "dependent_stranded jobs/job:x: it waits for job:bad, which failed 300 s ago | hascheduler why job:x",
    ),
    "it waits for a batch of which one failed": (
        both(
            job("job:ok", "succeeded", 6 * MINUTE_MS, batch="batch:b"),
            job("job:bad", "cancelled", 5 * MINUTE_MS, batch="batch:b"),
            job("job:x", "pending", 5 * MINUTE_MS, waits_for=["job:x", "batch:b"]),
        ),
        "dependent_stranded jobs/job:x: batch:b (job job:bad) | cancelled 300 s ago | retry job:bad",
    ),
    "a job of a state that there is not": (
        job("job:x", "sleeping", 1_000),
        "unknown_state jobs/job:x: sleeping | submit it again",
    ),
    "a job without a state": (insert("jobs", lambda _: {"_id": "job:x"}), "unknown_state jobs/job:x: None | MongoDB"),
    "a job of another release": (job("job:x", "pending", 1_000, v=99), "unknown_form jobs/job:x: form 99 | release"),
    "a job with a broken field": (
        job("job:x", "pending", 1_000, priority="high"),
        "unreadable jobs/job:x: priority | submit it again",
    ),
    "a schedule with a broken trigger": (
        schedule("bad", lambda _: {"trigger": {"type": "moon"}}),
        "unreadable schedules/bad: moon | hascheduler apply",
    ),
    "a schedule whose cron can't be read": (
        schedule("bad", lambda _: {"trigger": {"type": "cron", "expression": "x", "timezone": "UTC"}}),
        "unreadable schedules/bad: hascheduler apply",
    ),
    "an unknown version of the database": (
        insert("meta", lambda _: {"_id": "schema", "version": 99, "rev": 1}),
        "unknown_form meta/schema: 99 | release",
    ),
    "entries of the journal are gone": (
        remove("journal", lambda _: entry_id(4)),
        "journal_gap journal/default/4: 1 entries between 3 and 5 | backup",
    ),
    "the term falls": (
        insert("journal", lambda healthy: healthy.entry(6, 2, Dispatch("job:runs", 1, "p1"))),
        "journal_order journal/default/6: entry 6 of term 2 follows entry 5 of term 3 | fence",
    ),
    "a term begins twice": (
        insert("journal", lambda healthy: healthy.entry(6, 3)),
        "journal_order journal/default/6: term 3 begins in entry 6 | fence",
    ),
    "two holders of one term": (
        insert("journal", lambda healthy: healthy.entry(6, 3, Dispatch("job:runs", 1, "p1")) | {"holder": "r9"}),
        "journal_order journal/default/6: by r3 and r9 | fence",
    ),
    "an unapplied decision": (
        entry(lambda _: Dispatch("job:waits", 1, "p1")),
        "journal_unapplied journal/default/6: 1 of 1 decisions | dispatch job:waits, attempt 1 | restart",
    ),
    "an unapplied requeue": (
        entry(lambda _: Requeue("job:runs", 1, "lost")),
        "journal_unapplied journal/default/6: requeue job:runs | restart",
    ),
    "an unapplied fire": (
        entry(lambda healthy: healthy.fire(TIMES + 1)),
        "journal_unapplied journal/default/6: fire fire:tick: | restart",
    ),
    "the lease is behind the journal": (
        write("leases", "default", lambda _: {"term": 1, "holder": "r3"}),
        "lease_term leases/default: the lease is at term 1 | term 3 | by hand",
    ),
    "a term that was won and never begun": (
        write("leases", "default", lambda _: {"term": 4, "holder": "r3"}),
        "lease_term leases/default: has held term 4 | it has not begun | end it",
    ),
    "a lease of another holder": (
        write("leases", "default", lambda _: {"holder": "r8"}),
        "lease_term leases/default: r8 holds term 3 | r3 wrote | by hand",
    ),
    "a lease without renewals": (
        write("leases", "default", lambda healthy: {"renewed_at_ms": healthy.now - 300_000}),
        "nobody_leads leases/default: 300 s ago | by r3 | MongoDB",
    ),
    "a processor of a shard without a leader": (
        insert("processors", lambda healthy: healthy.processor("p9", shard="moon")),
        "unknown_shard processors/p9: 'moon' | HASCHEDULER_SHARD",
    ),
    "replicas with other time-zone data": (
        both(
            insert("replicas", lambda healthy: healthy.replica("r4", zone_data="2025b")),
            insert("replicas", lambda healthy: healthy.replica("r5", zone_data="2026f")),
        ),
        "zone_data_differ replicas: 2025b: r4 | 2026f: r5 | one image",
    ),
    "a processor that never goes": (
        write("processors", "p1", lambda _: {"expire_at": None}),
        "not_expired processors/p1: no expire_at | deleteOne",
    ),
    "an index is missing": (
        lambda healthy: healthy.database.jobs.drop_index("batch_submitted"),
        "index jobs.batch_submitted: missing | hascheduler migrate",
    ),
    "an index of another shape": (
        both(
            lambda healthy: healthy.database.jobs.drop_index("batch_submitted"),
            lambda healthy: healthy.database.jobs.create_index("batch", name="batch_submitted"),
        ),
        'index jobs.batch_submitted: dropIndex("batch_submitted")',
    ),
    "a collection is missing": (
        lambda healthy: healthy.database.drop_collection("buckets"),
        "index buckets: missing | hascheduler migrate",
    ),
}


async def test_a_healthy_database_has_no_findings(healthy: Healthy) -> None:
    report = await healthy.scan().run(AT_ONCE)
    assert report.findings == ()
    assert report.counts == {}
    assert report.complete
    assert report.looked_at["fired jobs"] == TIMES - 5


def _holds(text: str, words: str) -> bool:
    """Whether ``text`` has these words. Spans are counted from the moment of the scan, so they may be longer there."""
    span = re.search(r"\d+(?= s\b)", words)
    if span is None:
        return words in text
    pattern = re.escape(words[: span.start()]) + r"(\d+)" + re.escape(words[span.end() :])
    return any(int(found) >= int(span[0]) for found in re.findall(pattern, text))


@pytest.mark.parametrize("row", ROWS)
async def test_each_planted_defect_is_found_and_nothing_else(healthy: Healthy, row: str) -> None:
    plant, expected = ROWS[row]
    found, _, words = expected.partition(": ")
    await plant(healthy)
    report = await healthy.scan().run(AT_ONCE)
    assert [f"{finding.kind} {finding.document}" for finding in report.findings] == [found]
    [finding] = report.findings
    text = f"{finding.what} {finding.hint}"
    assert all(_holds(text, word) for word in words.split(" | ")), text
    assert report.counts == {finding.kind.value: 1}
    assert report.complete


async def test_two_jobs_of_one_idempotency_key_are_found_where_no_index_keeps_them_apart(healthy: Healthy) -> None:
    await healthy.database.jobs.drop_index("idempotency_key")
    for id in ("job:x", "job:y"):
        await healthy.database.jobs.insert_one(healthy.job(id, idempotency_key="k", request_hash="h"))
    report = await healthy.scan().run(AT_ONCE)
    assert {finding.kind for finding in report.findings} == {FindingKind.INDEX, FindingKind.IDEMPOTENCY_DOUBLED}
    [doubled] = [finding for finding in report.findings if finding.kind is FindingKind.IDEMPOTENCY_DOUBLED]
    assert doubled.document == "jobs/job:x"
    assert "2 jobs have the idempotency key 'k' of 'acme'" in doubled.what


async def test_a_document_that_expired_long_ago_is_found(healthy: Healthy) -> None:
    admin = healthy.database.client.admin
    await admin.command({"setParameter": 1, "ttlMonitorEnabled": False})
    try:
        await healthy.database.jobs.insert_one(
            healthy.job("job:x", "succeeded", 1_000, expire_at=healthy.expire_at(-7_200_000))
        )
        [finding] = (await healthy.scan().run(AT_ONCE)).findings
    finally:
        await admin.command({"setParameter": 1, "ttlMonitorEnabled": True})
    assert (finding.kind, finding.document) == (FindingKind.NOT_EXPIRED, "jobs/job:x")
    assert "ttlMonitorEnabled" in finding.hint


async def test_an_unapplied_verdict_is_found_by_its_schedule(healthy: Healthy) -> None:
    number = TIMES + 1
    run = VerdictRun("tick", Verdict.MISSED, healthy.time(number), healthy.time(number), 1)
    decision = RecordVerdict(run, Basis(healthy.time(TIMES), WallMs(healthy.created_ms)))
    await healthy.database.journal.insert_one(healthy.entry(6, 3, decision, through=5))
    [finding] = (await healthy.scan().run(AT_ONCE)).findings
    assert finding.kind is FindingKind.JOURNAL_UNAPPLIED
    assert "missed tick" in finding.what
    # An edit revokes it: those times are decided again.
    await healthy.database.schedules.update_one({"_id": "tick"}, {"$set": {"since_ms": healthy.now}})
    assert (await healthy.scan().run(AT_ONCE)).findings == ()


async def test_a_healthy_database_is_status_0_and_a_broken_one_status_1(mongodb_uri: str, healthy: Healthy) -> None:
    name = healthy.database.name
    ended = run(name, "--mongodb-uri", mongodb_uri)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("no problems found; ")
    await healthy.database.jobs.insert_one(healthy.job("job:[red]x", "sleeping"))
    ended = run(name, "--mongodb-uri", mongodb_uri)
    assert ended.returncode == 1
    # Such a document may hold markup.
    assert "unknown_state  jobs/job:[red]x" in ended.stdout
    assert "→ it neither runs nor ends" in ended.stdout
    assert "unknown_state 1; " in ended.stdout
    ended = run(name, "--mongodb-uri", mongodb_uri, "--json")
    assert ended.returncode == 1
    answer = json.loads(ended.stdout)
    assert (answer["database"], answer["counts"], answer["complete"]) == (name, {"unknown_state": 1}, True)
    [finding] = answer["findings"]
    assert set(finding) == {"kind", "document", "what", "since", "hint"}
    assert (finding["kind"], finding["document"]) == ("unknown_state", "jobs/job:[red]x")
