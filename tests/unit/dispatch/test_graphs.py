"""Fires that make a graph of jobs: the last one waits for the stream, and limits count all of them."""

from dataclasses import replace
from typing import Any

from hascheduler.dispatch.decisions import CountFailures, Dispatch, Fire, Settlement
from hascheduler.dispatch.inputs import Settled
from hascheduler.mirror.changes import JobGone, JobSeen, ScheduleSeen, TenantSeen
from hascheduler.model.documents.fired_job import fired_job, graph_job_ids
from hascheduler.model.job import JobState
from hascheduler.schema.schedule import GraphJob, JobGraph, SchedulePolicy, ScheduleRef, graph_order
from hascheduler.schema.tenant import Tenant
from tests.unit.dispatch.nouns import make_job, make_schedule, wall
from tests.unit.dispatch.scene import DOUBT_MS, Scene, processors


def graph(**more: Any) -> ScheduleRef:
    plain = make_schedule("s", **more)
    jobs = (GraphJob("a", (), plain.template), GraphJob("b", ("a",), plain.template))
    return replace(plain, graph=JobGraph(jobs, graph_order([(job.ref, job.depends_on) for job in jobs])))


def test_the_last_job_is_not_dispatched_before_the_stream_shows_what_it_waits_for() -> None:
    schedule = graph()
    scene = Scene(ScheduleSeen(schedule), *processors("p", slots=9))
    step = scene.at(1_000)
    [fire] = [each for each in step.decisions if isinstance(each, Fire)]
    assert (len(step.decisions), step.refetch) == (1, ())
    assert schedule.graph is not None
    first = make_job(graph_job_ids(schedule.graph, fire.job_id)["a"], schedule_created_at_ms=wall(0))
    last = fired_job(schedule, fire.nominal_ms)
    seen = scene.at(1_001, JobSeen(first), JobSeen(last))
    assert [each.job_id for each in seen.decisions if isinstance(each, Dispatch)] == [first.id]
    done = scene.at(1_002, JobGone(first.id, JobState.SUCCEEDED))
    assert [each.job_id for each in done.decisions if isinstance(each, Dispatch)] == [last.id]


def test_a_fire_that_is_lost_as_its_schedule_makes_several_jobs_since_is_decided_again() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    [fire] = scene.at(1_000).decisions
    assert scene.at(1_010, ScheduleSeen(graph(rev=2))).decisions == ()
    assert scene.at(1_020, Settled(fire, Settlement.LOST)).decisions == ()
    [again] = scene.at(1_020 + DOUBT_MS).decisions[:1]
    assert isinstance(fire, Fire)
    assert isinstance(again, Fire)
    assert (again.nominal_ms, fire.is_graph, again.is_graph) == (fire.nominal_ms, False, True)


def test_a_limit_counts_all_jobs_of_a_graph() -> None:
    scene = Scene(TenantSeen(Tenant(name="default", rev=1, max_pending=3)), ScheduleSeen(graph()))
    fires = [each for at in (1_000, 2_000) for each in scene.at(at).decisions if isinstance(each, Fire)]
    assert len(fires) == 1


def test_a_failed_graph_counts_once() -> None:
    schedule = graph(policy=SchedulePolicy(pause_after_failures=9), cursor_ms=wall(10**9))
    last = fired_job(schedule, wall(1_000))
    first = make_job(last.waits_for[0], schedule_created_at_ms=wall(0))
    scene = Scene(ScheduleSeen(schedule), JobSeen(first), JobSeen(last))
    gone = [JobGone(first.id, JobState.FAILED), JobGone(last.id, JobState.FAILED)]
    counts = [each for each in scene.at(1, *gone).decisions if isinstance(each, CountFailures)]
    assert [count.failures for count in counts] == [1]
