"""Spans and instants as people read them."""

from pathlib import Path

import pytest

from hascheduler.cli.output import instants
from hascheduler.cli.output.instants import (
    clock_text,
    finest_of,
    instant_text,
    reader_zone,
    relative_span,
    set_utc,
    span_text,
    time_of_day_text,
    utc_datetime,
    with_instants_shown,
)  # fmt: skip

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


@pytest.mark.parametrize(
    ("instants_ms", "finest", "shown"),
    [([0, _M], "minutes", "00:00"), ([0, _S], "seconds", "00:00:00"), ([0, 1], "milliseconds", "00:00:00.000")],
)
def test_times_are_as_fine_as_the_finest_of_them(instants_ms: list[int], finest: str, shown: str) -> None:
    assert finest_of(instants_ms) == finest
    assert clock_text(utc_datetime(0), finest=finest) == shown


@pytest.mark.parametrize(
    ("zone", "instant", "shown"),
    [
        ("UTC", "2030-01-31T09:30:00.000Z", "2030-01-31T09:30:00Z"),
        ("", "2030-01-31T10:30:00+01:00", "2030-01-31T09:30:00Z"),
        ("Etc/UTC", "2030-01-31T09:30:00.250Z", "2030-01-31T09:30:00.250Z"),
        ("Europe/Paris", "2030-01-31T09:30:00.000Z", "2030-01-31 10:30:00 CET"),
        (":Europe/Paris", "2030-07-31T09:30:00.000Z", "2030-07-31 11:30:00 CEST"),
        ("Asia/Dubai", "2030-01-31T09:30:00.000Z", "2030-01-31 13:30:00 +04"),
        ("Nowhere/At/All", "2030-01-31T09:30:00.000Z", "2030-01-31T09:30:00Z"),
        ("../etc/passwd", "2030-01-31T09:30:00.000Z", "2030-01-31T09:30:00Z"),
        ("Europe/Paris", "in a while", "in a while"),
    ],
)
def test_an_instant_is_shown_in_the_zone_of_its_reader_and_names_it(
    monkeypatch: pytest.MonkeyPatch, zone: str, instant: str, shown: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    assert instant_text(instant) == shown
    assert with_instants_shown(f"not before {instant}.") == f"not before {shown if 'Z' in instant else instant}."


def test_both_hours_of_an_autumn_night_can_be_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Paris")
    both = [time_of_day_text(f"2026-10-25T{hour}:30:00.250Z") for hour in ("00", "01")]
    assert both == ["02:30:00.250 CEST", "02:30:00.250 CET"]


def test_without_tz_the_zone_is_that_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TZ")
    zone = tmp_path / "zoneinfo" / "Europe" / "Paris"
    monkeypatch.setattr(instants, "_LOCALTIME", str(tmp_path / "localtime"))
    assert reader_zone().key == "UTC"
    zone.parent.mkdir(parents=True)
    zone.touch()
    (tmp_path / "localtime").symlink_to(zone)
    assert instant_text("2030-01-31T09:30:00.000Z") == "2030-01-31 10:30:00 CET"
    set_utc(True)
    try:
        assert instant_text("2030-01-31T09:30:00.000Z") == "2030-01-31T09:30:00Z"
    finally:
        set_utc(False)
