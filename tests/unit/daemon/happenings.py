"""Events with only what matters spelled out, and followers that are asked at once."""

from dataclasses import replace
from typing import Any

from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.model.event import Event, EventType, position
from hascheduler.ports import EventFilter, Follower, NewEvents

ALL = EventFilter()


def happened(second: int, job: str | None = "j", **only_what_matters: Any) -> Event:
    """Something that happened to ``job`` (None: to a schedule) in that second."""
    plain = Event(position(second, 1), second * 1_000, EventType.SUBMITTED, job, "tenant", "log")
    return replace(plain, **only_what_matters)


def log_of(*seconds: int, begun_at: int = 0, events_max: int = 100) -> EventLog:
    """One that has begun, and got an event in each of ``seconds``."""
    log = EventLog(events_max)
    log.begin(position(begun_at, 1))
    for second in seconds:
        log.append([happened(second)], position(second, 1))
    return log


async def events_for(follower: Follower) -> list[int]:
    """The seconds of all the events that there are for it now."""
    seconds: list[int] = []
    while True:
        answer = await follower.next(0)
        assert isinstance(answer, NewEvents), answer
        if not answer.events:
            return seconds
        seconds += [event.at_ms // 1_000 for event in answer.events]
