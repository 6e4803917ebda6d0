"""The line forgets what nobody is in any more, however much comes and goes, and goes on in its order."""

from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input, TermBegan
from hascheduler.mirror.changes import DefinitionSeen, JobGone, JobSeen, ProcessorSeen
from hascheduler.model.definition import Definition
from hascheduler.model.job import JobState
from hascheduler.model.policy import PRESETS
from tests.dispatch.nouns import make_job, make_processor, wall

CHURN = 20_000


def core_of(*definitions: Definition, preset: str = "balanced") -> Dispatcher:
    core = Dispatcher(DispatchConfig(policy=PolicyConfig(PRESETS[preset])))
    core.step(wall(0), [*map(DefinitionSeen, definitions), ProcessorSeen(make_processor("p", slots=1)), TermBegan(1)])
    return core


def dispatched(core: Dispatcher, *told: Input) -> list[str]:
    return [each.job_id for each in core.step(wall(9), told).decisions if isinstance(each, Dispatch)]


def test_jobs_that_come_and_go_behind_one_that_is_stuck_leave_nothing_behind() -> None:
    core = core_of(Definition("log", max_concurrency=1, conflict_group="g"))
    core.step(wall(0), [JobSeen(make_job("runs", target="t"))])
    core.step(wall(0), [JobSeen(make_job("stuck", target="u")), JobSeen(make_job("parked", target="t"))])
    for number in range(CHURN):
        id, target = f"j{number}", "tu"[number % 2]
        key = f"key{number % 3 and number}"
        core.step(wall(0), [JobSeen(make_job(id, target=target, fairness_key=key)), JobGone(id, JobState.CANCELLED)])
    line = core._mind.line
    cells = [cell for group in line._groups.values() for cell in group.cells()]
    assert len(cells) < 500
    assert sum(len(cell.jobs()) for cell in cells) < 1_000
    assert sum(len(jobs) for _, jobs in line._parking.jobs()) < 1_000
    assert dispatched(core) == []
    assert dispatched(core, JobGone("runs", JobState.SUCCEEDED)) == ["parked"]


def test_lanes_and_demands_that_nobody_uses_any_more_are_forgotten() -> None:
    core = core_of(Definition("log", max_concurrency=1))
    core.step(wall(0), [JobSeen(make_job("runs"))])
    for number in range(CHURN):
        job = make_job(f"j{number}", lane=f"lane{number}", resources=(("cpu", number),))
        core.step(wall(0), [JobSeen(job), JobGone(job.id, JobState.CANCELLED)])
    core.step(wall(0), [JobSeen(make_job("next")), JobSeen(make_job("last", submitted_at_ms=wall(5)))])
    line = core._mind.line
    assert max(len(line._groups), len(line._nodes), len(core._mind.kinds)) < 9_000
    for ended, expected in (("runs", "next"), ("next", "last")):
        assert dispatched(core, JobGone(ended, JobState.SUCCEEDED)) == [expected]
