"""Named instants, against the obvious model: a dictionary that is sorted when it is asked."""

from hypothesis import given
from hypothesis import strategies as st

from hascheduler.dispatch.timers import Timers

NAMES = st.sampled_from("abcdef")
INSTANTS = st.integers(0, 9) | st.integers(0, 9).map(lambda number: number * 10**5)
"""Some close together, some minutes apart."""
ORDERS = st.lists(
    st.tuples(st.just("set"), NAMES, INSTANTS)
    | st.tuples(st.just("clear"), NAMES, INSTANTS)
    | st.tuples(st.just("take"), st.integers(0, 4), INSTANTS),
    max_size=60,
)


@given(ORDERS)
def test_timers_equal_the_naive_model(orders: list[tuple[str, str | int, int]]) -> None:
    timers = Timers()
    model: dict[str, int] = {}
    for order, what, instant in orders:
        match order, what:
            case "set", str(name):
                timers.set(name, instant)
                model[name] = instant
            case "clear", str(name):
                timers.clear(name)
                model.pop(name, None)
            case "take", int(limit):
                due = sorted((at, name) for name, at in model.items() if at <= instant)[:limit]
                assert list(timers.take_due(instant, limit)) == [(name, at) for at, name in due]
                for _, name in due:
                    del model[name]
        assert timers.next_at() == min(model.values(), default=None)
        assert len(timers) == len(model)
        assert all((name in timers) is (name in model) for name in "abcdef")


def test_a_timer_that_is_set_again_while_it_is_taken_is_due_again() -> None:
    timers = Timers()
    timers.set("a", 1)
    taken = []
    for name, at_ms in timers.take_due(10, 3):
        taken.append(at_ms)
        timers.set(name, at_ms + 1)
    assert taken == [1, 2, 3]


def test_names_that_move_again_and_again_leave_nothing_behind() -> None:
    timers = Timers()
    for at_ms in range(100_000):
        timers.set("a", at_ms)
        timers.set("b", -at_ms)
    assert len(timers._soon) + timers._binned < 2_000
    assert list(timers.take_due(0, 10)) == [("b", -99_999)]
    assert timers.next_at() == 99_999
