"""Spans of time as people write them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.errors import InvalidInput
from hascheduler.model.values.durations import LONGEST_MS, format_duration, parse_duration


@pytest.mark.parametrize(
    ("written", "span_ms"),
    [
        ("200ms", 200),
        ("1s", 1_000),
        ("1m30s", 90_000),
        ("1.5s", 1_500),
        ("0.001s", 1),
        ("5m", 300_000),
        ("5ms", 5),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("1w", 604_800_000),
        ("1w2d3h4m5s6ms", 788_645_006),
        ("0s", 0),
        (0, 0),
        (1, 1_000),
        (1.5, 1_500),
        (0.001, 1),
        (LONGEST_MS // 1_000, LONGEST_MS),
    ],
)
def test_a_duration_is_read_in_milliseconds(written: str | float, span_ms: int) -> None:
    assert parse_duration(written) == span_ms


@pytest.mark.parametrize(
    "written",
    [
        "", " ", "1", "s", "-1s", "+1s", "1 s", " 1s", "1s ", "1s,", "1S", "1e3s", "1.s", ".5s", "1y", "١s", "1s1",
        "0.0001ms", "0.0004s", "9" * 13 + "s", "999999999999w", "1w" * 10_000, "1m30", "nan", "inf",
        -1, -0.001, -0.0001, 0.0001, 1e300, float("nan"), float("inf"), -float("inf"), 10**400, -(10**400), True, False,
        LONGEST_MS,
    ],
)  # fmt: skip
def test_what_is_not_a_duration_is_refused_in_few_words(written: str | float) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_duration(written, ("trigger", "every"))
    assert refusal.value.path == ("trigger", "every")
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("value", [None, [], {}, b"1s"])
def test_another_type_is_not_a_duration(value: object) -> None:
    with pytest.raises(InvalidInput):
        parse_duration(value)  # type: ignore[arg-type]


@given(st.text(alphabet="0123456789.smhdw e-", max_size=12) | st.floats() | st.integers())
def test_reading_gives_a_bounded_span_or_a_refusal(written: str | float) -> None:
    with suppress(InvalidInput):
        assert 0 <= parse_duration(written) <= LONGEST_MS


@given(st.integers(0, LONGEST_MS))
def test_a_written_duration_is_read_back(span_ms: int) -> None:
    assert parse_duration(format_duration(span_ms)) == span_ms
