"""The order of the jobs that wait."""

from hypothesis import given
from hypothesis import strategies as st

from hascheduler.dispatch.policy import PriorityThenArrival
from hascheduler.dispatch.waiting import Waiting
from hascheduler.model.job import JobRef
from tests.dispatch.nouns import make_job, wall


def everything(_: str) -> bool:
    return True


def drain(waiting: Waiting) -> list[str]:
    order = []
    while (job_id := waiting.first(everything)) is not None:
        order.append(job_id)
        waiting.remove(job_id)
    return order


def waiting_of(*jobs: JobRef) -> Waiting:
    waiting = Waiting(PriorityThenArrival())
    for job in jobs:
        waiting.add(job)
    return waiting


def test_the_most_urgent_goes_first_then_the_oldest_then_the_smaller_id() -> None:
    jobs = [
        make_job("low", priority=1, submitted_at_ms=wall(0)),
        make_job("late", submitted_at_ms=wall(9)),
        make_job("second", submitted_at_ms=wall(1), sequence=2),
        make_job("first", submitted_at_ms=wall(1), sequence=1),
        make_job("urgent", priority=10, submitted_at_ms=wall(99), definition="other"),
        make_job("b", submitted_at_ms=wall(9), definition="other"),
    ]
    assert drain(waiting_of(*jobs)) == ["urgent", "first", "second", "b", "late", "low"]


def test_a_definition_that_cannot_be_placed_holds_up_nobody() -> None:
    waiting = waiting_of(make_job("stuck", priority=10, definition="x"), make_job("free", priority=1))
    assert waiting.first(lambda definition: definition != "x") == "free"
    assert waiting.first(lambda _: False) is None
    assert "stuck" in waiting


def test_a_job_that_left_is_passed_over() -> None:
    waiting = waiting_of(make_job("a", sequence=1), make_job("b", sequence=2), make_job("c", sequence=3))
    waiting.remove("a")
    waiting.remove("a")
    waiting.remove("stranger")
    assert len(waiting) == 2
    assert drain(waiting) == ["b", "c"]


def test_a_job_whose_place_changes_is_moved() -> None:
    waiting = waiting_of(make_job("a", sequence=1), make_job("b", sequence=2))
    waiting.add(make_job("b", sequence=2, priority=9))
    assert waiting.first(everything) == "b"
    waiting.add(make_job("b", sequence=2, definition="other", priority=1))
    assert drain(waiting) == ["a", "b"]


def test_a_job_that_comes_back_is_there_once() -> None:
    waiting = waiting_of(make_job("a"))
    for _ in range(3):
        waiting.remove("a")
        waiting.add(make_job("a"))
    assert drain(waiting) == ["a"]


def test_tombstones_are_swept_out_even_behind_a_job_that_is_stuck() -> None:
    waiting = waiting_of(make_job("stuck", priority=10))
    for i in range(50_000):
        waiting.add(make_job(f"j{i}"))
        waiting.remove(f"j{i}")
    assert sum(len(queue) for queue in waiting._queues.values()) < 2_000
    assert drain(waiting) == ["stuck"]


JOBS = st.builds(
    lambda name, priority, sequence, definition: make_job(
        name, priority=priority, sequence=sequence, definition=definition
    ),
    st.sampled_from("abcdef"),
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from(["x", "y"]),
)


@given(st.lists(JOBS | st.sampled_from("abcdef"), max_size=40), st.sets(st.sampled_from(["x", "y"])))
def test_waiting_equals_the_naive_model(orders: list[JobRef | str], placeable: set[str]) -> None:
    policy = PriorityThenArrival()
    waiting = Waiting(policy)
    model: dict[str, JobRef] = {}
    for order in orders:
        if isinstance(order, str):
            waiting.remove(order)
            model.pop(order, None)
        else:
            waiting.add(order)
            model[order.id] = order
        candidates = [job for job in model.values() if job.definition in placeable]
        expected = min(candidates, key=policy.key, default=None)
        assert waiting.first(placeable.__contains__) == (expected and expected.id)
    assert drain(waiting) == [job.id for job in sorted(model.values(), key=policy.key)]
