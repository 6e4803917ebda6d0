"""Silence, on one's own clock."""

from hascheduler.dispatch.capacity.heartbeats import Heartbeats
from hascheduler.model.values.instants import MonoMs
from tests.unit.dispatch.nouns import make_processor

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


def test_one_that_comes_back_can_be_lost_again() -> None:
    heartbeats = seen("p")
    assert listen(heartbeats, 0, 5_000) == [("p", 3)]
    heartbeats.seen(make_processor("p", beat=4), MonoMs(5_000))
    assert listen(heartbeats, 5_250, 20_000) == [("p", 4)]


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


def test_the_lost_are_told_in_order() -> None:
    assert listen(seen("c", "a", "b"), 0, 5_000) == [("a", 3), ("b", 3), ("c", 3)]


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
