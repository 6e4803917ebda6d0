"""A time without any replica: afterwards each nominal time has one verdict, by the schedule's own policy."""

import asyncio
import time
from typing import Any

import pytest

from hascheduler.model.values.instants import parse_instant
from tests.system.processes import Processes, eventually
from tests.system.replicas.accounts import counted, decided, times_of, verdicts
from tests.tiers import in_tier

OUTAGE_S = in_tier(check=20, test=20, long=60)
GRACE_MS = 5_000
EVERY_MS = 1_000
LIMIT = 10
MISFIRES: dict[str, dict[str, Any]] = {
    "none": {"grace": "5s", "catch_up": "none"},
    "latest": {"grace": "5s", "catch_up": "latest"},
    "all": {"grace": "5s", "catch_up": "all"},
    "few": {"grace": "5s", "catch_up": "all", "limit": LIMIT},
    "cron": {"grace": "5s", "catch_up": "latest"},
    "patient": {"grace": "10m", "catch_up": "none"},
}


@pytest.mark.timeout(240)
async def test_after_a_time_without_replicas_each_nominal_time_has_its_verdict(processes: Processes) -> None:
    await processes.together("one", "two")
    await processes.processor("worker", slots=64)
    for name, misfire in MISFIRES.items():
        interval = {"type": "interval", "every": "1s"}
        trigger = {"type": "cron", "expression": "* * * * * *"} if name == "cron" else interval
        job = {"definition": "log"}
        await processes.post("/v1/schedules", {"name": name, "trigger": trigger, "misfire": misfire, "job": job})
    await eventually(lambda: _all_fired(processes, 2), "all fire")
    for replica in list(processes.replicas.values()):
        await replica.kill()
    down_ms = time.time() * 1_000
    # Real time has to pass: that it does is what is tried here.
    await asyncio.sleep(OUTAGE_S)
    # One of them may have led for a moment after the other was killed.
    _, term = await processes.holder()
    # The first of them may lead before the second is there.
    begun_ms = time.time() * 1_000
    await processes.together("one", "two")
    _, next_term = await processes.leader(not_in_term=term)
    began = await processes.database.journal.find_one({"term": next_term, "kind": "term_began"})
    assert began is not None
    await eventually(lambda: _all_fired(processes, 4), "all fire again")
    records = {}
    for name in MISFIRES:
        schedule = await decided(processes, name)
        records[name] = await verdicts(processes, name)
        _check_each_has_one(schedule, records[name])
    processes.assert_no_effect_twice()

    late = {name: _between(found, down_ms, begun_ms - GRACE_MS) for name, found in records.items()}
    assert {record["verdict"] for record in late["none"]} == {"missed"}
    for name in ("latest", "cron"):
        assert {record["verdict"] for record in late[name]} == {"coalesced"}
        [into] = {record["into"] for record in late[name]}
        fired = [record["nominal_at"] for record in records[name] if record["verdict"] == "fired"]
        assert into == min(at for at in fired if parse_instant(at) > down_ms)
    for name in ("all", "patient"):
        assert counted(records[name]).keys() == {"fired"}
        assert len(late[name]) >= OUTAGE_S - 2 * GRACE_MS / EVERY_MS
    few = counted(records["few"])
    assert few.keys() == {"fired", "missed"}
    # Of the times before there was a leader again, those of the grace at its end are not late.
    caught_up = [one for one in _between(records["few"], down_ms, began["at_ms"]) if one["verdict"] == "fired"]
    assert 0 < len(caught_up) <= LIMIT + GRACE_MS // EVERY_MS


def _between(records: list[dict[str, Any]], after_ms: float, before_ms: float) -> list[dict[str, Any]]:
    """Those with a time after the one instant that begin before the other."""
    return [
        record
        for record in records
        if after_ms < parse_instant(record["through_at"]) and parse_instant(record["nominal_at"]) < before_ms
    ]


async def _all_fired(processes: Processes, at_least: int) -> bool:
    counts = [(await processes.get(f"/v1/schedules/{name}"))["counts"]["fired"] for name in MISFIRES]
    return bool(min(counts) >= at_least)


def _check_each_has_one(schedule: dict[str, Any], records: list[dict[str, Any]]) -> None:
    times = [at_ms for record in records for at_ms in times_of(record, EVERY_MS)]
    first_ms = times[0]
    assert parse_instant(schedule["created_at"]) < first_ms <= parse_instant(schedule["created_at"]) + EVERY_MS
    assert times == list(range(first_ms, times[-1] + 1, EVERY_MS))
    assert times[-1] >= parse_instant(schedule["last_nominal_at"])
    assert {verdict: count for verdict, count in schedule["counts"].items() if count} == counted(records)
