"""The scenario on a system with a backlog and on several shards: what it waits for, and what its report says."""

import asyncio
from collections import Counter
from typing import Any, cast

import pytest
from rich.console import Console

from hascheduler.demo import scenario
from hascheduler.demo.environment import DemoEnvironment
from hascheduler.demo.evidence import Effect, Effects, Expectation
from hascheduler.demo.local import tenants_of_each_shard
from hascheduler.demo.run import print_report
from hascheduler.demo.scenario import DemoScenario, Kill, RunRecord
from hascheduler.model.partition import partition_of
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.trigger import Once, Trigger
from hascheduler.shards.layout import Layout


class Backlog:
    """A `DemoEnvironment` in which no job ends."""

    async def read_jobs(self, ids: list[str]) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("limit", ["_PATIENCE_S", "_WAIT_MAX_S"])
async def test_it_waits_no_longer_than_that(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario, limit, 0.05)
    said: list[str] = []
    steps = DemoScenario(cast(DemoEnvironment, Backlog()), Effects(), said.append, RunRecord(), pause_s=0)
    async with asyncio.timeout(20):
        await steps._wait_for_all(list("abcdefg"))
    assert said == ["giving up with 7 jobs not ended"]


@pytest.mark.parametrize(
    ("state", "status", "words"),
    [
        ("succeeded", 0, "Nothing missed, nothing doubled."),
        ("pending", 3, "late and still to run: 1 job."),
        ("failed", 1, "Something was lost or doubled."),
    ],
)
def test_the_exit_status_says_what_the_words_say(state: str, status: int, words: str) -> None:
    effects = [Effect("fire:a:2500", 1, 2_500, 2_505)] if state == "succeeded" else []
    assert words in _reported(_record("a", state=state), effects, status)


def test_schedules_whose_time_may_pass_are_made_before_all_others() -> None:
    kinds = [body["trigger"]["type"] for body in scenario.schedule_bodies(WallMs(0))]
    assert kinds == sorted(kinds, key=lambda kind: kind != "once")
    assert kinds[0] == "once"


@pytest.mark.parametrize("shards", [2, 4, 9])
def test_each_shard_has_about_as_many_schedules(shards: int) -> None:
    layout = Layout.even([f"{index}" for index in range(shards)])
    tenants = tenants_of_each_shard(layout)
    bodies = scenario.schedule_bodies(WallMs(0), tenants=tenants)
    owned = Counter(layout.index_of(body["job"]["tenant"]) for body in bodies)
    assert sorted(owned) == list(range(shards))
    assert max(owned.values()) - min(owned.values()) <= 1
    assert len(set(map(partition_of, tenants))) == len(tenants), "each moves alone"


def _record(names: str, *, state: str = "succeeded", **more: Any) -> RunRecord:
    """A run of one-off schedules by these names, a letter each."""
    attempts = [{"number": 1, "outcome": state, "processor": "p.1"}]
    jobs = {f"fire:{name}:2500": {"state": state, "attempt": 1, "attempts": attempts} for name in names}
    expectations = [Expectation(name, Trigger(Once(WallMs(2_500))), WallMs(500), logs=True) for name in names]
    return RunRecord(expectations=expectations, jobs=jobs, until_ms=3_000, **more)


def _reported(record: RunRecord, effects: list[Effect], status: int = 0) -> str:
    console = Console(width=120, record=True)
    assert print_report(console, record, effects) == status
    return console.export_text()


def test_the_report_says_of_each_shard_whether_a_kill_was_anything_to_it() -> None:
    kills = [Kill("kill -9 x", 2_400, 2_900, {"0001": 431}), Kill("kill -9 processor-1", 2_950, 2_950)]
    shards = {"a": "default", "b": "0001"}
    effects = [Effect("fire:a:2500", 1, 2_500, 2_512), Effect("fire:b:2500", 1, 2_500, 2_999)]
    told = _reported(_record("ab", kills=kills, shards=tuple(shards.values()), shard_of=shards), effects)
    rows = [line.split("│")[1:-1] for line in told[told.index("Failovers by shard") :].splitlines() if "kill" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["default", "kill -9 x", "not led by it", "12 ms"],
        ["0001", "kill -9 x", "after 431 ms", "499 ms"],
    ]
