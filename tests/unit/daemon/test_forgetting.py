"""A replica of a shard that is followed no more takes no memory, even where garbage is not collected."""

import gc
from collections.abc import Iterator
from typing import Any
from weakref import ref

import pytest

from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.event import Event, EventType
from hascheduler.ports import Closing, EventFilter


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_what_a_core_knows_is_freed_as_soon_as_it_forgets_it() -> None:
    core = Dispatcher()
    parts: list[Any] = [ref(core._state), ref(core._state.queue), ref(core._state.jobs)]
    core.forget()
    assert [part() for part in parts] == [None] * 3


def test_a_mirror_is_freed_with_its_last_reference() -> None:
    mirror = Mirror()
    kept = ref(mirror)
    del mirror
    assert kept() is None


async def test_events_are_forgotten_and_who_follows_them_is_told_that_it_is_over() -> None:
    log = EventLog()
    log.begin("1893456000.0000000001")
    event = Event("1893456000.0000000002", 0, EventType.SUBMITTED, "j")
    with log.follow(None, EventFilter()) as follower:
        log.append([event], event.id)
        log.close()
        log.forget()
        assert log.first == log.end
        assert isinstance(await follower.next(0), Closing)
