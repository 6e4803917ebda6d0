"""A processor that does not take up what it was given rests, and the job goes to another one; a limit ends it."""

from dataclasses import replace

import pytest

from hascheduler.dispatch.capacity.slot_pool import RESTS_MS
from hascheduler.dispatch.decisions import NOT_STARTED, Dispatch, Fail, Requeue
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import TermBegan
from hascheduler.dispatch.live_jobs.deadlines import NEVER_TAKEN_UP
from hascheduler.mirror.changes import JobGone, ProcessorSeen
from hascheduler.model.job import UNSTARTED_MAX, JobRef, JobState
from hascheduler.model.processor import Rest
from tests.unit.dispatch.nouns import dispatched, make_job, make_processor, running, wall
from tests.unit.dispatch.scene import CONFIG, START_MS, Scene, jobs, processors

MISSED_MS = CONFIG.move_after_ms


def recalled(id: str, attempt: int = 1, unstarted: int = 1) -> JobRef:
    return make_job(id, rev=3 * attempt, attempt=attempt, unstarted=unstarted)


def why(core: Dispatcher, job_id: str, span_ms: int) -> str:
    explanation = core.explain(job_id, wall(span_ms))
    assert explanation is not None
    return "; ".join(block.because for block in explanation.blocks)


def missed(*ids: str, slots: int = 4) -> Scene:
    """The processor p has not taken up those jobs, by now."""
    scene = Scene(*processors("p", slots=slots), *jobs(*(dispatched(id, "p") for id in ids)))
    for span_ms in range(START_MS, MISSED_MS, START_MS):
        assert scene.at(span_ms).decisions == ()
    assert scene.at(MISSED_MS).decisions == tuple(Requeue(id, 1, NOT_STARTED) for id in ids)
    step = scene.at(MISSED_MS, *jobs(*(recalled(id) for id in ids)))
    assert step.decisions == ()
    assert step.wake_at_ms == wall(MISSED_MS + RESTS_MS[0])
    return scene


def test_a_job_that_was_not_taken_up_goes_to_another_processor() -> None:
    scene = missed("j")
    assert scene.at(MISSED_MS, *processors("q")).decisions == (Dispatch("j", 2, "q"),)


def test_a_processor_that_rests_is_tried_with_one_job_at_a_time() -> None:
    scene = missed("a", "b", "c")
    assert scene.core.rests == {"p": Rest(3, 1, wall(MISSED_MS + RESTS_MS[0]))}
    until_ms = MISSED_MS + RESTS_MS[0]
    assert scene.at(until_ms - 1).decisions == ()
    assert scene.at(until_ms).decisions == (Dispatch("a", 2, "p"),)
    scene.at(until_ms, *jobs(dispatched("a", "p", rev=4, attempt=2, unstarted=1, dispatched_at_ms=wall(until_ms))))
    step = scene.at(until_ms + 1, *jobs(running("a", "p", rev=5, attempt=2, unstarted=1)))
    assert step.decisions == (Dispatch("b", 2, "p"), Dispatch("c", 2, "p"))
    assert scene.core.rests == {}


def test_a_trial_that_ends_by_itself_makes_room_for_the_next() -> None:
    scene = missed("a", "b")
    until_ms = MISSED_MS + RESTS_MS[0]
    assert scene.at(until_ms).decisions == (Dispatch("a", 2, "p"),)
    cancelled = dispatched("a", "p", rev=4, attempt=2, unstarted=1, dispatched_at_ms=wall(until_ms))
    assert scene.at(until_ms, *jobs(cancelled)).decisions == ()
    given_back = recalled("a", attempt=2)
    assert scene.at(until_ms, *jobs(replace(given_back, not_before_ms=wall(10**6)))).decisions == (
        Dispatch("b", 2, "p"),
    )


def test_each_rest_is_longer_than_the_one_before_up_to_a_limit() -> None:
    scene, at_ms, rests = missed("j"), MISSED_MS, []
    for attempt in range(2, 9):
        rest = scene.core.rests["p"]
        rests.append(rest.until_ms - wall(at_ms))
        at_ms = rest.until_ms - wall(0)
        assert scene.at(at_ms).decisions == (Dispatch("j", attempt, "p"),)
        now = wall(at_ms)
        given = dispatched("j", "p", rev=3 * attempt - 1, attempt=attempt, unstarted=attempt - 1, dispatched_at_ms=now)
        scene.at(at_ms, *jobs(given))
        at_ms += MISSED_MS
        assert scene.at(at_ms).decisions == (Requeue("j", attempt, NOT_STARTED),)
        scene.at(at_ms, *jobs(recalled("j", attempt, unstarted=attempt)))
    assert rests == [5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000]


def test_a_job_that_no_processor_takes_up_fails_at_a_limit() -> None:
    scene = Scene(*processors("q"), *jobs(recalled("j", UNSTARTED_MAX - 1, UNSTARTED_MAX - 1)))
    assert scene.began.decisions == (Dispatch("j", UNSTARTED_MAX, "q"),)
    scene = Scene(*processors("q"), *jobs(recalled("j", UNSTARTED_MAX, UNSTARTED_MAX)))
    assert scene.began.decisions == (Fail("j", UNSTARTED_MAX, NEVER_TAKEN_UP),)


def test_one_that_starts_the_last_attempt_that_it_may_have_is_left_alone() -> None:
    scene = Scene(*processors("q"), *jobs(running("j", "q", attempt=UNSTARTED_MAX + 1, unstarted=UNSTARTED_MAX)))
    assert [scene.at(span_ms).decisions for span_ms in (0, 60_000)] == [(), ()]


@pytest.mark.parametrize("says", [{"draining": True}, {"draining": True, "consuming": False}])
def test_a_processor_that_says_that_it_takes_none_is_not_to_blame(says: dict[str, bool]) -> None:
    scene = Scene(*processors("p"), *jobs(dispatched("j", "p")))
    scene.at(1, ProcessorSeen(make_processor("p", beat=2, **says)))
    scene.at(MISSED_MS, *jobs(recalled("j")))
    assert scene.core.rests == {}
    assert scene.at(MISSED_MS + 1, ProcessorSeen(make_processor("p", beat=3))).decisions == (Dispatch("j", 2, "p"),)


def test_a_processor_that_consumes_again_need_not_wait_for_the_end_of_its_rest() -> None:
    scene = missed("a", "b")
    scene.at(MISSED_MS + 1, ProcessorSeen(make_processor("p", beat=2, slots=4, draining=True, consuming=False)))
    step = scene.at(MISSED_MS + 2, ProcessorSeen(make_processor("p", beat=3, slots=4)))
    assert step.decisions == (Dispatch("a", 2, "p"),)


def test_the_next_leader_knows_who_rests() -> None:
    leader = missed("j")
    standby = Scene(*processors("p", slots=4), *jobs(dispatched("j", "p")), leading=False)
    standby.at(MISSED_MS, *jobs(recalled("j")))
    replayed = Dispatcher(CONFIG)
    step = replayed.step(wall(MISSED_MS), list(leader.core.state_snapshot(wall(MISSED_MS))))
    assert (step.decisions, replayed.rests) == ((), leader.core.rests)
    assert standby.core.rests == leader.core.rests
    assert standby.at(MISSED_MS, TermBegan(2)).decisions == ()


def test_why_names_the_processor_that_did_not_take_up_jobs() -> None:
    scene = missed("a", "b", "c")
    assert why(scene.core, "a", MISSED_MS) == (
        "no slot is free: p did not take up 3 jobs in a row, and rests until 2023-11-15T00:00:00.000Z"
    )
    scene.at(MISSED_MS + RESTS_MS[0])
    assert why(scene.core, "b", MISSED_MS + RESTS_MS[0]) == (
        "no slot is free: p did not take up 3 jobs in a row, and gets no more until it has taken up the "
        "one that it was given last"
    )


def test_why_names_the_processor_that_does_not_consume() -> None:
    scene = Scene(*processors("p", draining=True, consuming=False), *jobs(make_job("j")))
    assert scene.began.decisions == ()
    assert why(scene.core, "j", 0) == "no processor could run it: p gets no jobs, as it does not consume its queue"


def test_the_end_of_what_ran_before_does_not_end_a_rest() -> None:
    scene = Scene(*processors("p"), *jobs(running("old", "p"), dispatched("j", "p")))
    scene.at(MISSED_MS, *jobs(recalled("j")))
    assert scene.at(MISSED_MS + 1, JobGone("old", JobState.SUCCEEDED, wall(1))).decisions == ()
    assert set(scene.core.rests) == {"p"}
