"""The more there is to do, the further apart; after a quiet time there is no wait."""

import pytest

from hascheduler.daemon.loop.batch_delay import BatchDelay
from hascheduler.model.values.instants import MonoMs


def after(per_s: int, seconds: int = 5, every_ms: int = 10, shards: int = 1) -> tuple[BatchDelay, MonoMs]:
    """A pace that events have passed at that rate."""
    pace, now = BatchDelay(per_event_ms=0.01, max_ms=20, shards=shards), 0
    for now in range(0, seconds * 1_000, every_ms):
        pace.passed(per_s * every_ms // 1_000, MonoMs(now))
    return pace, MonoMs(now)


@pytest.mark.parametrize(("per_s", "spacing_ms"), [(0, 0), (100, 1), (200, 2), (1_000, 10), (2_000, 20), (9_000, 20)])
def test_the_spacing_grows_with_the_rate_up_to_its_most(per_s: int, spacing_ms: float) -> None:
    pace, now = after(per_s)
    assert pace.spacing_ms(now) == pytest.approx(spacing_ms, rel=0.02)


def test_several_shards_that_share_a_load_wait_as_long_as_one_that_has_all_of_it() -> None:
    (of_all, now), (of_one, _) = after(800), after(200, shards=4)
    assert of_one.spacing_ms(now) == of_all.spacing_ms(now) > 0


def test_one_waits_for_what_is_left_of_the_spacing() -> None:
    pace, now = after(1_000)
    assert pace.wait_s(now) == pytest.approx(0.010, rel=0.02)
    assert pace.wait_s(MonoMs(now + 4)) == pytest.approx(0.006, rel=0.05)
    assert pace.wait_s(MonoMs(now + 11)) == 0


def test_after_a_quiet_time_there_is_no_wait() -> None:
    pace, now = after(9_000)
    assert pace.spacing_ms(MonoMs(now + 5_000)) < 0.01
    assert BatchDelay(0.01, 20).wait_s(MonoMs(0)) == 0


def test_without_a_longest_wait_there_is_none() -> None:
    pace = BatchDelay(per_event_ms=0.01, max_ms=0)
    pace.passed(10_000, MonoMs(0))
    assert pace.wait_s(MonoMs(0)) == 0


def test_a_clock_that_stands_still_or_goes_back_does_no_harm() -> None:
    pace, now = after(1_000)
    pace.passed(1, now)
    pace.passed(1, MonoMs(now - 1_000))
    assert 0 < pace.spacing_ms(MonoMs(now - 2_000)) <= 20
