"""The pending queue: the oldest waits, nothing is left behind by jobs that come and go, and deadlines decide."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.dispatch.decisions import Dispatch, Fail, Requeue
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.explanation import Explanation, Overdue
from hascheduler.dispatch.inputs import AccountsRestored, Input, TermBegan
from hascheduler.dispatch.queue.criteria import overtaken_for_ms
from hascheduler.dispatch.queue.fifo_buckets import OldestWaits
from hascheduler.mirror.changes import JobGone, JobSeen, ProcessorGone, ProcessorSeen
from hascheduler.model.documents.job import decode_job, new_job_document
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.policy import PRESETS, Criterion, criteria
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.retry import RetryPolicy
from tests.factories import NOW
from tests.factories import make_job as new_job
from tests.tiers import in_tier
from tests.unit.dispatch.nouns import make_job, make_processor, noun_seen, running, wall
from tests.unit.dispatch.scene import CONFIG, Scene, jobs, processors


def job(id: str = "a", age_s: float = 0, **fields: Any) -> JobRef:
    made = new_job(id, submitted_at_ms=WallMs(NOW - round(age_s * 1_000)))
    return replace(decode_job(id, new_job_document(made)), **fields)


def oldest(*seen: JobRef | JobGone, now: int = NOW) -> dict[str, int]:
    """By lane, the seconds that the oldest has waited, after all were added one by one."""
    core = Dispatcher()
    for each in seen:
        core.step(WallMs(now), [JobSeen(each) if isinstance(each, JobRef) else each])
    return {lane: (now - since_ms) // 1_000 for lane, since_ms in core.state.queue.waits.oldest().items()}


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
    assert core.state.queue.waits.oldest() == {}


def core_of(*definitions: Definition, preset: str = "balanced") -> Dispatcher:
    core = Dispatcher(DispatchConfig(policy=PolicyConfig(PRESETS[preset])))
    core.step(wall(0), [*map(noun_seen, definitions), ProcessorSeen(make_processor("p", slots=1)), TermBegan(1)])
    return core


def dispatched(core: Dispatcher, *inputs: Input) -> list[str]:
    return [each.job_id for each in core.step(wall(9), inputs).decisions if isinstance(each, Dispatch)]


def test_jobs_that_come_and_go_behind_one_that_is_stuck_leave_nothing_behind() -> None:
    core = core_of(Definition(name="log", max_concurrency=1, conflict_group="g"))
    core.step(wall(0), [JobSeen(make_job("runs", target="t"))])
    core.step(wall(0), [JobSeen(make_job("stuck", target="u")), JobSeen(make_job("parked", target="t"))])
    for number in range(in_tier(check=3_000, test=20_000)):
        id, target = f"j{number}", "tu"[number % 2]
        key = f"key{number % 3 and number}"
        core.step(wall(0), [JobSeen(make_job(id, target=target, fairness_key=key)), JobGone(id, JobState.CANCELLED)])
    queue = core.state.queue
    buckets = [bucket for class_queue in queue._class_queues.values() for bucket in class_queue.buckets()]
    assert len(buckets) < 500
    assert sum(len(bucket.jobs()) for bucket in buckets) < 1_000
    assert sum(len(jobs) for _, jobs in queue._lock_waiters.jobs()) < 1_000
    assert dispatched(core) == []
    assert dispatched(core, JobGone("runs", JobState.SUCCEEDED)) == ["parked"]


def test_lanes_and_demands_that_nobody_uses_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_CLASS_QUEUES_MAX", "_CLASSES_MAX"):
        monkeypatch.setattr(f"hascheduler.dispatch.queue.pending_queue.{limit}", 100)
    core = core_of(Definition(name="log", max_concurrency=1))
    core.step(wall(0), [JobSeen(make_job("runs"))])
    for number in range(1_000):
        job = make_job(f"j{number}", lane=f"lane{number}", resources=(("cpu", number),))
        core.step(wall(0), [JobSeen(job), JobGone(job.id, JobState.CANCELLED)])
    core.step(wall(0), [JobSeen(make_job("next")), JobSeen(make_job("last", submitted_at_ms=wall(5)))])
    queue = core.state.queue
    assert max(len(queue._class_queues), len(queue._lane_tiers), len(core.state.classes)) < 300
    for ended, expected in (("runs", "next"), ("next", "last")):
        assert dispatched(core, JobGone(ended, JobState.SUCCEEDED)) == [expected]


def test_a_tenant_that_left_hides_nobody_behind_the_cost_of_its_key() -> None:
    cpu = (("cpu", 1),)
    core = core_of(Definition(name="x", resources=cpu), Definition(name="y", resources=cpu), preset="fair")
    at_ms = wall(0)
    consumed = (("gone", "dear", 50_000, at_ms), ("here", "least", 10_000, at_ms), ("here", "more", 20_000, at_ms))
    core.step(
        wall(0), [AccountsRestored(AccountsSnapshot(consumed, tenants=(("gone", 0, at_ms), ("here", 100_000, at_ms))))]
    )
    core.step(wall(0), [ProcessorSeen(make_processor("p", slots=2, beat=2, resources=cpu))])
    core.step(wall(0), [JobSeen(make_job("runs", tenant="here", fairness_key="other", definition="x"))])
    waiting = (("a", "gone", "dear", "x"), ("b", "here", "least", "x"), ("c", "here", "more", "y"))
    for id, tenant, key, definition in waiting:
        job = make_job(id, tenant=tenant, fairness_key=key, definition=definition, target=id)
        assert dispatched(core, JobSeen(job)) == [], "it would go first, were there room"
    assert dispatched(core, JobGone("a", JobState.CANCELLED), JobGone("runs", JobState.SUCCEEDED)) == ["b"]


GRACE_MS = CONFIG.timeout_grace_ms


def define(**limits: Any) -> Input:
    return noun_seen(Definition(name="log", rev=1, retry=RetryPolicy(attempts_max=3), **limits))


def test_a_job_that_has_not_begun_in_time_expires() -> None:
    scene = Scene(*jobs(make_job("a", expires_at_ms=wall(100))))
    assert scene.began.wake_at_ms == wall(100)
    assert scene.at(99).decisions == ()
    assert scene.at(100).decisions == (Fail("a", 0, "expired before it started"),)


def test_an_attempt_whose_processor_does_not_end_it_is_given_to_another() -> None:
    scene = Scene(*processors("p"), define(timeout_ms=1_000), *jobs(running("a", "p", started_at_ms=wall(0))))
    assert scene.at(1_000 + GRACE_MS - 1).decisions == ()
    assert scene.at(1_000 + GRACE_MS).decisions == (Requeue("a", 1, "timed out"),)


def test_an_attempt_whose_thread_goes_on_is_its_processor_s_to_end_until_that_is_lost() -> None:
    overdue: Any = {"overdue_attempt": 1, "overdue_since_ms": wall(1_000)}
    define_both = define(timeout_ms=1_000, total_timeout_ms=5_000)
    runs = running("a", "p", started_at_ms=wall(0), first_started_at_ms=wall(0))
    scene = Scene(*processors("p"), define_both, *jobs(runs))
    marked = JobSeen(replace(runs, rev=runs.rev + 1, **overdue))
    assert scene.at(1_000, marked).decisions == ()
    found = scene.at(20_000)
    assert (found.decisions, scene.core.explain("a", wall(20_000))) == (
        (),
        Explanation("a", "running", "p", overdue=Overdue(1, wall(1_000))),
    )
    assert scene.at(20_001, ProcessorGone("p")).decisions == (Requeue("a", 1, "processor lost"),)


def test_the_total_timeout_ends_a_job_that_runs_and_one_that_waits_for_its_next_try() -> None:
    runs = running("a", "p", started_at_ms=wall(0), first_started_at_ms=wall(0))
    waits = make_job("b", attempt=1, first_started_at_ms=wall(0), retry_at_ms=wall(10**6), failures=1)
    scene = Scene(*processors("p"), define(total_timeout_ms=5_000), *jobs(runs, waits))
    assert scene.at(5_000).decisions == (Fail("b", 1, "timed out in all (1 try)"),)
    assert scene.at(5_000 + GRACE_MS, JobGone("b")).decisions == (Fail("a", 1, "timed out in all (1 try)"),)


def test_a_processor_whose_clock_is_ahead_gets_no_more_time_and_one_behind_no_less() -> None:
    ahead = running("a", "p", started_at_ms=wall(10**7))
    behind = running("b", "p", started_at_ms=wall(-(10**7)), dispatched_at_ms=wall(0))
    scene = Scene(*processors("p"), define(timeout_ms=1_000), *jobs(ahead, behind))
    assert scene.at(1_000 + GRACE_MS - 1).decisions == ()
    assert {d.job_id for d in scene.at(1_000 + GRACE_MS).decisions if isinstance(d, Requeue)} == {"a", "b"}


def scene_of(*waiting: JobRef, policy: str = "deadline", lanes: tuple[Lane, ...] = ()) -> Scene:
    """A leader with one slot, which a job ``runs`` has, and these that wait."""
    scene = Scene(*map(noun_seen, lanes), *processors("p", slots=1), policy=PolicyConfig(criteria(policy)))
    scene.at(0, *jobs(make_job("runs")))
    scene.at(0, *jobs(*waiting))
    return scene


def order_of(scene: Scene, count: int) -> list[str]:
    """The jobs that get the one slot, one after the other, at the second 0."""
    order, ended = [], "runs"
    for _ in range(count):
        [dispatch] = scene.at(0, JobGone(ended, JobState.SUCCEEDED)).decisions
        assert isinstance(dispatch, Dispatch)
        ended = dispatch.job_id
        order.append(ended)
    return order


def expiring(id: str, after_ms: int | None, **rest: Any) -> JobRef:
    return make_job(id, target=id, expires_at_ms=None if after_ms is None else wall(after_ms), **rest)


@pytest.mark.parametrize("policy", ["score,deadline", "fairness,deadline", "tier,deadline", "aged_priority,deadline"])
def test_the_deadline_decides_where_the_criteria_before_it_leave_jobs_equal(policy: str) -> None:
    waiting = (expiring("late", 90_000, sequence=1), expiring("soon", 30_000, sequence=2))
    assert order_of(scene_of(*waiting, policy=policy), 2) == ["soon", "late"]


def test_why_names_the_deadlines_that_decide() -> None:
    waiting = (expiring("soon", 30_000, sequence=2), expiring("late", 90_000, sequence=1), expiring("never", None))
    scene = scene_of(*waiting)
    for id, ahead, shown in (("late", 1, "in 90 s"), ("never", 2, "none")):
        explanation = scene.why(id, 0)
        position = explanation.position
        assert position is not None
        assert (position.ahead, position.first, position.deciding) == (ahead, "soon", Criterion.DEADLINE)
        [value, _] = position.criteria
        assert (value.criterion, value.value, value.first) == (Criterion.DEADLINE, shown, "in 30 s")


def test_jobs_of_one_aged_priority_go_by_their_deadlines_whatever_their_ages() -> None:
    """Both have waited for less than the minute after which a priority grows."""
    old = expiring("old", 90_000, submitted_at_ms=wall(-50_000))
    assert order_of(scene_of(old, expiring("young", 30_000), policy="aged_priority,deadline"), 2) == ["young", "old"]
    older = expiring("old", 90_000, submitted_at_ms=wall(-70_000))
    assert order_of(scene_of(older, expiring("young", 30_000), policy="aged_priority,deadline"), 2) == ["old", "young"]
