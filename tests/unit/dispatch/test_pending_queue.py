"""The pending queue drops structures without jobs, however many come and go, and keeps its order."""

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import AccountsRestored, Input, TermBegan
from hascheduler.mirror.changes import DefinitionSeen, JobGone, JobSeen, ProcessorSeen
from hascheduler.model.job import JobState
from hascheduler.model.policy import PRESETS, Criterion
from hascheduler.schema.definition import Definition
from tests.tiers import in_tier
from tests.unit.dispatch.nouns import make_job, make_processor, wall

CHURN = in_tier(check=10_000, test=20_000)
"""Many more than are kept, of anything."""


def core_of(*definitions: Definition, preset: str = "balanced") -> Dispatcher:
    core = Dispatcher(DispatchConfig(policy=PolicyConfig(PRESETS[preset])))
    core.step(wall(0), [*map(DefinitionSeen, definitions), ProcessorSeen(make_processor("p", slots=1)), TermBegan(1)])
    return core


def dispatched(core: Dispatcher, *told: Input) -> list[str]:
    return [each.job_id for each in core.step(wall(9), told).decisions if isinstance(each, Dispatch)]


def test_jobs_that_come_and_go_behind_one_that_is_stuck_leave_nothing_behind() -> None:
    core = core_of(Definition(name="log", max_concurrency=1, conflict_group="g"))
    core.step(wall(0), [JobSeen(make_job("runs", target="t"))])
    core.step(wall(0), [JobSeen(make_job("stuck", target="u")), JobSeen(make_job("parked", target="t"))])
    for number in range(in_tier(check=3_000, test=CHURN)):
        id, target = f"j{number}", "tu"[number % 2]
        key = f"key{number % 3 and number}"
        core.step(wall(0), [JobSeen(make_job(id, target=target, fairness_key=key)), JobGone(id, JobState.CANCELLED)])
    queue = core._state.queue
    buckets = [bucket for class_queue in queue._class_queues.values() for bucket in class_queue.buckets()]
    assert len(buckets) < 500
    assert sum(len(bucket.jobs()) for bucket in buckets) < 1_000
    assert sum(len(jobs) for _, jobs in queue._lock_waiters.jobs()) < 1_000
    assert dispatched(core) == []
    assert dispatched(core, JobGone("runs", JobState.SUCCEEDED)) == ["parked"]


def test_lanes_and_demands_that_nobody_uses_any_more_are_forgotten() -> None:
    core = core_of(Definition(name="log", max_concurrency=1))
    core.step(wall(0), [JobSeen(make_job("runs"))])
    for number in range(CHURN):
        job = make_job(f"j{number}", lane=f"lane{number}", resources=(("cpu", number),))
        core.step(wall(0), [JobSeen(job), JobGone(job.id, JobState.CANCELLED)])
    core.step(wall(0), [JobSeen(make_job("next")), JobSeen(make_job("last", submitted_at_ms=wall(5)))])
    queue = core._state.queue
    assert max(len(queue._class_queues), len(queue._lane_tiers), len(core._state.classes)) < 9_000
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


def test_firsts_that_come_and_go_leave_nothing_behind_where_each_order_is_worked_out_anew() -> None:
    policy = PolicyConfig((Criterion.AGED_PRIORITY, Criterion.FAIRNESS, Criterion.ARRIVAL))
    core = Dispatcher(DispatchConfig(policy=policy))
    core.step(wall(0), [ProcessorSeen(make_processor("p", slots=1)), TermBegan(1)])
    for number in range(500):
        id = f"j{number}"
        assert dispatched(core, JobSeen(make_job(id, target=id))) == [id]
        core.step(wall(0), [JobGone(id, JobState.SUCCEEDED)])
    [class_queue] = core._state.queue._class_queues.values()
    assert sum(len(tenant_queue.heap) for tenant_queue in class_queue._tenant_queues.values()) < 100


def test_tenants_that_come_and_go_leave_nothing_behind() -> None:
    core = core_of(Definition(name="log", max_concurrency=1))
    core.step(wall(0), [JobSeen(make_job("runs"))])
    for number in range(2_000):
        job = make_job(f"j{number}", tenant=f"t{number}", target=f"j{number}")
        core.step(wall(0), [JobSeen(job), JobGone(job.id, JobState.CANCELLED)])
    class_queues = core._state.queue._class_queues.values()
    assert sum(len(class_queue._tenant_queues) + len(class_queue._heap) for class_queue in class_queues) < 500
    assert len(core._state.accounts.snapshot(0, 10**9).accumulated) == 1, "of the one that runs"
