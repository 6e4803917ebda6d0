"""The oldest waits: the core's count equals a look at all jobs that wait."""

import random
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Resynced
from hascheduler.dispatch.queue.criteria import overtaken_for_ms
from hascheduler.dispatch.queue.fifo_buckets import OldestWaits
from hascheduler.mirror.changes import JobGone, JobSeen
from hascheduler.model.documents.job import decode_job, new_job_document
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.policy import PRESETS, Criterion
from hascheduler.model.values.instants import WallMs
from tests.factories import NOW, make_job


def job(id: str = "a", age_s: float = 0, **fields: Any) -> JobRef:
    made = make_job(id, submitted_at_ms=WallMs(NOW - round(age_s * 1_000)))
    return replace(decode_job(id, new_job_document(made)), **fields)


def oldest(*seen: JobRef | JobGone, now: int = NOW) -> dict[str, int]:
    """By lane, the seconds that the oldest has waited, after all were added one by one."""
    core = Dispatcher()
    for each in seen:
        core.step(WallMs(now), [JobSeen(each) if isinstance(each, JobRef) else each])
    return {lane: (now - since_ms) // 1_000 for lane, since_ms in core.oldest_waits().items()}


@pytest.mark.parametrize(
    ("seen", "waited"),
    [
        ((), {}),
        ((job("a", 5), job("b", 9), job("c", 7)), {"default": 9}),
        ((job("a", 5), job("b", 9, lane="slow")), {"default": 5, "slow": 9}),
        ((job("a", 50, not_before_ms=WallMs(NOW - 3_000)),), {"default": 3}),
        ((job("a", 50, not_before_ms=WallMs(NOW + 3_000)),), {}),
        ((job("a", 50, retry_at_ms=WallMs(NOW - 2_000)),), {"default": 2}),
        ((job("a", 50), job("a", 50, rev=2, state=JobState.DISPATCHED, attempt=1, processor="p")), {}),
        ((job("a", 50), JobGone("a", JobState.CANCELLED), job("b", 4)), {"default": 4}),
        ((job("b", 8), job("a", 50, waits_for=("b",))), {"default": 8}),
        ((job("b", 8), job("a", 50, waits_for=("b",)), JobGone("b", JobState.SUCCEEDED)), {"default": 0}),
        ((job("b", 8), job("a", 50, waits_for=("b",)), JobGone("b", JobState.FAILED)), {}),
    ],
)
def test_the_oldest_of_each_lane_that_could_run(seen: tuple[JobRef | JobGone, ...], waited: dict[str, int]) -> None:
    assert oldest(*seen) == waited


def test_after_a_resync_nobody_waits() -> None:
    core = Dispatcher()
    core.step(NOW, [JobSeen(job())])
    core.step(NOW, [Resynced()])
    assert core.oldest_waits() == {}


@pytest.mark.parametrize("seed", range(10))
def test_it_knows_the_least_of_what_is_there_whatever_comes_and_goes(seed: int) -> None:
    rng, waits, there = random.Random(seed), OldestWaits(), dict[str, JobRef]()
    for number in range(2_000):
        if there and rng.random() < 0.5:
            waits.ended(there.pop(rng.choice(list(there))))
        else:
            one = job(str(number), rng.randrange(100), lane=rng.choice("lm"))
            there[one.id] = one
            waits.began(one)
        least: dict[str, int] = {}
        for one in there.values():
            since_ms = one.submitted_at_ms // 1_000 * 1_000
            least[one.lane] = min(since_ms, least.get(one.lane, since_ms))
        assert waits.oldest() == least


def test_a_busy_lane_that_nobody_asks_about_stays_small() -> None:
    waits, old = OldestWaits(), job("old", 100_000)
    waits.began(old)
    for number in range(10_000):
        one = job("a", 50_000 - number)
        waits.began(one)
        waits.ended(one)
    assert len(waits._lanes["default"]._heap) < 200


@pytest.mark.parametrize(
    ("policy", "bound_s"),
    [
        (PolicyConfig(), 1_920),
        (PolicyConfig(on_demand_bonus_max=None), None),
        (PolicyConfig(criteria=PRESETS["fair"]), None),
        (PolicyConfig(criteria=PRESETS["swimlanes"]), None),
        (PolicyConfig(criteria=(Criterion.SCORE, Criterion.ARRIVAL), on_demand_bonus_max=0), 640),
    ],
)
def test_the_bound_on_being_overtaken(policy: PolicyConfig, bound_s: int | None) -> None:
    bound_ms = overtaken_for_ms(policy)
    assert bound_ms == (None if bound_s is None else bound_s * 1_000)


def test_many_kinds_that_are_begun_anew_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hascheduler.dispatch.queue.pending_queue._CLASSES_MAX", 4)
    core = Dispatcher(DispatchConfig())
    core.step(NOW, [JobSeen(job(str(number), 10, definition=f"d{number}")) for number in range(30)])
    core.step(NOW, [JobGone(str(number), JobState.CANCELLED) for number in range(30)])
    assert core.oldest_waits() == {}
