"""Jobs of one schedule that must not run beside each other, and those that a later fire replaces."""

from dataclasses import replace

import pytest

from hascheduler.dispatch.decisions import (
    Cancel,
    CancelNotice,
    CountFailures,
    Dispatch,
    Fire,
    RecordVerdict,
    Settlement,
)
from hascheduler.dispatch.inputs import Settled, TermBegan
from hascheduler.mirror.changes import JobGone, JobSeen, ScheduleSeen
from hascheduler.model.job import JobState, backfill_job_id, fire_job_id
from hascheduler.model.verdict import FireCounts
from hascheduler.schema.schedule import Overlap, SchedulePolicy
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


def test_a_serial_job_waits_for_one_that_has_yet_to_be_read() -> None:
    schedule = make_schedule("s", policy=SchedulePolicy(overlap=Overlap.BUFFER_ONE))
    reapplied = (Fire("s", wall(2_000), schedule.basis_at(wall(1_000))), Dispatch(SECOND, 1, "p"))
    scene = Scene(
        ScheduleSeen(schedule), *processors("p", slots=8), JobSeen(make_job(FIRST, serial=True)), leading=False
    )
    step = scene.at(2_100, TermBegan(2, reapplied))
    assert not [decision for decision in step.decisions if isinstance(decision, Dispatch)]
    assert scene.at(2_200, JobGone(SECOND, JobState.SUCCEEDED)).decisions == (Dispatch(FIRST, 1, "p"),)


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


def test_a_later_fire_cancels_those_before_it_and_starts_when_they_have_ended() -> None:
    scene = scene_with(Overlap.CANCEL_RUNNING)
    assert kinds(scene.at(1_000).decisions) == ["Fire", "Dispatch"]
    going = running(FIRST, "p", serial=True)
    scene.at(1_100, JobSeen(going))
    step = scene.at(2_000)
    assert kinds(step.decisions) == ["Fire", "Cancel"]
    assert step.decisions[1] == Cancel(FIRST, 1, f"replaced by {SECOND}")
    asked = replace(going, rev=4, cancel_requested_at_ms=wall(2_000))
    step = scene.at(2_100, Settled(step.decisions[1], Settlement.DONE), JobSeen(asked), shown(SECOND))
    assert step.decisions == ()
    assert step.sends == (CancelNotice(FIRST, 1, "p"),)
    assert scene.at(2_200, JobGone(FIRST, JobState.CANCELLED)).decisions == (Dispatch(SECOND, 1, "p"),)


def test_a_promised_attempt_is_cancelled_when_it_has_been_seen() -> None:
    scene = scene_with(Overlap.CANCEL_RUNNING)
    assert kinds(scene.at(1_000).decisions) == ["Fire", "Dispatch"]
    assert kinds(scene.at(2_000).decisions) == ["Fire"]
    step = scene.at(2_100, JobSeen(dispatched(FIRST, "p", serial=True)))
    assert step.decisions == (Cancel(FIRST, 1, f"replaced by {SECOND}"),)


def test_a_new_leader_cancels_what_its_predecessor_did_not_get_to() -> None:
    schedule = make_schedule("s", policy=SchedulePolicy(overlap=Overlap.CANCEL_RUNNING), cursor_ms=wall(2_000))
    seen = [JobSeen(running(FIRST, "p", serial=True)), JobSeen(make_job(SECOND, serial=True))]
    scene = Scene(ScheduleSeen(schedule), *processors("p", slots=8), *seen)
    assert scene.began.decisions == (Cancel(FIRST, 1, f"replaced by {SECOND}"),)


# Failures


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


# Edits that meet what is under way


def test_after_an_edit_nothing_is_decided_until_what_is_promised_is_known() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    [first] = scene.at(1_000).decisions
    assert isinstance(first, Fire)
    edited = make_schedule("s", rev=2, since_ms=wall(1_000))
    assert scene.at(2_000, ScheduleSeen(edited)).decisions == ()
    step = scene.at(2_100, Settled(first, Settlement.LOST))
    assert [decision.nominal_ms for decision in step.decisions if isinstance(decision, Fire)] == [wall(2_000)]


def test_a_conclusion_that_got_no_answer_holds_up_those_after_it() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    [first] = scene.at(1_000).decisions
    assert scene.at(2_000, Settled(first, Settlement.UNKNOWN)).decisions == ()
    step = scene.at(6_000)
    assert (step.decisions, step.retried) == ((first,), True)
    step = scene.at(6_100, Settled(first, Settlement.DONE))
    assert not any(isinstance(decision, RecordVerdict) for decision in step.decisions)
    assert [d.nominal_ms for d in step.decisions if isinstance(d, Fire)] == [wall(n * 1_000) for n in range(2, 7)]
