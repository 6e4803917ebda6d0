"""Silence, on one's own clock."""

from hascheduler.dispatch.heartbeats import Heartbeats
from hascheduler.model.instants import MonoMs
from tests.dispatch.nouns import make_processor

TIMEOUT_MS = 5_000


def listen(heartbeats: Heartbeats, since: int, until: int, *, listening: bool = True) -> list[tuple[str, int]]:
    """The stepper's turns between two times, each a quarter of a second after the last."""
    lost: list[tuple[str, int]] = []
    for now in range(since, until + 1, 250):
        lost += heartbeats.newly_lost(MonoMs(now), listening=listening)
    return lost


def test_a_processor_whose_beat_stands_still_is_lost_once() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    heartbeats.seen(make_processor("p", beat=3))
    assert listen(heartbeats, 0, TIMEOUT_MS - 250) == []
    assert listen(heartbeats, TIMEOUT_MS, 60_000) == [("p", 3)]


def test_only_a_changed_beat_is_a_sign_of_life() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    heartbeats.seen(make_processor("dead", beat=3))
    heartbeats.seen(make_processor("live", beat=3))
    listen(heartbeats, 0, 4_000)
    heartbeats.seen(make_processor("dead", beat=3, draining=True))
    heartbeats.seen(make_processor("live", beat=4))
    assert listen(heartbeats, 4_250, 8_750) == [("dead", 3)]


def test_one_that_comes_back_can_be_lost_again() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    heartbeats.seen(make_processor("p", beat=3))
    assert listen(heartbeats, 0, 5_000) == [("p", 3)]
    heartbeats.seen(make_processor("p", beat=4))
    assert listen(heartbeats, 5_250, 20_000) == [("p", 4)]


def test_ones_own_pause_is_not_the_death_of_the_others() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    heartbeats.seen(make_processor("p", beat=3))
    listen(heartbeats, 0, 1_000)
    assert heartbeats.newly_lost(MonoMs(3_600_000), listening=True) == []
    heartbeats.seen(make_processor("p", beat=4))
    assert listen(heartbeats, 3_600_000, 3_604_750) == []


def test_time_in_which_one_did_not_listen_does_not_count() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    heartbeats.seen(make_processor("p", beat=3))
    listen(heartbeats, 0, 2_000)
    assert listen(heartbeats, 2_250, 60_000, listening=False) == []
    assert listen(heartbeats, 60_250, 62_750) == []
    assert listen(heartbeats, 63_000, 63_250) == [("p", 3)]


def test_one_that_left_is_not_missed_and_a_resync_begins_anew() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    heartbeats.seen(make_processor("left", beat=3))
    heartbeats.seen(make_processor("stays", beat=3))
    heartbeats.gone("left")
    listen(heartbeats, 0, 4_000)
    heartbeats.clear()
    heartbeats.seen(make_processor("stays", beat=3))
    assert listen(heartbeats, 4_250, 8_750) == []
    assert listen(heartbeats, 9_000, 9_250) == [("stays", 3)]


def test_the_lost_are_told_in_order() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    for id in ("c", "a", "b"):
        heartbeats.seen(make_processor(id))
    assert listen(heartbeats, 0, 5_000) == [("a", 1), ("b", 1), ("c", 1)]
