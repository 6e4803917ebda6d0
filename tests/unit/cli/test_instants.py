"""Spans and instants as people read them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from hascheduler.cli.output.instants import (
    clock_text,
    day_text,
    finest_of,
    offset_text,
    relative_span,
    span_text,
    utc_datetime,
)

_S, _M, _H, _D = 1_000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [
        (0, "0s"),
        (999, "0s"),
        (_S, "1s"),
        (59_999, "59s"),
        (_M, "1m"),
        (_M + _S, "1m 1s"),
        (_H, "1h"),
        (_H + _S, "1h"),
        (3 * _H + 12 * _M + 5 * _S, "3h 12m"),
        (_D + _M, "1d"),
        (126 * _D + 3 * _H, "126d 3h"),
    ],
)
def test_a_span_shows_its_two_largest_units(span_ms: int, text: str) -> None:
    assert span_text(span_ms) == text


@pytest.mark.parametrize(("at_ms", "text"), [(_H, "now"), (_H + _M, "in 1m"), (_H - 5 * _S, "5s ago"), (_H + 1, "now")])
def test_how_far_away_an_instant_is(at_ms: int, text: str) -> None:
    assert relative_span(at_ms, _H) == text


def test_a_local_time_shows_its_day_and_offset() -> None:
    local = datetime(2027, 3, 28, 1, 0, tzinfo=UTC).astimezone(ZoneInfo("Europe/Paris"))
    assert (day_text(local), clock_text(local), offset_text(local)) == ("Sun 28 Mar 2027", "03:00", "+02:00")


@pytest.mark.parametrize(
    ("instants_ms", "finest", "shown"),
    [([0, _M], "minutes", "00:00"), ([0, _S], "seconds", "00:00:00"), ([0, 1], "milliseconds", "00:00:00.000")],
)
def test_times_are_as_fine_as_the_finest_of_them(instants_ms: list[int], finest: str, shown: str) -> None:
    assert finest_of(instants_ms) == finest
    assert clock_text(utc_datetime(0), finest=finest) == shown
