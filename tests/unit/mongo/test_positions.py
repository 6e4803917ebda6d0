"""Positions of several events with one cluster time."""

from bson import Timestamp

from hascheduler.model.event import next_in_change, position
from hascheduler.mongo.stream.events import position_after


def test_events_of_one_time_are_counted_with_room_for_two_each() -> None:
    at: list[str] = [""]
    for moment in (Timestamp(5, 1), Timestamp(5, 1), None, Timestamp(5, 1), Timestamp(5, 2), Timestamp(6, 1)):
        at.append(position_after(at[-1], moment))
    assert at[1:] == [
        position(5, 1), position(5, 1, 2), position(5, 1, 2), position(5, 1, 4), position(5, 2), position(6, 1),
    ]  # fmt: skip
    assert next_in_change(at[1]) < at[2]
