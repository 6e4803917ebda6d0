"""A scan of a large database is bounded, uses indexes and writes nothing; a leader's scans take turns."""

import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.check.finding import FINDINGS_KEPT_MAX, SUSPECTS_MAX, FindingKind
from hascheduler.mongo.connection import CLIENT_OPTIONS, Client, Database, open_database
from hascheduler.ports.invariant_scan import LIGHT
from tests.integration.check.healthy import AT_ONCE, EVERY_MS, Healthy
from tests.sent_commands import SentCommands, stages_of

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
        report = await scan.look(AT_ONCE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.findings == ()
    assert report.complete
    # The older ones may have expired by a clock that is ahead: nothing is said of them.
    assert 40_000 < report.looked_at["fired jobs"] <= FINISHED // 2 + 115
    assert peak < 30 * MEGABYTE
    await healthy.database.jobs.delete_one({"_id": f"fire:busy:{healthy.cursor_ms - 1_000 * EVERY_MS}"})
    [finding] = (await scan.look(AT_ONCE)).findings
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
        assert (await watched.scan().look(bounds)).counts == {"orphan_attempt": 1}
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
    report = await healthy.scan().look(AT_ONCE)
    assert report.counts == {"orphan_attempt": SUSPECTS_MAX, "unreadable": 300}
    assert len(report.findings) == 2 * FINDINGS_KEPT_MAX
    assert not report.complete


async def test_a_leaders_scans_take_turns_with_the_schedules(healthy: Healthy) -> None:
    names = [f"s{number:02d}" for number in range(10)]
    await healthy.database.schedules.insert_many(
        [healthy.schedule(name, trigger={"type": "interval", "every_ms": 60_000, "anchor_ms": 0}) for name in names]
    )
    bounds = replace(LIGHT, compared_max=3, pause_s=0.0, look_again_s=0.0)
    scan = healthy.scan()
    found: list[set[str]] = []
    for _ in range(5):
        report = await scan.look(bounds)
        found.append({finding.document for finding in report.findings})
        assert {finding.kind for finding in report.findings} == {FindingKind.VERDICT_MISSING}
    # None of them has a verdict, but for the one that is healthy; each look finds the next three.
    expected = [f"schedules/{name}" for name in names]
    assert set().union(*found) == set(expected)
    assert found[0] == set(expected[:3])
    assert all(len(some) <= 3 for some in found)


async def test_a_scan_out_of_time_is_incomplete_and_the_next_one_continues(healthy: Healthy) -> None:
    report = await healthy.scan().look(replace(LIGHT, limit_s=0.0, look_again_s=0.0))
    assert not report.complete
    assert report.findings == ()


async def test_of_a_schedule_with_too_many_times_the_newest_are_compared(healthy: Healthy) -> None:
    """An interval of a millisecond was written by hand."""
    await healthy.database.schedules.insert_one(
        healthy.schedule("mad", trigger={"type": "interval", "every_ms": 1, "anchor_ms": 0})
    )
    [finding] = (await healthy.scan().look(replace(AT_ONCE, times_max=1_000))).findings
    assert (finding.kind, finding.document) == (FindingKind.VERDICT_MISSING, "schedules/mad")
    assert int(finding.what.split()[0]) <= 1_000
