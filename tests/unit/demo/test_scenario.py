"""The scenario on a system with a backlog: it says so, and waits for its last jobs while they make progress."""

import asyncio
from typing import Any, cast

import pytest
from rich.console import Console

from hascheduler.demo import scenario
from hascheduler.demo.environment import ClusterSnapshot, DemoEnvironment
from hascheduler.demo.evidence import Effect, Effects, Expectation
from hascheduler.demo.run import print_report
from hascheduler.demo.scenario import DemoScenario, RunRecord
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.trigger import Once, Trigger

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


@pytest.mark.parametrize(("waiting", "says"), [(0, []), (1_553, ["1553"])])
async def test_a_backlog_is_seen_at_the_start(waiting: int, says: list[str]) -> None:
    steps, said = _scenario(Backlog(waiting))
    await steps._look_for_a_backlog()
    assert len(said) == len(says)
    assert all(number in line for number, line in zip(says, said, strict=True))


async def test_it_waits_as_long_as_jobs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario, "_PATIENCE_S", 0.25)
    monkeypatch.setattr(scenario, "_LOOK_S", 0.1)
    environment = Backlog(unended=[4, 3, 2, 1, 0])
    steps, said = _scenario(environment)
    await steps._wait_for_all(["a", "b", "c", "d"])
    assert (environment.looks, said) == (5, [])


@pytest.mark.parametrize("limit", ["_PATIENCE_S", "_WAIT_MAX_S"])
async def test_it_waits_no_longer_than_that(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario, limit, 0.05)
    steps, said = _scenario(Backlog(unended=[7]))
    async with asyncio.timeout(20):
        await steps._wait_for_all(list("abcdefg"))
    assert said == ["7 have not ended; waiting no longer"]


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
