# Written by scripts/generate-client from hascheduler/client/asynchronous/events.py: change that one.
"""``scheduler.events``: what happens to jobs, as it happens."""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from hascheduler.client.bodies import query_of
from hascheduler.client.failures import Unavailable
from hascheduler.client.requests import Request, body_of
from hascheduler.client.results import JobEvent
from hascheduler.client.synchronous.asking import Follow
from hascheduler.client.wire import EventType

_AGAIN_S = 1.0
_SILENCE_MAX_S = 60.0
"""A replica says something every 15 s at least."""


class EventsApi:
    def __init__(self, follow: Follow, patience_s: float) -> None:
        self._follow = follow
        self._patience_s = patience_s

    def follow(
        self,
        *,
        types: Sequence[EventType] = (),
        definition: str | None = None,
        schedule: str | None = None,
        job: str | None = None,
        tenant: str | None = None,
        after: str | None = None,
    ) -> Iterator[JobEvent]:
        """Events without an end, from now on or from ``after`` an event's id; each at least once.

        A stream that ends goes on at the next replica, where the last one stopped. `Unavailable` where no replica
        has spoken for ``patience`` seconds. An event of type ``reset`` says that some were missed: list the jobs again.
        """
        query = query_of(type=types, definition=definition, schedule=schedule, job=job, tenant=tenant)
        silent_s = 0.0
        while True:
            request: Request[Any] = Request(
                "GET", "/v1/events", body_of, [*query, *query_of(after=after)], more_s=_SILENCE_MAX_S
            )
            try:
                for event in self._events(request):
                    silent_s = 0.0
                    after = event.id or after
                    yield event
            except Unavailable:
                if silent_s >= self._patience_s:
                    raise
            silent_s += _AGAIN_S
            time.sleep(_AGAIN_S)

    def _events(self, request: Request[Any]) -> Iterator[JobEvent]:
        """One stream. A block that is cut off in the middle says nothing."""
        fields: dict[str, str] = {}
        for line in self._follow(request):
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            elif "event" in fields:
                yield JobEvent(fields.get("id"), fields["event"], json.loads(fields.get("data", "{}")))
                fields = {}
            else:
                fields = {}
