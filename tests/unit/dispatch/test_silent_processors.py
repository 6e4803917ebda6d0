"""Processors that fall silent are lost, by one's own clock; one that takes up nothing rests."""

from hascheduler.dispatch.capacity.heartbeats import Heartbeats
from hascheduler.dispatch.capacity.slot_pool import RESTS_MS, SlotPool
from hascheduler.dispatch.decisions import NOT_STARTED, Dispatch, Fail, Requeue
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import TermBegan
from hascheduler.dispatch.live_jobs.deadlines import NEVER_TAKEN_UP
from hascheduler.mirror.changes import ProcessorSeen
from hascheduler.model.job import UNSTARTED_MAX, JobRef
from hascheduler.model.processor import Rest
from hascheduler.model.values.instants import MonoMs
from tests.unit.dispatch.nouns import dispatched, make_job, make_processor, running, wall
from tests.unit.dispatch.scene import CONFIG, START_MS, Scene, jobs, processors

# Silence


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
        lost += heartbeats.newly_lost(MonoMs(now), listening=listening, heard=MonoMs(now))
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
    assert heartbeats.newly_lost(MonoMs(3_600_000), listening=True, heard=MonoMs(3_600_000)) == []
    heartbeats.seen(make_processor("p", beat=4), MonoMs(3_600_000))
    assert listen(heartbeats, 3_600_000, 3_604_750) == []


def test_time_in_which_one_did_not_listen_does_not_count() -> None:
    heartbeats = seen("p")
    listen(heartbeats, 0, 2_000)
    assert listen(heartbeats, 2_250, 60_000, listening=False) == []
    assert listen(heartbeats, 60_250, 62_750) == []
    assert listen(heartbeats, 63_000, 63_250) == [("p", 3)]


def test_one_that_left_is_not_missed_and_a_resync_begins_anew() -> None:
    heartbeats = seen("left", "stays")
    heartbeats.gone("left")
    listen(heartbeats, 0, 4_000)
    heartbeats.clear()
    heartbeats.seen(make_processor("stays", beat=3), MonoMs(4_000))
    assert listen(heartbeats, 4_250, 8_750) == []
    assert listen(heartbeats, 9_000, 9_250) == [("stays", 3)]


def test_a_beat_that_may_be_on_its_way_is_waited_for() -> None:
    heartbeats = seen("p")
    for now in range(0, 8_000, 250):
        # The stream is two seconds behind, and goes on.
        assert heartbeats.newly_lost(MonoMs(now), listening=True, heard=MonoMs(now - 2_000)) == (
            [("p", 3)] if now == 7_000 else []
        )


def test_nobody_is_lost_while_it_is_not_known_what_has_been_heard() -> None:
    heartbeats = seen("p")
    for now in range(0, 60_000, 250):
        assert heartbeats.newly_lost(MonoMs(now), listening=True, heard=None) == []
    assert listen(heartbeats, 60_250, 60_250) == [("p", 3)]


def test_an_outage_of_the_database_is_not_the_death_of_those_who_could_not_write() -> None:
    heartbeats = seen("p", "dead")
    listen(heartbeats, 0, 1_000)
    # Nobody's beat is written for nineteen seconds; the replica's own comes by again first.
    for now in range(1_250, 20_000, 250):
        assert heartbeats.newly_lost(MonoMs(now), listening=True, heard=MonoMs(1_000)) == []
    assert heartbeats.newly_lost(MonoMs(20_000), listening=True, heard=MonoMs(20_000)) == []
    heartbeats.seen(make_processor("p", beat=4), MonoMs(20_500))
    assert listen(heartbeats, 20_250, 25_250) == [("dead", 3)]


def test_one_that_dies_after_an_outage_is_lost_as_soon_as_any_other() -> None:
    heartbeats = seen("p")
    listen(heartbeats, 0, 1_000)
    heartbeats.newly_lost(MonoMs(60_000), listening=True, heard=MonoMs(1_000))
    heartbeats.seen(make_processor("p", beat=4), MonoMs(60_000))
    assert listen(heartbeats, 60_250, 65_000) == []
    assert listen(heartbeats, 65_250, 65_250) == [("p", 4)]


# Rests


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
    assert scene.core.rests == {"p": Rest(3, 1, wall(MISSED_MS + RESTS_MS[0]))}
    until_ms = MISSED_MS + RESTS_MS[0]
    assert scene.at(until_ms - 1).decisions == ()
    assert scene.at(until_ms).decisions == (Dispatch("a", 2, "p"),)
    scene.at(until_ms, *jobs(dispatched("a", "p", rev=4, attempt=2, unstarted=1, dispatched_at_ms=wall(until_ms))))
    step = scene.at(until_ms + 1, *jobs(running("a", "p", rev=5, attempt=2, unstarted=1)))
    assert step.decisions == (Dispatch("b", 2, "p"), Dispatch("c", 2, "p"))
    assert scene.core.rests == {}


def test_a_job_that_no_processor_takes_up_fails_at_a_limit() -> None:
    scene = Scene(*processors("q"), *jobs(recalled("j", UNSTARTED_MAX - 1, UNSTARTED_MAX - 1)))
    assert scene.began.decisions == (Dispatch("j", UNSTARTED_MAX, "q"),)
    scene = Scene(*processors("q"), *jobs(recalled("j", UNSTARTED_MAX, UNSTARTED_MAX)))
    assert scene.began.decisions == (Fail("j", UNSTARTED_MAX, NEVER_TAKEN_UP),)


def test_one_that_starts_the_last_attempt_that_it_may_have_is_left_alone() -> None:
    scene = Scene(*processors("q"), *jobs(running("j", "q", attempt=UNSTARTED_MAX + 1, unstarted=UNSTARTED_MAX)))
    assert [scene.at(span_ms).decisions for span_ms in (0, 60_000)] == [(), ()]


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


def test_a_lost_processor_comes_back_with_a_later_beat_and_its_slots_as_they_are() -> None:
    pool = SlotPool()
    pool.seen(make_processor("a", slots=2, beat=5))
    pool.occupy("job", "a", ())
    pool.lost("a", 5)
    pool.seen(make_processor("a", slots=2, beat=5))
    assert (pool.is_live("a"), pool.choose("log", ())) == (False, None)
    pool.seen(make_processor("a", slots=2, beat=6))
    assert (pool.is_live("a"), pool.choose("log", ()), pool.occupants("a")) == (True, "a", ["job"])
