"""Positions, and the JSON form of events."""

import json

import pytest

from hascheduler.model.event import (
    Event,
    EventType,
    encode_event,
    is_position,
    next_in_change,
    number_of,
    position,
    seconds_of,
)


def test_positions_sort_as_texts_in_the_order_of_the_stream() -> None:
    in_order = [
        position(9, 4_294_967_295),
        position(10, 1),
        next_in_change(position(10, 1)),
        position(10, 1, 2),
        next_in_change(position(10, 1, 2)),
        position(10, 1, 10),
        position(10, 2),
        position(1_893_456_000, 1),
    ]
    assert in_order == sorted(set(in_order))
    assert all(is_position(text) for text in in_order)
    assert [number_of(text) for text in in_order] == [0, 0, 1, 2, 3, 10, 0, 0]
    assert [seconds_of(text) for text in in_order] == [9, *[10] * 6, 1_893_456_000]


@pytest.mark.parametrize(
    "text",
    ["", "1.2", "0000000001.000000002", "0000000001.0000000002.", "0000000001.0000000002.1", "x000000001.0000000002",
     "0000000001.0000000002\n", "٠000000001.0000000002", " 0000000001.0000000002"],
)  # fmt: skip
def test_malformed_positions_are_none(text: str) -> None:
    assert not is_position(text)


def test_more_events_of_one_time_than_there_are_numbers_are_still_positions() -> None:
    last = position(1, 2, 10**7)
    assert is_position(last)
    assert next_in_change(last) == last


def test_an_event_is_one_line_of_json_with_every_field() -> None:
    event = Event(position(5, 1), 5_250, EventType.RETURNED, "job:1", "acme", "log", None, 2, "p", 1, 7_000, losses=3)
    text = json.dumps(encode_event(event))
    assert "\n" not in text
    assert json.loads(text) == {
        "id": "0000000005.0000000001",
        "at": "1970-01-01T00:00:05.250Z",
        "type": "returned",
        "job": "job:1",
        "tenant": "acme",
        "definition": "log",
        "schedule": None,
        "attempt": 2,
        "processor": "p",
        "failures": 1,
        "losses": 3,
        "retry_at": "1970-01-01T00:00:07.000Z",
        "priority": None,
        "error": None,
        "count": None,
        "nominal_at": None,
        "through_at": None,
    }


def test_an_event_of_a_schedule_tells_the_times_that_were_missed() -> None:
    kind = EventType.SCHEDULE_MISSED
    event = Event(position(5, 1), 5_000, kind, None, schedule="s", count=2, nominal_ms=1_000, through_ms=2_000)
    told = encode_event(event)
    assert [told[name] for name in ("job", "schedule", "count", "nominal_at", "through_at")] == [
        None, "s", 2, "1970-01-01T00:00:01.000Z", "1970-01-01T00:00:02.000Z"
    ]  # fmt: skip
