"""How far apart exchanges should be, and how long decisions take."""

import pytest

from hascheduler.daemon.loop.batch_delay import BatchDelay
from hascheduler.daemon.loop.stepper import DecisionLag
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import TermBegan
from hascheduler.mirror.changes import JobSeen, ProcessorSeen
from hascheduler.model.documents.job import decode_job, new_job_document
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import MonoMs, WallMs
from tests.factories import NOW, make_job, make_processor


def after(per_s: int, seconds: int = 5, every_ms: int = 10, neighbours: int = 0) -> tuple[BatchDelay, MonoMs]:
    """A pace that events have passed at that rate."""
    pace, now = BatchDelay(per_event_ms=0.01, max_ms=20, neighbours=neighbours), 0
    for now in range(0, seconds * 1_000, every_ms):
        pace.passed(per_s * every_ms // 1_000, MonoMs(now))
    return pace, MonoMs(now)


@pytest.mark.parametrize(("per_s", "spacing_ms"), [(0, 0), (100, 1), (200, 2), (1_000, 10), (2_000, 20), (9_000, 20)])
def test_the_spacing_grows_with_the_rate_up_to_its_most(per_s: int, spacing_ms: float) -> None:
    pace, now = after(per_s)
    assert pace.spacing_ms(now) == pytest.approx(spacing_ms, rel=0.02)


def test_neighbours_that_share_a_load_wait_as_long_as_one_that_has_all_of_it() -> None:
    (of_all, now), (of_one, _) = after(800), after(200, neighbours=3)
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


def test_a_lag_is_the_mean_of_about_a_second() -> None:
    lag = DecisionLag()
    for at_ms in range(0, 3_000, 10):
        lag.observe(400, MonoMs(at_ms))
    assert lag.mean_ms(MonoMs(3_000)) == 400
    lag.observe(0, MonoMs(3_000))
    assert 390 < (lag.mean_ms(MonoMs(3_000)) or 0) < 400
    for at_ms in range(3_000, 8_000, 10):
        lag.observe(20, MonoMs(at_ms))
    assert 20 <= (lag.mean_ms(MonoMs(8_000)) or 0) < 25


def test_where_nothing_is_decided_there_is_no_lag() -> None:
    lag = DecisionLag()
    assert lag.mean_ms(MonoMs(0)) is None
    lag.observe(400, MonoMs(0))
    assert lag.mean_ms(MonoMs(1_999)) == 400
    assert lag.mean_ms(MonoMs(2_000)) is None
    lag.observe(30, MonoMs(60_000))
    assert lag.mean_ms(MonoMs(60_000)) == 30
    lag.clear()
    assert lag.mean_ms(MonoMs(60_000)) is None


def test_a_promise_is_open_until_the_stream_shows_it() -> None:
    core = Dispatcher()
    document = new_job_document(make_job("a"))
    job = JobSeen(decode_job("a", document))
    assert core.oldest_promise_at_ms is None
    step = core.step(NOW, [TermBegan(1, ()), ProcessorSeen(make_processor("p")), job])
    assert [type(decision) for decision in step.decisions] == [Dispatch]
    assert core.oldest_promise_at_ms == NOW
    dispatched = {**document, "state": JobState.DISPATCHED, "attempt": 1, "rev": 2, "processor": "p"}
    core.step(WallMs(NOW + 80), [JobSeen(decode_job("a", {**dispatched, "dispatched_at_ms": NOW}))])
    assert core.oldest_promise_at_ms is None
