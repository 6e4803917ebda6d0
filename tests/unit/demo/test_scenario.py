"""The scenario on a system with a backlog and on several shards: what it waits for, and what its report says."""

import asyncio
from collections import Counter
from typing import Any, cast

import pytest
from rich.console import Console

from hascheduler.demo import scenario
from hascheduler.demo.environment import ClusterSnapshot, DemoEnvironment
from hascheduler.demo.evidence import Effect, Effects, Expectation
from hascheduler.demo.local import tenants_of_each_shard
from hascheduler.demo.run import print_report
from hascheduler.demo.scenario import DemoScenario, Kill, RunRecord
from hascheduler.model.partition import partition_of
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.trigger import Once, Trigger
from hascheduler.shards.layout import Layout

JOB = "fire:once:2500"
ONCE = Expectation("once", Trigger(Once(WallMs(2_500))), WallMs(500), logs=True)


class Backlog:
    """A `DemoEnvironment`, as far as these tests go: so many jobs wait at the start, and at each later look."""

    def __init__(self, waiting: int = 0, unended: list[int] | None = None) -> None:
        self.waiting = waiting
        self.unended = unended or [0]
        self.looks = 0

    async def snapshot(self) -> ClusterSnapshot:
        return ClusterSnapshot({"counts": {"pending": self.waiting}}, [])

    @property
    def api(self) -> "Backlog":
        return self

    async def read_jobs(self, ids: list[str]) -> dict[str, Any]:
        self.looks += 1
        unended = self.unended.pop(0) if len(self.unended) > 1 else self.unended[0]
        return {id: {"state": "succeeded"} for id in ids[unended:]}


def _scenario(environment: Backlog) -> tuple[DemoScenario, list[str]]:
    said: list[str] = []
    return DemoScenario(cast(DemoEnvironment, environment), Effects(), said.append, RunRecord(), pause_s=0), said


@pytest.mark.parametrize("limit", ["_PATIENCE_S", "_WAIT_MAX_S"])
async def test_it_waits_no_longer_than_that(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario, limit, 0.05)
    steps, said = _scenario(Backlog(unended=[7]))
    async with asyncio.timeout(20):
        await steps._wait_for_all(list("abcdefg"))
    assert said == ["7 jobs have not ended; giving up"]


@pytest.mark.parametrize(
    ("state", "status", "words"),
    [
        ("succeeded", 0, "Nothing missed, nothing doubled."),
        ("pending", 3, "1 jobs are late and still to run"),
        ("failed", 1, "Something was lost or doubled."),
    ],
)
def test_the_exit_status_says_what_the_words_say(state: str, status: int, words: str) -> None:
    attempt = {"number": 1, "outcome": state, "processor": "p.1"}
    job: dict[str, Any] = {"state": state, "attempt": 1, "attempts": [attempt]}
    record = RunRecord(expectations=[ONCE], jobs={JOB: job}, until_ms=3_000)
    console = Console(width=120, record=True, quiet=False)
    effects = [Effect(JOB, 1, 2_500, 2_505)] if state == "succeeded" else []
    assert print_report(console, record, effects) == status
    assert words in console.export_text()


def test_schedules_whose_time_may_pass_are_made_before_all_others() -> None:
    kinds = [body["trigger"]["type"] for body in scenario.schedule_bodies(WallMs(0))]
    assert kinds == sorted(kinds, key=lambda kind: kind != "once")
    assert kinds[0] == "once"


ONCE_AT = Trigger(Once(WallMs(2_500)))


@pytest.mark.parametrize("shards", [2, 4, 9])
def test_each_shard_has_about_as_many_schedules(shards: int) -> None:
    layout = Layout.even([f"{index}" for index in range(shards)])
    tenants = tenants_of_each_shard(layout)
    bodies = scenario.schedule_bodies(WallMs(0), tenants=tenants)
    owned = Counter(layout.index_of(body["job"]["tenant"]) for body in bodies)
    assert sorted(owned) == list(range(shards))
    assert max(owned.values()) - min(owned.values()) <= 1
    assert len(set(map(partition_of, tenants))) == len(tenants), "each moves alone"


def _record(kills: list[Kill], shards: tuple[str, ...]) -> RunRecord:
    jobs = {}
    for name in ("a", "b"):
        attempts = [{"number": 1, "outcome": "succeeded", "processor": "p.1"}]
        jobs[f"fire:{name}:2500"] = {"state": "succeeded", "attempt": 1, "attempts": attempts}
    return RunRecord(
        expectations=[Expectation(name, ONCE_AT, WallMs(500), logs=True) for name in ("a", "b")],
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
