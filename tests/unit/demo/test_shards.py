"""The demo of several shards: whose the schedules are, and what the report says of each shard."""

from collections import Counter

import pytest
from rich.console import Console

from hascheduler.demo import scenario
from hascheduler.demo.evidence import Effect, Expectation, evaluate
from hascheduler.demo.local import tenants_of_each_shard
from hascheduler.demo.run import print_report
from hascheduler.demo.scenario import Kill, RunRecord
from hascheduler.model.partition import partition_of
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.trigger import Once, Trigger
from hascheduler.shards.layout import Layout

ONCE = Trigger(Once(WallMs(2_500)))


@pytest.mark.parametrize("shards", [2, 4, 9])
def test_each_shard_has_about_as_many_schedules(shards: int) -> None:
    layout = Layout.even([f"{index}" for index in range(shards)])
    tenants = tenants_of_each_shard(layout)
    bodies = scenario.schedule_bodies(WallMs(0), tenants=tenants)
    owned = Counter(layout.index_of(body["job"]["tenant"]) for body in bodies)
    assert sorted(owned) == list(range(shards))
    assert max(owned.values()) - min(owned.values()) <= 1
    assert len(set(map(partition_of, tenants))) == len(tenants), "each moves alone"


def test_of_one_shard_no_tenant_is_named() -> None:
    assert not any("tenant" in body["job"] for body in scenario.schedule_bodies(WallMs(0)))


def _record(kills: list[Kill], shards: tuple[str, ...]) -> RunRecord:
    jobs = {}
    for name in ("a", "b"):
        attempts = [{"number": 1, "outcome": "succeeded", "processor": "p.1"}]
        jobs[f"fire:{name}:2500"] = {"state": "succeeded", "attempt": 1, "attempts": attempts}
    return RunRecord(
        expectations=[Expectation(name, ONCE, WallMs(500), logs=True) for name in ("a", "b")],
        kills=kills,
        jobs=jobs,
        shards=shards,
        shard_of={"a": "default", "b": "0001"} if shards else {},
        until_ms=3_000,
    )


def _reported(record: RunRecord) -> str:
    console = Console(width=120, record=True)
    effects = [Effect("fire:a:2500", 1, 2_500, 2_512), Effect("fire:b:2500", 1, 2_500, 2_999)]
    assert print_report(console, record, effects) == 0
    return console.export_text()


def test_the_report_says_of_each_shard_whether_a_kill_was_anything_to_it() -> None:
    kills = [Kill("kill -9 x", 2_400, 2_900, {"0001": 431}), Kill("kill -9 processor-1", 2_950, 2_950)]
    told = _reported(_record(kills, ("default", "0001")))
    rows = [line.split("│")[1:-1] for line in told[told.index("Failovers by shard") :].splitlines() if "kill" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["default", "kill -9 x", "not led by it", "12 ms"],
        ["0001", "kill -9 x", "after 431 ms", "499 ms"],
    ]


def test_of_one_shard_it_has_no_such_table() -> None:
    assert "shard" not in _reported(_record([Kill("kill -9 x", 2_400, 2_900, {"default": 431})], ()))


def test_what_a_killed_processor_ran_in_any_shard_may_run_again() -> None:
    lost = {"number": 1, "outcome": "lost", "processor": "p.0a1b-2"}
    done = {"number": 2, "outcome": "succeeded", "processor": "q.0a1b"}
    jobs = {"fire:a:2500": {"state": "succeeded", "attempt": 2, "attempts": [lost, done]}}
    effects = [Effect("fire:a:2500", number, 2_500, 2_600) for number in (1, 2)]
    for killed, doubled in (("p.0a1b", False), ("p.0a1b-3", False), ("p.ffff", True)):
        found = evaluate(
            [Expectation("a", ONCE, WallMs(500), logs=True)], effects, jobs, until_ms=3_000, killed={killed: None}
        )
        assert bool(found.doubled) is doubled
