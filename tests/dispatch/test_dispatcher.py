"""The dispatcher, scene by scene: facts in, decisions out. Spans are milliseconds since the scene began."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import CancelNotice, Decision, Dispatch, Fail, Fire, Publish, Requeue, Settlement
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input, ProcessorLost, Resynced, Settled, TermBegan, TransportSeen, TrustLost
from hascheduler.dispatch.step import Step
from hascheduler.mirror.changes import (
    DefinitionGone,
    DefinitionSeen,
    JobGone,
    JobSeen,
    ProcessorGone,
    ProcessorSeen,
    ScheduleGone,
    ScheduleSeen,
)
from hascheduler.model.definition import Definition
from hascheduler.model.documents import fired_job
from hascheduler.model.job import JobRef, JobState
from tests.dispatch.nouns import dispatched, make_job, make_processor, make_schedule, running, wall

CONFIG = DispatchConfig()
START_MS, ECHO_MS, DOUBT_MS = CONFIG.start_timeout_ms, CONFIG.echo_timeout_ms, CONFIG.doubt_ms
FAR = wall(10**9)
"""A cursor so late that the schedule keeps out of the way."""


class Scene:
    """One dispatcher and its time."""

    def __init__(self, *facts: Input, leading: bool = True, **limits: int) -> None:
        self.core = Dispatcher(DispatchConfig(**limits))
        self.core.step(wall(0), facts)
        self.began = self.at(0, TermBegan(1)) if leading else Step()

    def at(self, span_ms: int, *inputs: Input) -> Step:
        return self.core.step(wall(span_ms), inputs)


def jobs(*seen: JobRef) -> list[Input]:
    return [JobSeen(job) for job in seen]


def processors(*ids: str, **more: Any) -> list[Input]:
    return [ProcessorSeen(make_processor(id, **more)) for id in ids]


def echo(step: Step, *known: JobRef, at: int = 0) -> list[Input]:
    """What the stream shows of the dispatches of a step."""
    revs = {job.id: job.rev for job in known}
    shown: list[Input] = []
    for decision in step.decisions:
        if isinstance(decision, Dispatch):
            job_id, attempt, rev = decision.job_id, decision.attempt, revs[decision.job_id] + 1
            shown += jobs(dispatched(job_id, decision.processor, attempt=attempt, rev=rev, dispatched_at_ms=wall(at)))
    return shown


def settled(decisions: Sequence[Decision], settlement: Settlement = Settlement.DONE) -> list[Input]:
    return [Settled(decision, settlement) for decision in decisions]


# Who decides


def test_nothing_is_decided_before_a_term_has_begun() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *jobs(make_job("j")), *processors("p"), leading=False)
    step = scene.at(60_000, JobSeen(dispatched("k", "gone")), ProcessorLost("p", 1))
    assert step == Step()
    assert not scene.core.leading


def test_a_term_that_begins_decides_at_once() -> None:
    scene = Scene(*jobs(make_job("j")), *processors("p"))
    assert scene.began.decisions == (Dispatch("j", 1, "p"),)
    assert scene.core.leading


def test_nothing_is_decided_after_trust_is_lost() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p"))
    step = scene.at(1_000, *jobs(make_job("j")), TrustLost())
    assert step == Step()
    assert scene.at(60_000) == Step()
    assert scene.core.occupied("p") == 0


def test_nothing_is_decided_after_a_resync_until_the_next_term() -> None:
    scene = Scene(*processors("p"))
    assert scene.at(100, Resynced(), *jobs(make_job("j")), *processors("p")) == Step()
    assert scene.at(200, TermBegan(2)).decisions == (Dispatch("j", 1, "p"),)


def test_promises_are_forgotten_with_the_trust_and_decided_again_in_the_next_term() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s", every_ms=1_000)), *processors("p"))
    first = scene.at(1_000, *jobs(make_job("j")))
    assert len(first.decisions) == 3
    assert scene.at(1_100, TrustLost()) == Step()
    assert scene.core.occupied("p") == 0
    second = scene.at(1_200, TermBegan(2))
    assert second.decisions == first.decisions
    assert not second.reasserted


def test_a_job_that_was_only_promised_goes_with_the_trust() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    assert [type(d) for d in scene.at(1_000).decisions] == [Fire]
    scene.at(1_100, TrustLost())
    assert scene.at(1_200, ScheduleGone("s"), *processors("p"), TermBegan(2)).decisions == ()


def test_a_late_settlement_of_a_lost_term_changes_nothing() -> None:
    scene = Scene(*processors("p"))
    first = scene.at(100, *jobs(make_job("j")))
    scene.at(200, TrustLost())
    step = scene.at(300, *settled(first.decisions, Settlement.LOST))
    assert (step.decisions, step.doubtful) == ((), ())


# Fires and dispatches


def test_a_nominal_time_is_fired_once_and_its_job_goes_out_in_the_same_step() -> None:
    schedule = make_schedule("s")
    scene = Scene(ScheduleSeen(schedule), *processors("p"))
    step = scene.at(1_000)
    fire = Fire("s", wall(1_000))
    assert step.decisions == (fire, Dispatch(fire.job_id, 1, "p"))
    assert scene.at(1_100).decisions == ()
    job = fired_job(schedule, wall(1_000))
    step = scene.at(1_200, JobSeen(job), JobSeen(dispatched(job.id, "p")))
    assert step.settled == (Dispatch(job.id, 1, "p"),)
    step = scene.at(1_300, ScheduleSeen(replace(schedule, cursor_ms=wall(1_000))))
    assert step.settled == (fire,)
    assert scene.at(1_999).decisions == ()
    assert [d for d in scene.at(2_000).decisions if isinstance(d, Fire)] == [Fire("s", wall(2_000))]


def test_it_wakes_for_the_next_nominal_time() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    assert scene.began.wake_at_ms == wall(1_000)


def test_a_fire_whose_job_is_known_already_makes_no_second_one() -> None:
    """An earlier leader inserted it, and the cursor did not follow."""
    schedule = make_schedule("s", cursor_ms=wall(0))
    job = replace(fired_job(schedule, wall(1_000)), rev=7, state=JobState.RUNNING, attempt=2, processor="p")
    scene = Scene(ScheduleSeen(schedule), *processors("p"), JobSeen(job))
    assert scene.at(1_000).decisions == (Fire("s", wall(1_000)),)
    step = scene.at(1_100, ScheduleSeen(replace(schedule, cursor_ms=wall(1_000))))
    assert step.settled == (Fire("s", wall(1_000)),)
    assert scene.core.occupied("p") == 1


def test_a_fire_that_lost_takes_its_provisional_job_back() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    fire = Fire("s", wall(1_000))
    assert scene.at(1_000).decisions == (fire,)
    step = scene.at(1_100, ScheduleGone("s"), Settled(fire, Settlement.LOST))
    assert step.settled == (fire,)
    assert scene.at(1_200, *processors("p")).decisions == ()


def test_a_fire_that_lost_after_its_job_was_promised_has_the_job_read() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p"))
    fire, dispatch = scene.at(1_000).decisions
    step = scene.at(1_100, ScheduleGone("s"), *settled([fire, dispatch], Settlement.LOST))
    assert step.doubtful == (fire.job_id,)
    assert scene.at(1_150).decisions == ()
    scene.at(1_200, JobGone(fire.job_id))
    assert scene.at(1_200 + 2 * ECHO_MS).decisions == ()


def test_a_step_is_bounded_and_the_rest_follows_at_once() -> None:
    seen = [make_job(f"j{i}") for i in range(5)]
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p", slots=100), fires_max=2, dispatches_max=3)
    step = scene.at(5_000, *jobs(*seen))
    assert [type(d) for d in step.decisions] == [Fire, Fire, Dispatch, Dispatch, Dispatch]
    assert step.wake_at_ms == wall(5_000)
    decided = [scene.at(5_000).decisions for _ in range(4)]
    assert [len(decisions) for decisions in decided] == [5, 4, 1, 0]


def test_the_most_urgent_job_gets_the_slot() -> None:
    scene = Scene(*processors("p", slots=1))
    step = scene.at(100, *jobs(make_job("a", priority=1), make_job("b", priority=9)))
    assert step.decisions == (Dispatch("b", 1, "p"),)
    assert scene.at(200).decisions == ()
    assert scene.at(300, JobGone("b")).decisions == (Dispatch("a", 1, "p"),)


def test_a_definition_runs_at_most_as_often_as_it_may() -> None:
    scene = Scene(*processors("p", slots=10), DefinitionSeen(Definition("log", 1, max_concurrency=2)))
    step = scene.at(
        100, *jobs(*(make_job(f"j{i}", sequence=i) for i in range(4)), make_job("k", definition="x", priority=0))
    )
    assert [d.job_id for d in step.decisions if isinstance(d, Dispatch)] == ["j0", "j1", "k"]
    assert scene.at(200, JobGone("j0")).decisions == (Dispatch("j2", 1, "p"),)
    assert scene.at(300, DefinitionSeen(Definition("log", 2, max_concurrency=1))).decisions == ()
    assert scene.at(400, JobGone("j1")).decisions == ()
    assert scene.at(500, DefinitionGone("log")).decisions == (Dispatch("j3", 1, "p"),)


def test_a_job_waits_for_its_time() -> None:
    scene = Scene(*processors("p"))
    step = scene.at(100, *jobs(make_job("j", not_before_ms=wall(700))))
    assert (step.decisions, step.wake_at_ms) == ((), wall(700))
    assert scene.at(699).decisions == ()
    assert scene.at(700).decisions == (Dispatch("j", 1, "p"),)


def test_a_job_whose_time_is_moved_waits_for_the_new_one() -> None:
    scene = Scene(*processors("p"))
    scene.at(100, *jobs(make_job("j", not_before_ms=wall(700))))
    scene.at(200, *jobs(make_job("j", rev=2, not_before_ms=wall(900))))
    assert scene.at(800).decisions == ()
    assert scene.at(900).decisions == (Dispatch("j", 1, "p"),)


def test_a_slot_is_promised_once() -> None:
    scene = Scene(*processors("p", slots=2))
    step = scene.at(100, *jobs(*(make_job(f"j{i}", sequence=i) for i in range(5))))
    assert [d.job_id for d in step.decisions if isinstance(d, Dispatch)] == ["j0", "j1"]
    assert scene.core.occupied("p") == 2
    assert scene.at(200, *settled(step.decisions)).decisions == ()
    assert scene.at(300, *echo(step, make_job("j0"), make_job("j1"), at=100)).decisions == ()


def test_a_cancelled_job_frees_its_slot() -> None:
    scene = Scene(*processors("p", slots=1))
    first = scene.at(100, *jobs(make_job("a"), make_job("b", sequence=1)))
    step = scene.at(200, JobGone("a"))
    assert step.settled == first.decisions
    assert step.decisions == (Dispatch("b", 1, "p"),)


def test_a_decision_that_ends_before_it_is_applied_is_settled_when_it_is() -> None:
    """The account of the journal opens an entry only once it is written, perhaps after the job was cancelled."""
    scene = Scene(*processors("p", slots=1))
    first = scene.at(100, *jobs(make_job("a")))
    scene.at(200, JobGone("a"))
    assert scene.at(300, *settled(first.decisions, Settlement.LOST)).settled == first.decisions


# Promises that do not come back


def test_a_promise_that_does_not_come_back_is_decided_again_with_a_majority() -> None:
    scene = Scene(*processors("p"))
    first = scene.at(100, *jobs(make_job("j")))
    assert first.wake_at_ms == wall(100 + ECHO_MS)
    assert scene.at(99 + ECHO_MS, *settled(first.decisions)).decisions == ()
    again = scene.at(100 + ECHO_MS)
    assert again.decisions == first.decisions
    assert again.reasserted
    assert scene.at(101 + ECHO_MS).decisions == ()


def test_a_promise_kept_with_a_majority_has_the_job_read_and_holds_it_back_until_then() -> None:
    scene = Scene(*processors("p"))
    first = scene.at(100, *jobs(make_job("j")))
    scene.at(100 + ECHO_MS)
    step = scene.at(200 + ECHO_MS, *settled(first.decisions))
    assert (step.settled, step.doubtful, step.decisions) == (first.decisions, ("j",), ())
    step = scene.at(300 + ECHO_MS, *echo(first, make_job("j")))
    assert step.decisions == ()
    assert scene.core.occupied("p") == 1


def test_an_unknown_answer_leaves_the_promise_standing() -> None:
    scene = Scene(*processors("p", slots=1))
    first = scene.at(100, *jobs(make_job("j"), make_job("k", sequence=1)))
    step = scene.at(200, *settled(first.decisions, Settlement.UNKNOWN))
    assert (step.decisions, step.settled, step.doubtful) == ((), (), ())
    assert scene.core.occupied("p") == 1


def test_a_lost_claim_is_read_again_held_back_and_then_tried_again() -> None:
    scene = Scene(*processors("p", slots=1))
    first = scene.at(100, *jobs(make_job("a"), make_job("b", sequence=1)))
    step = scene.at(200, *settled(first.decisions, Settlement.LOST))
    assert (step.settled, step.doubtful) == (first.decisions, ("a",))
    assert step.decisions == (Dispatch("b", 1, "p"),)
    assert scene.at(300, JobGone("b")).decisions == ()
    assert scene.at(199 + DOUBT_MS).decisions == ()
    assert scene.at(200 + DOUBT_MS).decisions == (Dispatch("a", 1, "p"),)


def test_news_of_a_doubtful_job_ends_the_doubt() -> None:
    scene = Scene(*processors("p"))
    first = scene.at(100, *jobs(make_job("a")))
    scene.at(200, *settled(first.decisions, Settlement.LOST))
    assert scene.at(300, *jobs(make_job("a", rev=4, attempt=1))).decisions == (Dispatch("a", 2, "p"),)


# Processors that are lost


@pytest.mark.parametrize("gone", [ProcessorLost("p", 1), ProcessorGone("p")])
def test_the_jobs_of_a_dead_processor_are_requeued_and_go_elsewhere_with_the_next_attempt(gone: Input) -> None:
    scene = Scene(*processors("p", "q"), *jobs(running("a", "p"), dispatched("b", "p")))
    step = scene.at(100, gone)
    assert step.decisions == (Requeue("a", 1, "processor lost"), Requeue("b", 1, "processor lost"))
    assert scene.core.occupied("p") == 0
    assert scene.at(200).decisions == ()
    step = scene.at(300, *jobs(make_job("a", rev=4, attempt=1), make_job("b", rev=3, attempt=1)))
    assert step.decisions == (Dispatch("a", 2, "q"), Dispatch("b", 2, "q"))


def test_a_job_whose_attempts_are_used_up_fails_but_one_that_never_ran_does_not() -> None:
    scene = Scene(
        *processors("p"), DefinitionSeen(Definition("log", 1, attempts_max=3)),
        *jobs(running("a", "p", attempt=3), dispatched("b", "p", attempt=9), running("c", "p", attempt=2)),
    )  # fmt: skip
    decided = scene.at(100, ProcessorLost("p", 1)).decisions
    assert [type(d) for d in decided] == [Fail, Requeue, Requeue]
    assert [d.job_id for d in decided if not isinstance(d, Fire)] == ["a", "b", "c"]


def test_a_job_that_was_given_back_after_its_fail_was_promised_is_not_dispatched_again() -> None:
    scene = Scene(*processors("p", "q"), DefinitionSeen(Definition("log", 1, attempts_max=1)), *jobs(running("a", "p")))
    assert [type(d) for d in scene.at(100, ProcessorLost("p", 1)).decisions] == [Fail]
    assert scene.at(200, *jobs(make_job("a", rev=4, attempt=1))).decisions == ()
    assert scene.at(300, JobGone("a")).settled == (Fail("a", 1, "processor lost; attempts used up"),)


def test_a_processor_that_comes_back_in_time_keeps_its_jobs() -> None:
    scene = Scene(*processors("p"), *jobs(running("a", "p")), leading=False)
    scene.at(100, ProcessorLost("p", 1))
    scene.at(200, *processors("p", beat=2))
    assert scene.at(300, TermBegan(1)).decisions == ()


def test_a_promise_to_a_processor_that_dies_is_moved_once_it_shows() -> None:
    scene = Scene(*processors("p", slots=1))
    first = scene.at(100, *jobs(make_job("a")))
    assert scene.at(200, ProcessorLost("p", 1)).decisions == ()
    assert scene.at(300, *echo(first, make_job("a"))).decisions == (Requeue("a", 1, "processor lost"),)


def test_a_requeue_that_lost_is_tried_again_only_if_the_job_is_still_held() -> None:
    scene = Scene(*processors("p"), *jobs(running("a", "p"), running("b", "p")))
    decided = scene.at(100, ProcessorGone("p")).decisions
    step = scene.at(200, *settled(decided, Settlement.LOST))
    assert step.doubtful == ("a", "b")
    scene.at(300, JobGone("a"))
    assert scene.at(199 + DOUBT_MS).decisions == ()
    assert scene.at(200 + DOUBT_MS).decisions == (Requeue("b", 1, "processor lost"),)


def test_orphans_are_moved_in_portions() -> None:
    scene = Scene(*jobs(*(running(f"j{i}", "p") for i in range(5))), repairs_max=2)
    assert [len(scene.began.decisions), *(len(scene.at(0).decisions) for _ in range(3))] == [2, 2, 1, 0]
    assert scene.began.wake_at_ms == wall(0)


# Attempts that do not start


def test_an_attempt_that_does_not_start_is_sent_again_and_then_moved() -> None:
    scene = Scene(*processors("p", "q"), *jobs(dispatched("j", "p", dispatched_at_ms=wall(0))))
    assert scene.began.sends == (Publish("j", 1, "p"),)
    assert scene.at(START_MS - 1).sends == ()
    for turn in (1, 2):
        step = scene.at(turn * START_MS)
        assert (step.sends, step.decisions) == ((Publish("j", 1, "p"),), ())
    step = scene.at(3 * START_MS)
    assert (step.sends, step.decisions) == ((), (Requeue("j", 1, "not started in time"),))
    assert scene.at(3 * START_MS + 1, *jobs(make_job("j", rev=3, attempt=1))).decisions == (Dispatch("j", 2, "p"),)


def test_an_attempt_that_starts_is_left_alone() -> None:
    scene = Scene(*processors("p"), *jobs(dispatched("j", "p")))
    scene.at(100, *jobs(running("j", "p")))
    for span_ms in range(1_000, 60_000, 1_000):
        step = scene.at(span_ms)
        assert (step.sends, step.decisions) == ((), ())


def test_a_processor_is_blamed_only_for_the_time_in_which_it_could_be_told() -> None:
    scene = Scene(*processors("p"), *jobs(dispatched("j", "p")))
    scene.at(100, TransportSeen(False))
    for span_ms in range(1_000, 60_000, 1_000):
        step = scene.at(span_ms)
        assert (step.sends, step.decisions) == ((), ())
    unblocked = 60_000
    scene.at(unblocked, TransportSeen(True))
    told: list[object] = []
    moved: list[Decision] = []
    span_ms = unblocked
    while not moved:
        span_ms += 500
        step = scene.at(span_ms)
        told += step.sends
        moved += step.decisions
    assert len(told) >= 2
    assert unblocked + CONFIG.move_after_ms <= span_ms <= unblocked + CONFIG.move_after_ms + START_MS


def test_a_new_leader_gives_what_it_finds_dispatched_its_full_time() -> None:
    scene = Scene(*processors("p"), *jobs(dispatched("j", "p", dispatched_at_ms=wall(-600_000))))
    assert scene.began.sends == (Publish("j", 1, "p"),)
    assert scene.began.decisions == ()
    assert [scene.at(turn * START_MS).decisions for turn in (1, 2)] == [(), ()]
    assert [type(d) for d in scene.at(3 * START_MS).decisions] == [Requeue]


# The broker


def test_while_the_broker_blocks_nothing_is_dispatched_but_fires_go_on() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p"), TransportSeen(False))
    step = scene.at(1_000, *jobs(make_job("j")))
    assert step.decisions == (Fire("s", wall(1_000)),)
    step = scene.at(1_500, TransportSeen(True))
    assert {type(d) for d in step.decisions} == {Dispatch}
    assert len(step.decisions) == 2


# Cancelling


def test_a_running_job_that_is_asked_to_stop_is_told_once() -> None:
    asked = running("j", "p", rev=4, cancel_requested_at_ms=wall(50))
    scene = Scene(*processors("p"), *jobs(running("j", "p")))
    assert scene.at(100, *jobs(asked)).sends == (CancelNotice("j", 1, "p"),)
    assert scene.at(200, *jobs(replace(asked, rev=5))).sends == ()


def test_a_new_leader_tells_again_what_the_old_one_may_not_have_told() -> None:
    scene = Scene(*processors("p"), *jobs(running("j", "p", cancel_requested_at_ms=wall(0))), leading=False)
    assert scene.at(100).sends == ()
    assert scene.at(200, TermBegan(2)).sends == (CancelNotice("j", 1, "p"),)
    assert scene.at(300).sends == ()


def test_a_job_that_was_to_stop_and_lost_its_processor_is_not_run_again() -> None:
    scene = Scene(*processors("p", "q"), *jobs(running("j", "p", rev=4, cancel_requested_at_ms=wall(0))))
    assert scene.at(100, ProcessorGone("p")).decisions == (Requeue("j", 1, "processor lost"),)
    step = scene.at(200, *jobs(make_job("j", rev=5, attempt=1, cancel_requested_at_ms=wall(0))))
    assert step.decisions == (Fail("j", 1, "cancel requested; the attempt was lost"),)
    assert scene.at(300).decisions == ()
    assert scene.at(400, JobGone("j")).settled == step.decisions


# Taking over


def test_a_new_term_publishes_again_what_is_dispatched() -> None:
    scene = Scene(*processors("p"), *jobs(dispatched("a", "p"), running("b", "p"), make_job("c", not_before_ms=FAR)))
    assert scene.began.sends == (Publish("a", 1, "p"),)
    scene.at(100, TrustLost())
    assert scene.at(200, TermBegan(2)).sends == (Publish("a", 1, "p"),)


def test_decisions_that_were_applied_again_are_not_decided_again() -> None:
    schedule = make_schedule("s", every_ms=1_000)
    fire = Fire("s", wall(1_000))
    reapplied = (Dispatch("a", 1, "p"), fire, Dispatch(fire.job_id, 1, "p"), Requeue("b", 1, "processor lost"))
    scene = Scene(
        ScheduleSeen(schedule), *processors("p", slots=9), *jobs(make_job("a"), running("b", "p")), leading=False
    )
    step = scene.at(1_500, TermBegan(2, reapplied))
    assert step.decisions == ()
    assert scene.core.occupied("p") == 1  # the job that the fire inserted has not been seen yet
    assert scene.at(1_600, JobSeen(fired_job(schedule, wall(1_000)))).decisions == ()
    assert scene.core.occupied("p") == 2
    step = scene.at(1_700, *jobs(make_job("b", rev=4, attempt=1)))
    assert step.decisions == (Dispatch("b", 2, "p"),)
    assert step.settled == (Requeue("b", 1, "processor lost"),)


def test_what_the_mirror_shows_of_the_reapplied_is_settled_at_once() -> None:
    reapplied = (Dispatch("a", 1, "p"), Dispatch("ended", 1, "p"), Dispatch("b", 1, "p"), Requeue("b", 1, "lost"))
    scene = Scene(*processors("p"), *jobs(dispatched("a", "p"), dispatched("b", "p", attempt=2)), leading=False)
    step = scene.at(100, TermBegan(2, reapplied))
    assert step.decisions == ()
    assert step.wake_at_ms == wall(START_MS) or step.wake_at_ms == wall(100 + START_MS)
    assert scene.core.occupied("p") == 2


def test_a_reapplied_requeue_is_awaited_although_the_mirror_still_shows_the_attempt_before() -> None:
    reapplied = (Dispatch("j", 1, "p"), Requeue("j", 1, "lost"))
    scene = Scene(*processors("p"), *jobs(make_job("j")), leading=False)
    assert scene.at(100, TermBegan(2, reapplied)).decisions == ()
    assert scene.at(200, *jobs(dispatched("j", "p"))).decisions == ()
    assert scene.at(300, *jobs(make_job("j", rev=3, attempt=1))).decisions == (Dispatch("j", 2, "p"),)


# Equal minds


def test_the_same_facts_lead_to_the_same_decisions() -> None:
    facts: list[Input] = [
        ScheduleSeen(make_schedule("s")), *processors("p", "q", slots=3),
        *jobs(*(make_job(f"j{i}", priority=i % 3, sequence=i) for i in range(9))),
    ]  # fmt: skip
    steps = [[scene.began, scene.at(1_000), scene.at(2_000, JobGone("j8"))] for scene in (Scene(*facts), Scene(*facts))]
    assert steps[0] == steps[1]
