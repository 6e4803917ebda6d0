"""When: nominal times follow from the one before, and from nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.model.instants import WallMs
from hascheduler.model.trigger import IntervalTrigger, OnceTrigger
from hascheduler.triggers import next_nominal

INSTANTS = st.integers(-(2**53), 2**53)
SPANS = st.integers(1, 2**53)


@pytest.mark.parametrize(
    ("every_ms", "anchor_ms", "after_ms", "expected"),
    [
        (1_000, 0, 0, 1_000),
        (1_000, 0, 999, 1_000),
        (1_000, 0, 1_000, 2_000),
        (1_000, 250, 0, 250),
        (1_000, 250, 250, 1_250),
        (1_000, 10_250, 0, 250),
        (1_000, 0, -1, 0),
        (1_000, 0, -1_000, 0),
        (7, 3, 1_700_000_000_000, 1_700_000_000_002),
        (1, 0, 5, 6),
    ],
)
def test_an_interval_keeps_the_phase_of_its_anchor(every_ms: int, anchor_ms: int, after_ms: int, expected: int) -> None:
    assert next_nominal(IntervalTrigger(every_ms, WallMs(anchor_ms)), after_ms) == expected


@given(SPANS, INSTANTS, INSTANTS)
def test_the_next_nominal_time_is_the_first_one_later(every_ms: int, anchor_ms: int, after_ms: int) -> None:
    nominal_ms = next_nominal(IntervalTrigger(every_ms, WallMs(anchor_ms)), after_ms)
    assert nominal_ms is not None
    assert after_ms < nominal_ms <= after_ms + every_ms
    assert (nominal_ms - anchor_ms) % every_ms == 0


@given(SPANS, INSTANTS, INSTANTS, st.integers(0, 2**53))
def test_wherever_one_begins_the_list_is_the_same(every_ms: int, anchor_ms: int, after_ms: int, early_ms: int) -> None:
    trigger = IntervalTrigger(every_ms, WallMs(anchor_ms))
    nominal_ms = next_nominal(trigger, after_ms)
    assert nominal_ms is not None
    between = max(after_ms, nominal_ms - 1 - early_ms % every_ms)
    assert next_nominal(trigger, between) == nominal_ms
    assert next_nominal(trigger, nominal_ms) == nominal_ms + every_ms


@given(INSTANTS, INSTANTS)
def test_a_one_off_comes_once(at_ms: int, after_ms: int) -> None:
    trigger = OnceTrigger(WallMs(at_ms))
    assert next_nominal(trigger, at_ms - 1) == at_ms
    assert next_nominal(trigger, at_ms) is None
    assert next_nominal(trigger, after_ms) == (at_ms if at_ms > after_ms else None)
