"""A document in motion is no finding; a scan is bounded, uses indexes, writes nothing, and takes turns."""

import tracemalloc
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.check.finding import FINDINGS_KEPT_MAX, SUSPECTS_MAX, FindingKind
from hascheduler.model.documents.leadership import encode_hold
from hascheduler.model.partition import Hold, partition_key, partition_of
from hascheduler.mongo.check.scan import Deployment, MongoInvariantScan
from hascheduler.mongo.connection import CLIENT_OPTIONS, Client, Database, open_database
from hascheduler.ports.invariant_scan import LIGHT
from hascheduler.schema.noun import document_of
from hascheduler.schema.pause import drain_id
from tests.factories import make_pause
from tests.integration.check.healthy import AT_ONCE, CONFIG, EVERY_MS, Healthy
from tests.sent_commands import SentCommands, stages_of

MINUTE_MS = 60_000


class MovingScan(MongoInvariantScan):
    """Before its second scan, ``motion`` happens."""

    motion: Callable[[], Awaitable[Any]]

    async def _new_pass(self, bounds: Any, progress: Any, into: Any) -> Any:
        if self._scans:
            await self.motion()
        self._scans += 1
        return await super()._new_pass(bounds, progress, into)

    _scans = 0


MOTIONS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "an attempt that is taken back": (
        "jobs",
        {"state": "running", "processor": "gone", "attempt": 1},
        {"state": "pending", "processor": None, "rev": 9},
    ),
    "an attempt that is given to another": (
        "jobs",
        {"state": "running", "processor": "gone", "attempt": 1},
        {"processor": "gone-too", "attempt": 2, "rev": 9},
    ),
    "a lease that is renewed after all": ("leases", {"renewed_at_ms": 0}, {"renewals": 77}),
    "a term that begins": ("leases", {"term": 1}, {"term": 3}),
}


@pytest.mark.parametrize("row", MOTIONS)
async def test_a_document_that_changes_between_two_scans_is_no_finding(healthy: Healthy, row: str) -> None:
    collection, before, after = MOTIONS[row]
    id = "job:runs" if collection == "jobs" else "default"
    ago = {"dispatched_at_ms": healthy.now - 5 * MINUTE_MS} if collection == "jobs" else {}
    documents = healthy.database[collection]
    await documents.update_one({"_id": id}, {"$set": before | ago})
    assert (await healthy.scan().run(AT_ONCE)).findings != ()
    scan = MovingScan(healthy.database, Deployment(CONFIG, "default"))
    scan.motion = lambda: documents.update_one({"_id": id}, {"$set": after})
    assert (await scan.run(AT_ONCE)).findings == ()


async def test_nothing_is_overdue_where_no_replica_could_decide(healthy: Healthy) -> None:
    """A missing leader is one finding, not one for every schedule."""
    await healthy.database.schedules.insert_one(healthy.stands())
    await healthy.database.replicas.delete_many({})
    await healthy.database.leases.update_one({"_id": "default"}, {"$set": {"renewed_at_ms": healthy.now - 300_000}})
    assert (await healthy.scan().run(AT_ONCE)).counts == {"nobody_leads": 1}


async def test_a_local_time_is_not_overdue_if_a_replica_has_other_zone_data(healthy: Healthy) -> None:
    local = {"type": "cron", "expression": "* 0-23 * * *", "timezone": "Europe/Paris"}
    await healthy.database.schedules.insert_many([healthy.stands("instants"), healthy.stands("local", trigger=local)])
    assert (await healthy.scan().run(AT_ONCE)).counts == {"overdue": 2}
    await healthy.database.replicas.insert_one(healthy.replica("r4", zone_data="1999a"))
    [overdue] = (await healthy.scan().run(AT_ONCE)).findings
    assert (overdue.kind, overdue.document) == (FindingKind.OVERDUE, "schedules/instants")


async def test_what_people_have_paused_is_neither_overdue_nor_waits_in_vain(healthy: Healthy) -> None:
    await healthy.database.schedules.insert_one(healthy.stands())
    await healthy.database.jobs.insert_one(healthy.job("job:x", "pending", 60 * MINUTE_MS))
    assert (await healthy.scan().run(AT_ONCE)).counts == {"overdue": 1, "waiting_in_vain": 1}
    pauses, everything = healthy.database.pauses, document_of(make_pause(rev=1))
    await pauses.insert_one(everything)
    assert (await healthy.scan().run(AT_ONCE)).findings == ()
    await pauses.replace_one({}, {**everything, "schedules_only": True})
    assert (await healthy.scan().run(AT_ONCE)).counts == {"waiting_in_vain": 1}
    registered = await healthy.database.processors.find().to_list(None)
    drains = [make_pause(drain_id(name), rev=1) for name in sorted({each["name"] for each in registered})]
    await pauses.insert_many([document_of(drain) for drain in drains])
    assert (await healthy.scan().run(AT_ONCE)).findings == ()


YOUNG: dict[str, Callable[[Healthy], dict[str, Any]]] = {
    "dispatched a while ago": lambda healthy: healthy.job("job:x", "dispatched", 5 * MINUTE_MS),
    "at a processor that has just gone": lambda healthy: healthy.job("job:x", "running", 30_000, processor="gone"),
    "asked to stop a while ago": lambda healthy: healthy.job(
        "job:x", "running", cancel_requested_at_ms=healthy.now - 5 * MINUTE_MS
    ),
    "expired a moment ago": lambda healthy: healthy.job("job:x", expires_at_ms=healthy.now - 30_000),
    "due for a while": lambda healthy: healthy.job("job:x", "pending", 5 * MINUTE_MS),
    "to be tried again tomorrow": lambda healthy: healthy.job(
        "job:x", "pending", 60 * MINUTE_MS, retry_at_ms=healthy.now + 86_400_000
    ),
    "waits for one that failed a moment ago": lambda healthy: healthy.job("job:x", waits_for=["job:failed"]),
    "waits for one whatever becomes of it": lambda healthy: healthy.job(
        "job:x", "pending", 5 * MINUTE_MS, waits_for=["job:failed"], ignores_failures=True
    ),
    "of an unknown definition": lambda healthy: healthy.job("job:x", "running", definition="unheard-of"),
}


@pytest.mark.parametrize("row", YOUNG)
async def test_within_its_grace_nothing_is_a_finding(healthy: Healthy, row: str) -> None:
    await healthy.database.jobs.insert_one(YOUNG[row](healthy))
    assert (await healthy.scan().run(AT_ONCE)).findings == ()


CAPPED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "by its definition": ({"max_concurrency": 1}, {}),
    "by its rate": ({"rate_limit": {"count": 1, "per_ms": 1_000}}, {}),
    "by its tier": ({"tier": 4}, {}),
    "by its conflict group": ({"conflict_group": "g"}, {}),
    "by what it needs": ({"resources": {"gpu": 1_000}}, {}),
    "by what it says itself that it needs": ({}, {"resources": {"gpu": 1_000}}),
    "by its schedule": ({}, {"serial": True}),
}


@pytest.mark.parametrize("row", CAPPED)
async def test_a_job_that_some_limit_may_hold_back_does_not_wait_in_vain(healthy: Healthy, row: str) -> None:
    definition, fields = CAPPED[row]
    await healthy.database.definitions.update_one({"_id": "log"}, {"$set": definition})
    await healthy.database.jobs.insert_one(healthy.job("job:x", "pending", 60 * MINUTE_MS, **fields))
    report = await healthy.scan().run(AT_ONCE)
    assert report.findings == ()


async def test_verdicts_that_have_expired_are_not_missed(healthy: Healthy) -> None:
    """The oldest fires are gone, and what is still there says that it is kept for no longer."""
    await healthy.database.jobs.delete_many({"_id": {"$lte": f"fire:tick:{healthy.time(30)}"}, "schedule": "tick"})
    deleted = healthy.job("job:deleted", "failed", expire_at=healthy.expire_at(MINUTE_MS), deleted_at_ms=healthy.now)
    await healthy.database.jobs.insert_one(deleted)  # it says nothing about how long others are kept
    assert (await healthy.scan().run(AT_ONCE)).counts == {"verdict_missing": 1}
    kept_ms = 300_000
    assert (await healthy.scan(config=replace(CONFIG, job_retention_ms=kept_ms)).run(AT_ONCE)).findings == ()
    await healthy.database.jobs.update_many(
        {"schedule": "tick"}, [{"$set": {"expire_at": {"$add": [{"$toDate": "$finished_at_ms"}, kept_ms]}}}]
    )
    assert (await healthy.scan().run(AT_ONCE)).findings == ()


async def test_times_of_an_earlier_trigger_are_compared_with_it(healthy: Healthy) -> None:
    """An edit a while ago: what was in force before it and undecided then is past, and decided since."""
    edited_ms = healthy.time(60) + 500
    trigger = {"type": "interval", "every_ms": 2_000, "anchor_ms": healthy.time(60)}
    edit = {"past": [healthy.past(edited_ms)], "since_ms": edited_ms, "trigger": trigger}
    await healthy.database.schedules.update_one({"_id": "tick"}, {"$set": edit})
    assert (await healthy.scan().run(AT_ONCE)).findings == ()
    await healthy.database.jobs.delete_one({"_id": f"fire:tick:{healthy.time(61)}"})
    assert (await healthy.scan().run(AT_ONCE)).findings == ()
    await healthy.database.jobs.delete_one({"_id": f"fire:tick:{healthy.time(59)}"})
    assert (await healthy.scan().run(AT_ONCE)).counts == {"verdict_missing": 1}


async def test_after_max_fires_a_schedule_owes_no_verdicts(healthy: Healthy) -> None:
    """The cursor is carried on by an edit; what lies behind the last of ``max_fires`` was never in force."""
    edit = {"past": [healthy.past(healthy.time(60), max_fires=30)], "since_ms": healthy.time(60)}
    await healthy.database.schedules.update_one({"_id": "tick"}, {"$set": edit})
    gone = [f"fire:tick:{healthy.time(number)}" for number in range(31, 61)]
    await healthy.database.jobs.delete_many({"_id": {"$in": gone}})
    await healthy.database.verdicts.delete_many({})
    assert (await healthy.scan().run(AT_ONCE)).findings == ()
    await healthy.database.jobs.delete_one({"_id": f"fire:tick:{healthy.time(20)}"})
    assert (await healthy.scan().run(AT_ONCE)).counts == {"verdict_missing": 1}


async def test_times_are_compared_unless_their_partition_is_held(healthy: Healthy) -> None:
    await healthy.database.verdicts.delete_many({})
    await healthy.database.jobs.delete_many({"state": "succeeded"})
    schedule = await healthy.database.schedules.find_one({"_id": "tick"})
    assert schedule is not None
    key = partition_key(partition_of(schedule["job"]["tenant"]))
    holds = healthy.database["holds"]
    await holds.insert_one({"_id": 5, "held": True})
    other = partition_key(partition_of(schedule["job"]["tenant"]) ^ 1)
    await holds.insert_one(encode_hold(Hold(other, 1, is_held=True)))
    for rev, is_held in ((1, False), (2, True), (3, False)):
        await holds.replace_one({"_id": key}, encode_hold(Hold(key, rev, is_held=is_held)), upsert=True)
        report = await healthy.scan().run(AT_ONCE)
        is_missing = (FindingKind.VERDICT_MISSING, "schedules/tick") in [finding.key for finding in report.findings]
        assert is_missing is not is_held


pytestmark = [pytest.mark.timeout(300)]

FINISHED = 100_000
MEGABYTE = 1_000_000


async def filled(healthy: Healthy) -> None:
    """Finished jobs, half of them of a schedule, all with a payload that must not travel."""
    database = healthy.database
    first_ms = healthy.cursor_ms - FINISHED // 2 * EVERY_MS
    await database.schedules.insert_one(healthy.schedule("busy", created_at_ms=first_ms, since_ms=first_ms))
    payload = {"big": "x" * 500}
    for start in range(0, FINISHED // 2, 10_000):
        jobs = []
        for number in range(start, start + 10_000):
            at_ms = first_ms + (number + 1) * EVERY_MS
            ago_ms = healthy.now - at_ms
            jobs.append(healthy.job(f"fire:busy:{at_ms}", "succeeded", ago_ms, payload=payload, schedule="busy"))
            jobs.append(healthy.job(f"job:{number:07d}", "succeeded", ago_ms, payload=payload))
        await database.jobs.insert_many(jobs, ordered=False)


async def test_a_hundred_thousand_finished_jobs_are_scanned_in_constant_memory(healthy: Healthy) -> None:
    await filled(healthy)
    scan = healthy.scan()
    tracemalloc.start()
    try:
        report = await scan.run(AT_ONCE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.findings == ()
    assert report.complete
    # The older ones may have expired by a clock that is ahead: nothing is said of them.
    assert 40_000 < report.looked_at["fired jobs"] <= FINISHED // 2 + 115
    assert peak < 30 * MEGABYTE
    await healthy.database.jobs.delete_one({"_id": f"fire:busy:{healthy.cursor_ms - 1_000 * EVERY_MS}"})
    [finding] = (await scan.run(AT_ONCE)).findings
    assert (finding.kind, finding.document) == (FindingKind.VERDICT_MISSING, "schedules/busy")


@pytest.mark.usefixtures("new_database")
async def test_every_read_is_a_range_of_an_index_and_nothing_is_written(mongodb_uri: str, healthy: Healthy) -> None:
    commands = SentCommands()
    client: Client = Client(mongodb_uri, **CLIENT_OPTIONS, event_listeners=[commands])
    await healthy.database.jobs.insert_many([healthy.job(f"job:{number:05d}", "succeeded") for number in range(2_000)])
    # What is found is read again by its id.
    await healthy.database.jobs.insert_one(healthy.job("job:x", "running", 200_000, processor="gone"))
    watched = Healthy(open_database(client, healthy.database.name), healthy.now)
    for bounds in (AT_ONCE, LIGHT):
        assert (await watched.scan().run(bounds)).counts == {"orphan_attempt": 1}
    await client.close()
    names = {next(iter(command)) for command in commands.sent}
    assert names <= {"hello", "listCollections", "listIndexes", "find", "getMore", "killCursors", "endSessions"}
    finds = [command for command in commands.sent if "find" in command]
    assert {command["find"] for command in finds} >= {"jobs", "schedules", "verdicts", "journal", "leases"}
    again = [command["filter"] for command in finds if command["filter"].get("_id") == {"$in": ["job:x"]}]
    assert len(again) == 2
    for command in finds:
        await demand_index(healthy.database, command)
    assert all(command["readConcern"]["level"] == "majority" for command in finds)


async def demand_index(database: Database, command: Mapping[str, Any]) -> None:
    kept = ("find", "filter", "projection", "sort", "limit", "skip", "hint")
    asked = {name: command[name] for name in kept if name in command}
    plan = (await database.command({"explain": asked, "verbosity": "queryPlanner"}))["queryPlanner"]["winningPlan"]
    stages = stages_of(plan)
    # What is small is read from its beginning to its end, in the order of its ids.
    assert not {stage["stage"] for stage in stages} & {"COLLSCAN", "SORT"}, (asked, plan)
    if asked["find"] == "jobs" and set(asked.get("projection") or ["all"]) <= {"_id", "tenant"}:
        assert not any(stage["stage"] == "FETCH" for stage in stages), plan


async def test_the_report_is_bounded_however_much_is_broken(healthy: Healthy) -> None:
    many = SUSPECTS_MAX + 200
    await healthy.database.jobs.insert_many(
        [healthy.job(f"job:{number:05d}", "running", 200_000, processor="gone") for number in range(many)]
    )
    await healthy.database.tokens.insert_many([{"_id": f"t{number}", "id": f"t{number}"} for number in range(300)])
    report = await healthy.scan().run(AT_ONCE)
    assert report.counts == {"orphan_attempt": SUSPECTS_MAX, "unreadable": 300}
    assert len(report.findings) == 2 * FINDINGS_KEPT_MAX
    assert not report.complete


async def test_a_leaders_scans_take_turns_with_the_schedules(healthy: Healthy) -> None:
    names = [f"s{number:02d}" for number in range(10)]
    await healthy.database.schedules.insert_many(
        [healthy.schedule(name, trigger={"type": "interval", "every_ms": 60_000, "anchor_ms": 0}) for name in names]
    )
    bounds = replace(LIGHT, compared_max=3, pause_s=0.0, recheck_after_s=0.0)
    scan = healthy.scan()
    found: list[set[str]] = []
    for _ in range(5):
        report = await scan.run(bounds)
        found.append({finding.document for finding in report.findings})
        assert {finding.kind for finding in report.findings} == {FindingKind.VERDICT_MISSING}
    # None of them has a verdict, but for the one that is healthy; each scan finds the next three.
    expected = [f"schedules/{name}" for name in names]
    assert set().union(*found) == set(expected)
    assert found[0] == set(expected[:3])
    assert all(len(some) <= 3 for some in found)


async def test_a_scan_out_of_time_is_incomplete_and_the_next_one_continues(healthy: Healthy) -> None:
    report = await healthy.scan().run(replace(LIGHT, limit_s=0.0, recheck_after_s=0.0))
    assert not report.complete
    assert report.findings == ()


async def test_of_a_schedule_with_too_many_times_the_newest_are_compared(healthy: Healthy) -> None:
    """An interval of a millisecond was written by hand."""
    await healthy.database.schedules.insert_one(
        healthy.schedule("mad", trigger={"type": "interval", "every_ms": 1, "anchor_ms": 0})
    )
    [finding] = (await healthy.scan().run(replace(AT_ONCE, times_max=1_000))).findings
    assert (finding.kind, finding.document) == (FindingKind.VERDICT_MISSING, "schedules/mad")
    assert int(finding.what.split()[0]) <= 1_000
