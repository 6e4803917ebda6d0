"""What the dispatcher repairs: lost processors, attempts that do not start, jobs to stop; who is silent or rests."""

import pytest

from hascheduler.dispatch.capacity.heartbeats import Heartbeats
from hascheduler.dispatch.capacity.slot_pool import RESTS_MS, SlotPool
from hascheduler.dispatch.decisions import (
    LOST_UNSTARTED,
    NOT_STARTED,
    UNREGISTERED,
    Cancel,
    Dispatch,
    Fail,
    Publish,
    Requeue,
)
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input, ProcessorLost, TermBegan
from hascheduler.dispatch.live_jobs.deadlines import NEVER_STARTED
from hascheduler.mirror.changes import JobGone, ProcessorGone, ProcessorSeen
from hascheduler.model.job import UNSTARTED_MAX, JobRef
from hascheduler.model.processor import Rest
from hascheduler.model.values.instants import MonoMs
from hascheduler.schema.definition import Definition
from hascheduler.schema.noun import document_of, read_document
from hascheduler.schema.retry import RetryPolicy
from tests.unit.dispatch.nouns import dispatched, make_job, make_processor, noun_seen, running, wall
from tests.unit.dispatch.scene import CONFIG, START_MS, Scene, jobs, processors


@pytest.mark.parametrize(
    ("gone", "unstarted"), [(ProcessorLost("p", 1), LOST_UNSTARTED), (ProcessorGone("p"), UNREGISTERED)]
)
def test_the_jobs_of_a_dead_processor_are_requeued_and_go_elsewhere_with_the_next_attempt(
    gone: Input, unstarted: str
) -> None:
    scene = Scene(*processors("p", "q"), *jobs(running("a", "p"), dispatched("b", "p")))
    step = scene.at(100, gone)
    assert step.decisions == (Requeue("a", 1, "processor lost"), Requeue("b", 1, unstarted))
    # It may start yet, and keeps its slot until it is known that it has not.
    assert scene.core.occupied("p") == 1
    assert scene.at(200).decisions == ()
    step = scene.at(300, *jobs(make_job("a", rev=4, attempt=1), make_job("b", rev=3, attempt=1)))
    assert step.decisions == (Dispatch("a", 2, "q"), Dispatch("b", 2, "q"))


def test_a_job_that_was_lost_too_often_fails_but_one_that_never_ran_or_only_failed_does_not() -> None:
    scene = Scene(
        *processors("p"),
        noun_seen(Definition(name="log", rev=1, retry=RetryPolicy(attempts_max=3, lost_attempts_max=4))),
        *jobs(
            running("a", "p", losses=3),
            dispatched("b", "p", losses=8),
            running("c", "p", attempt=9),
            running("d", "p", failures=2, losses=2),
        ),
    )  # fmt: skip
    assert scene.at(100, ProcessorLost("p", 1)).decisions == (
        Fail("a", 1, "processor lost; 4 attempts lost, as many as lost_attempts allows"),
        Requeue("b", 1, LOST_UNSTARTED),
        Requeue("c", 9, "processor lost"),
        Requeue("d", 1, "processor lost"),
    )


def test_a_job_of_a_definition_of_0_2_0_fails_after_as_many_attempts_failed_or_lost() -> None:
    stored = document_of(Definition(name="log", rev=1, retry=RetryPolicy(attempts_max=3)))
    del stored["lost_attempts_max"]
    scene = Scene(
        *processors("p"), noun_seen(read_document(Definition, "log", stored)),
        *jobs(running("a", "p", failures=2), running("b", "p", failures=1, losses=1), running("c", "p", losses=1)),
    )  # fmt: skip
    assert scene.at(100, ProcessorLost("p", 1)).decisions == (
        Fail("a", 1, "processor lost; attempts used up"),
        Fail("b", 1, "processor lost; attempts used up"),
        Requeue("c", 1, "processor lost"),
    )


def test_a_job_that_was_given_back_after_its_fail_was_promised_is_not_dispatched_again() -> None:
    once = noun_seen(Definition(name="log", rev=1, retry=RetryPolicy(lost_attempts_max=1)))
    scene = Scene(*processors("p", "q"), once, *jobs(running("a", "p")))
    assert [type(d) for d in scene.at(100, ProcessorLost("p", 1)).decisions] == [Fail]
    assert scene.at(200, *jobs(make_job("a", rev=4, attempt=1))).decisions == ()
    lost = "processor lost; 1 attempt lost, as many as lost_attempts allows"
    assert scene.at(300, JobGone("a")).settled == (Fail("a", 1, lost),)


def test_orphans_are_moved_in_portions() -> None:
    scene = Scene(*jobs(*(running(f"j{i}", "p") for i in range(5))), repairs_max=2)
    assert [len(scene.began.decisions), *(len(scene.at(0).decisions) for _ in range(3))] == [2, 2, 1, 0]
    assert scene.began.wake_at_ms == wall(0)


def test_an_attempt_that_does_not_start_is_sent_again_and_then_moved() -> None:
    scene = Scene(*processors("p", "q"), *jobs(dispatched("j", "p", dispatched_at_ms=wall(0))))
    assert scene.began.sends == (Publish("j", 1, "p"),)
    assert scene.at(START_MS - 1).sends == ()
    for turn in (1, 2):
        step = scene.at(turn * START_MS)
        assert (step.sends, step.decisions) == ((Publish("j", 1, "p"),), ())
    step = scene.at(3 * START_MS)
    assert (step.sends, step.decisions) == ((), (Requeue("j", 1, NOT_STARTED),))
    recalled = make_job("j", rev=3, attempt=1, unstarted=1)
    assert scene.at(3 * START_MS + 1, *jobs(recalled)).decisions == (Dispatch("j", 2, "q"),)


def test_a_job_that_was_to_stop_and_lost_its_processor_is_not_run_again() -> None:
    scene = Scene(*processors("p", "q"), *jobs(running("j", "p", rev=4, cancel_requested_at_ms=wall(0))))
    assert scene.at(100, ProcessorGone("p")).decisions == (Requeue("j", 1, "processor lost"),)
    step = scene.at(200, *jobs(make_job("j", rev=5, attempt=1, cancel_requested_at_ms=wall(0))))
    assert step.decisions == (Cancel("j", 1, "cancel requested; the attempt was lost"),)
    assert scene.at(300).decisions == ()
    assert scene.at(400, JobGone("j")).settled == step.decisions


@pytest.mark.parametrize(
    ("counts", "ended"),
    [
        ({"failures": 1}, "its attempt failed"),
        ({"losses": 1}, "one attempt was lost with its processor"),
        ({"losses": 2}, "2 attempts were lost with their processors"),
        ({"failures": 2, "losses": 1}, "2 attempts failed and one attempt was lost with its processor"),
    ],
)
def test_why_tells_what_was_lost_from_what_failed(counts: dict[str, int], ended: str) -> None:
    scene = Scene(*processors("p"), *jobs(make_job("a", attempt=3, retry_at_ms=wall(60_000), **counts)))
    explained = scene.why("a", 100)
    [block] = explained.blocks
    assert block.because.startswith(f"{ended}; the next one starts at ")


TIMEOUT_MS = 5_000
OWN_INTERVAL_MS = 1_000


def seen(*ids: str) -> Heartbeats:
    """Their third beats have been seen at 0."""
    heartbeats = Heartbeats(TIMEOUT_MS, OWN_INTERVAL_MS)
    for id in ids:
        heartbeats.seen(make_processor(id, beat=3), MonoMs(0))
    return heartbeats


def listen(heartbeats: Heartbeats, since: int, until: int, *, listening: bool = True) -> list[tuple[str, int]]:
    """The stepper's turns between two times, each a quarter of a second after the last."""
    lost: list[tuple[str, int]] = []
    for now in range(since, until + 1, 250):
        lost += heartbeats.newly_lost(MonoMs(now), listening=listening, seen_through=MonoMs(now))
    return lost


def test_a_processor_whose_beat_stands_still_is_lost_once() -> None:
    heartbeats = seen("p")
    assert listen(heartbeats, 0, TIMEOUT_MS - 250) == []
    assert listen(heartbeats, TIMEOUT_MS, 60_000) == [("p", 3)]


def test_only_a_changed_beat_is_a_sign_of_life() -> None:
    heartbeats = seen("dead", "live")
    listen(heartbeats, 0, 4_000)
    heartbeats.seen(make_processor("dead", beat=3, draining=True), MonoMs(4_000))
    heartbeats.seen(make_processor("live", beat=4), MonoMs(4_000))
    assert listen(heartbeats, 4_250, 8_750) == [("dead", 3)]


def test_ones_own_pause_is_not_the_death_of_the_others() -> None:
    heartbeats = seen("p")
    listen(heartbeats, 0, 1_000)
    assert heartbeats.newly_lost(MonoMs(3_600_000), listening=True, seen_through=MonoMs(3_600_000)) == []
    heartbeats.seen(make_processor("p", beat=4), MonoMs(3_600_000))
    assert listen(heartbeats, 3_600_000, 3_604_750) == []


def test_a_beat_that_may_be_on_its_way_is_waited_for() -> None:
    heartbeats = seen("p")
    for now in range(0, 8_000, 250):
        # The stream is two seconds behind, and goes on.
        assert heartbeats.newly_lost(MonoMs(now), listening=True, seen_through=MonoMs(now - 2_000)) == (
            [("p", 3)] if now == 7_000 else []
        )


def test_an_outage_of_the_database_is_not_the_death_of_those_who_could_not_write() -> None:
    heartbeats = seen("p", "dead")
    listen(heartbeats, 0, 1_000)
    # Nobody's beat is written for nineteen seconds; the replica's own comes by again first.
    for now in range(1_250, 20_000, 250):
        assert heartbeats.newly_lost(MonoMs(now), listening=True, seen_through=MonoMs(1_000)) == []
    assert heartbeats.newly_lost(MonoMs(20_000), listening=True, seen_through=MonoMs(20_000)) == []
    heartbeats.seen(make_processor("p", beat=4), MonoMs(20_500))
    assert listen(heartbeats, 20_250, 25_250) == [("dead", 3)]


MISSED_MS = CONFIG.move_after_ms


def recalled(id: str, attempt: int = 1, unstarted: int = 1) -> JobRef:
    return make_job(id, rev=3 * attempt, attempt=attempt, unstarted=unstarted)


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


def test_a_processor_that_rests_is_tried_with_one_job_at_a_time() -> None:
    scene = missed("a", "b", "c")
    assert scene.core.state.pool.rests == {"p": Rest(3, 1, wall(MISSED_MS + RESTS_MS[0]))}
    until_ms = MISSED_MS + RESTS_MS[0]
    assert scene.at(until_ms - 1).decisions == ()
    assert scene.at(until_ms).decisions == (Dispatch("a", 2, "p"),)
    scene.at(until_ms, *jobs(dispatched("a", "p", rev=4, attempt=2, unstarted=1, dispatched_at_ms=wall(until_ms))))
    step = scene.at(until_ms + 1, *jobs(running("a", "p", rev=5, attempt=2, unstarted=1)))
    assert step.decisions == (Dispatch("b", 2, "p"), Dispatch("c", 2, "p"))
    assert scene.core.state.pool.rests == {}


def test_a_job_that_no_processor_takes_up_fails_at_a_limit() -> None:
    scene = Scene(*processors("q"), *jobs(recalled("j", UNSTARTED_MAX - 1, UNSTARTED_MAX - 1)))
    assert scene.began.decisions == (Dispatch("j", UNSTARTED_MAX, "q"),)
    scene = Scene(*processors("q"), *jobs(recalled("j", UNSTARTED_MAX, UNSTARTED_MAX)))
    assert scene.began.decisions == (Fail("j", UNSTARTED_MAX, NEVER_STARTED),)


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
    assert (step.decisions, replayed.state.pool.rests) == ((), leader.core.state.pool.rests)
    assert standby.core.state.pool.rests == leader.core.state.pool.rests
    assert standby.at(MISSED_MS, TermBegan(2)).decisions == ()


def test_a_lost_processor_comes_back_with_a_later_beat_and_its_slots_as_they_are() -> None:
    pool = SlotPool()
    pool.seen(make_processor("a", slots=2, beat=5))
    pool.occupy("job", "a", ())
    pool.lost("a", 5)
    pool.seen(make_processor("a", slots=2, beat=5))
    assert (pool.is_live("a"), pool.choose("log", ())) == (False, None)
    pool.seen(make_processor("a", slots=2, beat=6))
    assert (pool.is_live("a"), pool.choose("log", ()), pool.occupants("a")) == (True, "a", ["job"])
