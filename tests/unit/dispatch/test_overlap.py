"""Jobs of one schedule that must not run beside each other or that a later fire replaces; fires that make graphs."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import (
    Cancel,
    CountFailures,
    Dispatch,
    Fire,
    RecordVerdict,
    Settlement,
)
from hascheduler.dispatch.inputs import Settled, TermBegan
from hascheduler.mirror.changes import JobGone, JobSeen, ScheduleSeen
from hascheduler.model.documents.fired_job import fired_job, graph_job_ids
from hascheduler.model.job import JobRef, JobState, backfill_job_id, fire_job_id, graph_job_id, trigger_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts
from hascheduler.schema.schedule import GraphJob, JobGraph, Overlap, SchedulePolicy, ScheduleRef, graph_order
from tests.unit.dispatch.nouns import dispatched, make_job, make_schedule, running, wall
from tests.unit.dispatch.scene import Scene, processors

FIRST, SECOND, THIRD = (fire_job_id("s", wall(second * 1_000)) for second in (1, 2, 3))


def scene_with(overlap: Overlap, pause_after_failures: int | None = None, grace_ms: int = 60_000) -> Scene:
    policy = SchedulePolicy(grace_ms=grace_ms, overlap=overlap, pause_after_failures=pause_after_failures)
    schedule = make_schedule("s", policy=policy)
    return Scene(ScheduleSeen(schedule), *processors("p", slots=8))


def kinds(decisions: object) -> list[str]:
    assert isinstance(decisions, tuple)
    return [type(decision).__name__ for decision in decisions]


def shown(job_id: str) -> JobSeen:
    return JobSeen(make_job(job_id, serial=True, schedule_created_at_ms=wall(0)))


@pytest.mark.parametrize(("overlap", "fires"), [(Overlap.SKIP, 1), (Overlap.BUFFER_ONE, 2)])
def test_a_long_backlog_that_is_taken_in_portions_overlaps_no_more_than_a_short_one(
    overlap: Overlap, fires: int
) -> None:
    decisions = list(scene_with(overlap, grace_ms=10**6).at(250_000).decisions)
    assert [type(decision) for decision in decisions].count(Fire) == fires
    passed_over = [decision.run.count for decision in decisions if isinstance(decision, RecordVerdict)]
    assert sum(passed_over) == 250 - fires


@pytest.mark.parametrize("overlap", list(Overlap))
def test_a_new_leader_overlaps_nothing_with_a_job_that_its_predecessor_made_and_the_stream_has_yet_to_show(
    overlap: Overlap,
) -> None:
    """Its predecessor stood still for longer than the schedule's interval, right after it had decided."""
    policy = SchedulePolicy(grace_ms=60_000, overlap=overlap)
    schedule = make_schedule("s", policy=policy)
    fired = Fire("s", wall(1_000), schedule.basis_at(wall(0)), FireCounts(1))
    scene = Scene(ScheduleSeen(schedule), *processors("p", slots=8), leading=False)
    step = scene.at(3_100, TermBegan(2, (fired,)))
    if overlap is Overlap.ALLOW:
        assert kinds(step.decisions) == ["Fire", "Fire", "Dispatch", "Dispatch"]
        return
    assert step.decisions == ()
    knowing = Scene(ScheduleSeen(schedule), *processors("p", slots=8), shown(FIRST), leading=False)
    assert knowing.at(3_100, TermBegan(2, (fired,))).decisions != ()
    step = scene.at(3_200, shown(FIRST), ScheduleSeen(replace(schedule, cursor_ms=wall(1_000), tally=FireCounts(1))))
    verdicts = [decision.run for decision in step.decisions if isinstance(decision, RecordVerdict)]
    fires = [decision.job_id for decision in step.decisions if isinstance(decision, Fire)]
    if overlap is Overlap.SKIP:
        assert [(run.count, run.because_of) for run in verdicts] == [(2, FIRST)]
    elif overlap is Overlap.BUFFER_ONE:
        assert (fires, [run.count for run in verdicts]) == ([SECOND], [1])
    else:
        assert fires == [SECOND, THIRD]


def test_a_promised_attempt_is_cancelled_when_it_has_been_seen() -> None:
    scene = scene_with(Overlap.CANCEL_RUNNING)
    assert kinds(scene.at(1_000).decisions) == ["Fire", "Dispatch"]
    assert kinds(scene.at(2_000).decisions) == ["Fire"]
    step = scene.at(2_100, JobSeen(dispatched(FIRST, "p", serial=True)))
    assert step.decisions == (Cancel(FIRST, 1, f"replaced by {SECOND}"),)


def ended(scene: Scene, at_ms: int, *states: JobState) -> tuple[object, ...]:
    facts: list[JobSeen | JobGone] = []
    for number, state in enumerate(states):
        id = backfill_job_id("s", wall(at_ms + number))
        facts += [JobSeen(running(id, "p")), JobGone(id, state)]
    return scene.at(at_ms, *facts).decisions


def test_failures_in_a_row_are_written_down_and_too_many_pause_the_schedule() -> None:
    scene = scene_with(Overlap.ALLOW, pause_after_failures=3)
    failed = JobState.FAILED
    assert ended(scene, 100, failed) == (CountFailures("s", 1, 1),)
    policy = SchedulePolicy(pause_after_failures=3)
    scene.at(110, ScheduleSeen(make_schedule("s", policy=policy, failures=1)))
    assert ended(scene, 120, JobState.CANCELLED) == ()
    assert ended(scene, 130, failed, failed) == (CountFailures("s", 1, 3, wall(130)),)


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


def test_of_too_many_in_the_way_those_at_a_processor_come_first_and_then_the_newest() -> None:
    schedule = graph(Overlap.CANCEL_RUNNING)
    by_hand = [trigger_job_id("s", f"{number:03}") for number in range(150)]
    waiting: dict[str, Any] = {"schedule_created_at_ms": wall(0), "not_before_ms": wall(10**6)}
    others = [JobSeen(make_job(id, **waiting)) for id in by_hand]
    others[7] = JobSeen(has_run(by_hand[7]))
    scene = Scene(ScheduleSeen(schedule), *others, *processors("p", slots=9))
    [fire] = fires(scene.at(1_000).decisions)
    assert fire.after == (by_hand[7], *reversed(by_hand[51:]))


def test_after_an_edit_nothing_is_decided_until_what_is_promised_is_known() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    [first] = scene.at(1_000).decisions
    assert isinstance(first, Fire)
    edited = make_schedule("s", rev=2, since_ms=wall(1_000))
    assert scene.at(2_000, ScheduleSeen(edited)).decisions == ()
    step = scene.at(2_100, Settled(first, Settlement.LOST))
    assert [decision.nominal_ms for decision in step.decisions if isinstance(decision, Fire)] == [wall(2_000)]
