"""How long the leader's decisions take, as the stepper measures it of the core's promises."""

from hascheduler.daemon.loop.stepper import DecisionLag
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import TermBegan
from hascheduler.mirror.changes import JobSeen, ProcessorSeen
from hascheduler.model.documents.job import decode_job, new_job_document
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import MonoMs, WallMs
from tests.factories import NOW, make_job, make_processor


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
