"""Jobs that share slots: none is lost, none begins before it came, and more slots never let one begin later."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from hascheduler.dispatch.forecast.queueing import STEP_MS, AlikeJobs, Service, congestions, serve
from hascheduler.dispatch.schedules.previews import finished

STEPS = 40
BATCHES = st.builds(AlikeJobs, st.integers(1, 30), st.integers(1, 12 * STEP_MS))
ARRIVING = st.dictionaries(st.integers(0, STEPS - 1), st.lists(BATCHES, min_size=1, max_size=3), max_size=12)
RUNNING = st.lists(st.builds(AlikeJobs, st.integers(1, 3), st.integers(1, 5 * STEP_MS)), max_size=4)


def served(arriving: dict[int, list[AlikeJobs]], slots: int, running: list[AlikeJobs] | None = None) -> Service:
    return finished(serve(arriving, slots, STEPS, running or []))


def begun(service: Service) -> list[int]:
    """How many jobs have begun by the end of each step."""
    total, found = 0, []
    for step in range(STEPS):
        total += sum(batch.jobs for batch in service.began.get(step, ()))
        found.append(total)
    return found


@given(ARRIVING, st.integers(0, 50), RUNNING)
def test_each_job_that_arrives_begins_once_or_waits(
    arriving: dict[int, list[AlikeJobs]], slots: int, running: list[AlikeJobs]
) -> None:
    service, arrived = served(arriving, slots, running), 0
    for step, total in enumerate(begun(service)):
        arrived += sum(batch.jobs for batch in arriving.get(step, ()))
        assert total + service.waiting[step] == arrived
        assert service.waiting[step] >= 0
    works = [sum(batch.jobs * batch.cost_ms for batch in batches) for batches in arriving.values()]
    if not service.waiting[-1]:
        assert sum(works) == sum(batch.jobs * batch.cost_ms for each in service.began.values() for batch in each)


@given(ARRIVING, st.integers(0, 40), st.integers(1, 10), RUNNING)
def test_more_slots_never_let_a_job_begin_later(
    arriving: dict[int, list[AlikeJobs]], slots: int, more: int, running: list[AlikeJobs]
) -> None:
    fewer, greater = served(arriving, slots, running), served(arriving, slots + more, running)
    assert all(many >= few for few, many in zip(begun(fewer), begun(greater), strict=True))
    assert all(many <= few for few, many in zip(fewer.waiting, greater.waiting, strict=True))


@given(ARRIVING, st.integers(0, 40), RUNNING)
def test_it_waits_exactly_where_more_slots_are_wanted_than_there_are(
    arriving: dict[int, list[AlikeJobs]], slots: int, running: list[AlikeJobs]
) -> None:
    service = served(arriving, slots, running)
    for step in range(STEPS):
        if service.waiting[step]:
            assert service.wanted[step] > slots
        elif not running:
            assert service.wanted[step] <= slots


@given(ARRIVING, st.integers(1, 20))
def test_first_come_first_served(arriving: dict[int, list[AlikeJobs]], slots: int) -> None:
    queue = deque(batch.cost_ms for step in sorted(arriving) for batch in arriving[step] for _ in range(batch.jobs))
    service = served(arriving, slots)
    for step in sorted(service.began):
        for batch in service.began[step]:
            assert [queue.popleft() for _ in range(batch.jobs)] == [batch.cost_ms] * batch.jobs


@given(ARRIVING, st.integers(1, 20))
def test_no_more_jobs_of_whole_minutes_run_than_there_are_slots(
    arriving: dict[int, list[AlikeJobs]], slots: int
) -> None:
    whole = {
        step: [AlikeJobs(batch.jobs, -(-batch.cost_ms // STEP_MS) * STEP_MS) for batch in batches]
        for step, batches in arriving.items()
    }
    running = [0] * (STEPS + 20)
    for step, batches in served(whole, slots).began.items():
        for batch in batches:
            for later in range(step, step + batch.cost_ms // STEP_MS):
                running[later] += batch.jobs
    assert max(running) <= slots


def test_41_jobs_of_5_minutes_for_16_slots_have_all_begun_after_10_minutes() -> None:
    service = served({3: [AlikeJobs(41, 5 * STEP_MS)]}, 16)
    assert {step: sum(batch.jobs for batch in each) for step, each in service.began.items()} == {3: 16, 8: 16, 13: 9}
    assert service.waiting[3:14] == [25] * 5 + [9] * 5 + [0]
    assert service.waits == {3: 10}
    (peak,) = congestions(service)
    assert (peak.first, peak.last, peak.worst, peak.jobs, peak.waiting, peak.is_over) == (3, 12, 3, 41, 25, True)
    assert service.wanted[3] == 41


def test_a_slot_runs_several_short_jobs_in_a_minute() -> None:
    assert served({0: [AlikeJobs(100, 10_000)]}, 2).began == {step: [AlikeJobs(12, 10_000)] for step in range(8)} | {
        8: [AlikeJobs(4, 10_000)]
    }


def test_what_runs_already_holds_its_slot() -> None:
    service = served({0: [AlikeJobs(1, 1_000)]}, 1, [AlikeJobs(1, 3 * STEP_MS)])
    assert service.began == {3: [AlikeJobs(1, 1_000)]}
    assert service.jobs[:4] == [2, 2, 2, 1]


def test_where_there_are_no_slots_all_wait() -> None:
    service = served({1: [AlikeJobs(7, 1)]}, 0)
    assert service.waiting == [0] + [7] * (STEPS - 1)
    (peak,) = congestions(service)
    assert not peak.is_over
    assert service.waits == {1: STEPS - 1}
