"""Fires that make graphs of jobs, also while an earlier graph has not ended: they wait for all of it, or replace it."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Cancel, CountFailures, Dispatch, Fire, Settlement
from hascheduler.dispatch.inputs import Settled, TermBegan
from hascheduler.mirror.changes import JobGone, JobSeen, ScheduleSeen
from hascheduler.model.documents.fired_job import fired_job, graph_job_ids
from hascheduler.model.job import JobRef, JobState, backfill_job_id, fire_job_id, graph_job_id, trigger_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.schedule import GraphJob, JobGraph, Overlap, SchedulePolicy, ScheduleRef, graph_order
from tests.unit.dispatch.nouns import make_job, make_schedule, running, wall
from tests.unit.dispatch.scene import DOUBT_MS, Scene, processors

FIRST, SECOND = (fire_job_id("s", wall(second * 1_000)) for second in (1, 2))


def graph(overlap: Overlap, **more: Any) -> ScheduleRef:
    """``a`` and ``b`` may run beside each other, and ``c`` is the last."""
    policy = SchedulePolicy(grace_ms=60_000, overlap=overlap)
    plain = make_schedule("s", **{"policy": policy, **more})
    needs: dict[str, tuple[str, ...]] = {"a": (), "b": (), "c": ("a", "b")}
    jobs = tuple(GraphJob(ref, refs, plain.template) for ref, refs in needs.items())
    return replace(plain, graph=JobGraph(jobs, graph_order(list(needs.items()))))


def inserted(schedule: ScheduleRef, fire: Fire | WallMs) -> list[JobSeen]:
    """What the stream shows of a fire's jobs, the last at the end."""
    nominal_ms, after = (fire.nominal_ms, fire.after) if isinstance(fire, Fire) else (fire, ())
    last = fired_job(schedule, nominal_ms)
    assert schedule.graph is not None
    ids = graph_job_ids(schedule.graph, last.id)
    made: dict[str, Any] = {
        "schedule_created_at_ms": wall(0),
        "submitted_at_ms": nominal_ms,
        "waits_for": after,
        "ignores_failures": bool(after),
    }
    return [*(JobSeen(make_job(ids[ref], **made)) for ref in ("a", "b")), JobSeen(last)]


def advanced(schedule: ScheduleRef, fire: Fire) -> ScheduleSeen:
    return ScheduleSeen(replace(schedule, cursor_ms=fire.nominal_ms, tally=fire.tally))


def fires(decisions: object) -> list[Fire]:
    assert isinstance(decisions, tuple)
    return [each for each in decisions if isinstance(each, Fire)]


def part(last_id: str, ref: str) -> str:
    return graph_job_id(last_id, ref)


def has_run(id: str, **more: Any) -> JobRef:
    return running(id, "p", schedule_created_at_ms=wall(0), **more)


def scene_after(schedule: ScheduleRef) -> tuple[Scene, Fire]:
    """After the first fire, with all of it in the stream."""
    scene = Scene(ScheduleSeen(schedule), *processors("p", slots=9))
    [first] = fires(scene.at(1_000).decisions)
    scene.at(1_100, *inserted(schedule, first), advanced(schedule, first))
    return scene, first


@pytest.mark.parametrize("overlap", [Overlap.BUFFER_ONE, Overlap.CANCEL_RUNNING])
def test_nothing_is_decided_before_the_stream_shows_all_jobs_of_the_fire_before(overlap: Overlap) -> None:
    schedule = graph(overlap)
    scene = Scene(ScheduleSeen(schedule), *processors("p", slots=9))
    step = scene.at(1_000)
    [first] = fires(step.decisions)
    step = scene.at(2_000, Settled(first, Settlement.DONE))
    assert step.decisions == ()
    assert fires(scene.at(2_020, *inserted(schedule, first)).decisions) == []
    [second] = fires(scene.at(2_030, advanced(schedule, first)).decisions)
    assert set(second.after) == {part(FIRST, "a"), part(FIRST, "b"), FIRST}


def test_the_graph_that_waits_begins_when_no_job_of_the_earlier_one_is_left() -> None:
    schedule = graph(Overlap.BUFFER_ONE)
    scene, _ = scene_after(schedule)
    [second] = fires(scene.at(2_000).decisions)
    assert fires(scene.at(2_100, *inserted(schedule, second), advanced(schedule, second)).decisions) == []
    # One fails, so the last fails; the other runs on, and the earlier graph has not ended.
    scene.at(2_200, JobSeen(has_run(part(FIRST, "b"))), JobGone(part(FIRST, "a"), JobState.FAILED))
    assert scene.at(2_300, JobGone(FIRST, JobState.FAILED)).decisions == ()
    step = scene.at(2_400, JobGone(part(FIRST, "b"), JobState.SUCCEEDED))
    assert step.decisions == (Dispatch(part(SECOND, "a"), 1, "p"), Dispatch(part(SECOND, "b"), 1, "p"))


def test_a_later_graph_replaces_every_job_of_the_earlier_one_those_that_wait_first() -> None:
    schedule = graph(Overlap.CANCEL_RUNNING)
    scene, _ = scene_after(schedule)
    scene.at(1_200, *(JobSeen(has_run(part(FIRST, ref))) for ref in "ab"))
    step = scene.at(2_000)
    [second] = fires(step.decisions)
    why = f"replaced by {SECOND}"
    expected = [Cancel(FIRST, 0, why), Cancel(part(FIRST, "b"), 1, why), Cancel(part(FIRST, "a"), 1, why)]
    assert list(step.decisions[1:]) == expected
    assert scene.at(2_100, *inserted(schedule, second), advanced(schedule, second)).decisions == ()
    assert scene.at(2_200, *(JobGone(id, JobState.CANCELLED) for id in (FIRST, part(FIRST, "a")))).decisions == ()
    freed = scene.at(2_300, JobGone(part(FIRST, "b"), JobState.CANCELLED))
    assert freed.decisions == (Dispatch(part(SECOND, "a"), 1, "p"), Dispatch(part(SECOND, "b"), 1, "p"))


def test_what_was_asked_for_by_hand_is_not_replaced_and_a_trigger_is_waited_for() -> None:
    schedule = graph(Overlap.CANCEL_RUNNING)
    by_hand = [part(trigger_job_id("s", "t"), "a"), part(backfill_job_id("s", wall(5)), "a")]
    scene = Scene(ScheduleSeen(schedule), *processors("p", slots=9), *(JobSeen(has_run(id)) for id in by_hand))
    [fire] = scene.at(1_000).decisions
    assert isinstance(fire, Fire)
    assert fire.after == (by_hand[0],)


@pytest.mark.parametrize("is_graph", [True, False])
def test_a_new_leader_replaces_what_is_older_than_a_fire_that_the_stream_has_yet_to_show(is_graph: bool) -> None:
    schedule = graph(Overlap.CANCEL_RUNNING, cursor_ms=wall(1_000))
    if not is_graph:
        schedule = replace(schedule, graph=None)
    earlier = [part(FIRST, "a"), FIRST] if is_graph else [FIRST]
    seen = [JobSeen(has_run(id)) for id in earlier]
    scene = Scene(ScheduleSeen(schedule), *processors("p", slots=9), *seen, leading=False)
    reapplied = Fire("s", wall(2_000), schedule.basis_at(wall(1_000)))
    step = scene.at(2_100, TermBegan(2, (reapplied,)))
    assert {each for each in step.decisions if isinstance(each, Cancel)} == {
        Cancel(id, 1, f"replaced by {SECOND}") for id in earlier
    }


def test_of_too_many_in_the_way_those_at_a_processor_come_first_and_then_the_newest() -> None:
    schedule = graph(Overlap.CANCEL_RUNNING)
    by_hand = [trigger_job_id("s", f"{number:03}") for number in range(150)]
    waiting: dict[str, Any] = {"schedule_created_at_ms": wall(0), "not_before_ms": wall(10**6)}
    others = [JobSeen(make_job(id, **waiting)) for id in by_hand]
    others[7] = JobSeen(has_run(by_hand[7]))
    scene = Scene(ScheduleSeen(schedule), *others, *processors("p", slots=9))
    [fire] = fires(scene.at(1_000).decisions)
    assert fire.after == (by_hand[7], *reversed(by_hand[51:]))


# One graph


def test_the_last_job_is_not_dispatched_before_the_stream_shows_what_it_waits_for() -> None:
    schedule = graph(Overlap.ALLOW)
    scene = Scene(ScheduleSeen(schedule), *processors("p", slots=9))
    step = scene.at(1_000)
    [first] = fires(step.decisions)
    assert (len(step.decisions), step.refetch) == (1, ())
    seen = scene.at(1_001, *inserted(schedule, first))
    assert seen.decisions == tuple(Dispatch(part(FIRST, ref), 1, "p") for ref in "ab")
    done = scene.at(1_002, *(JobGone(part(FIRST, ref), JobState.SUCCEEDED) for ref in "ab"))
    assert done.decisions == (Dispatch(FIRST, 1, "p"),)


def test_a_fire_that_is_lost_as_its_schedule_makes_several_jobs_since_is_decided_again() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    [first] = fires(scene.at(1_000).decisions)
    assert scene.at(1_010, ScheduleSeen(graph(Overlap.ALLOW, rev=2))).decisions == ()
    assert scene.at(1_020, Settled(first, Settlement.LOST)).decisions == ()
    again = fires(scene.at(1_020 + DOUBT_MS).decisions)[0]
    assert (again.nominal_ms, first.is_graph, again.is_graph) == (first.nominal_ms, False, True)


def test_a_failed_graph_counts_once() -> None:
    schedule = graph(Overlap.ALLOW, policy=SchedulePolicy(pause_after_failures=9), cursor_ms=wall(10**9))
    seen = inserted(schedule, wall(1_000))
    scene = Scene(ScheduleSeen(schedule), *seen)
    gone = [JobGone(each.job.id, JobState.FAILED) for each in seen]
    counts = [each for each in scene.at(1, *gone).decisions if isinstance(each, CountFailures)]
    assert [count.failures for count in counts] == [1]
