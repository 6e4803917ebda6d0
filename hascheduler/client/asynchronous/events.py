"""``scheduler.events``: job events as they happen."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Unpack

from hascheduler.client.asynchronous.asking import AsyncPart
from hascheduler.client.failures import Unavailable
from hascheduler.client.options import EventFilter, EventType
from hascheduler.client.results import JobEvent

_AGAIN_S = 1.0
_CAUGHT_UP = "caught_up"
_COMMENT = ""
"""The name of a line that begins with a colon."""
_SILENCE_MAX_S = 40.0
"""How long a replica may be silent; it sends something at least every 15 s."""


class AsyncEventsApi(AsyncPart):
    async def follow(
        self, *, types: Sequence[EventType] = (), after: str | None = None, **filter: Unpack[EventFilter]
    ) -> AsyncIterator[JobEvent]:
        """Yield events without end, from now on or from ``after`` an event's id, each at least once.

        If a stream ends, go on at the next replica. `Unavailable` if no replica has sent anything for ``patience``
        seconds.
        """
        silent_s = 0.0
        while True:
            try:
                async for event in self.stream(types=types, after=after, **filter):
                    silent_s = 0.0
                    after = event.id or after
                    if event.type != _CAUGHT_UP:
                        yield event
            except Unavailable:
                if silent_s >= self._asker.patience_s:
                    raise
            silent_s += _AGAIN_S
            await asyncio.sleep(_AGAIN_S)

    async def stream(
        self, *, types: Sequence[EventType] = (), after: str | None = None, **filter: Unpack[EventFilter]
    ) -> AsyncIterator[JobEvent]:
        """Yield events over one connection until it ends; ``caught_up`` has the ``id`` to go on after."""
        fields: dict[str, str] = {}
        async for line in self._follow("/v1/events", _SILENCE_MAX_S, type=types, **filter, after=after):
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
                continue
            if "event" in fields:
                yield JobEvent(fields.get("id"), fields["event"], json.loads(fields.get("data", "{}")))
            elif _COMMENT in fields:
                yield JobEvent(fields.get("id"), _CAUGHT_UP, {})
            fields = {}
