"""Which connection is evicted for a new one."""

from hypothesis import given
from hypothesis import strategies as st

from hascheduler.api.http.connection_table import Admitted, ConnectionTable
from hascheduler.api.http.shares import RefusalReason


def enter(here: ConnectionTable[str], *names: str) -> list[Admitted[str] | RefusalReason]:
    """Each of the address that its name begins with."""
    return [here.enter(name, name[0]) for name in names]


def test_a_busy_one_gives_no_way_and_the_last_places_are_reserved() -> None:
    here: ConnectionTable[str] = ConnectionTable(4, 2)
    enter(here, "a1", "b1")
    here.set_busy("a1")
    here.set_busy("b1")
    assert enter(here, "c1") == [Admitted(reserved=True)]
    # What idles on the reserve gives way too.
    assert enter(here, "d1") == [Admitted("c1")]
    here.set_busy("d1")
    assert enter(here, "e1") == [Admitted(reserved=True)]
    here.set_busy("e1")
    assert enter(here, "f1") == [RefusalReason.FULL]


@given(
    st.integers(1, 12),
    st.integers(0, 4),
    st.lists(st.tuples(st.sampled_from("ewrl"), st.sampled_from("abc"), st.integers(0, 9)), max_size=150),
)
def test_whatever_happens_the_books_balance(total: int, reserve: int, steps: list[tuple[str, str, int]]) -> None:
    here: ConnectionTable[str] = ConnectionTable(total, min(reserve, total))
    present: set[str] = set()
    busy: set[str] = set()
    for step, address, number in steps:
        name = f"{address}{number}"
        match step:
            case "e" if name not in present:
                entered = here.enter(name, address)
                if isinstance(entered, Admitted):
                    present.add(name)
                    if entered.evicts is not None:
                        assert entered.evicts in present - busy - {name}
                        present.discard(entered.evicts)
                else:
                    assert len(present) >= 1
                    assert entered is RefusalReason.ADDRESS_SHARE or present <= busy
            case "w" if name in present:
                here.set_busy(name)
                busy.add(name)
            case "r" if name in present:
                here.set_idle(name)
                busy.discard(name)
            case "l":
                here.leave(name)
                present.discard(name)
                busy.discard(name)
        assert len(here) == len(present) <= total
    for name in present:
        here.leave(name)
    assert len(here) == 0
