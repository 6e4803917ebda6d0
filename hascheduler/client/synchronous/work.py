# Written by scripts/generate-client from hascheduler/client/asynchronous/work.py: change that one.
"""``scheduler.work``: take jobs and end them over HTTP, for processors without the broker and the database.

A program in Python has `hascheduler.processor`; this is the exchange below, as programs in other languages speak it.
"""

from collections.abc import Sequence
from typing import Any, Literal, Unpack

from hascheduler.client.bodies import encoded, plain
from hascheduler.client.requests import Request, body_of, delete_again, deleted, named, not_there, take_back
from hascheduler.client.synchronous.asking import Ask
from hascheduler.client.wire import (
    AttemptName,
    FetchResponse,
    FinishResponse,
    HeldAttemptsResponse,
    RegisterBody,
    RegisteredResponse,
    Report,
    StartedResponse,
)


class WorkApi:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def register(self, **processor: Unpack[RegisterBody]) -> RegisteredResponse:
        """A new processor, and how often it has to show life. One of which no answer tells is not used, and expires."""
        content, look = encoded(dict(processor)), take_back("work/processors")
        return self._ask(Request("POST", "/v1/work/processors", body_of, content=content, look=look))

    def deregister(self, processor: str) -> bool:
        """What it holds goes to others. False where it was not registered."""
        path = named("work/processors", processor)
        return self._ask(Request("DELETE", path, deleted, look=delete_again(path), absent=not_there))

    def fetch(
        self, processor: str, *, wait: float = 0.0, limit: int | None = None, running: Sequence[AttemptName] = ()
    ) -> FetchResponse:
        """Attempts that are promised to it; the answer is held back for up to ``wait`` seconds until there is one."""
        body = plain(processor=processor, wait=wait, limit=limit, running=list(running))
        return self._ask(Request("POST", "/v1/work/fetch", body_of, content=encoded(body), held_s=wait))

    def start(self, job: str, attempt: int, processor: str) -> StartedResponse:
        """The payload, for an attempt that is still the processor's; else `Refused`, 409: drop it."""
        body = plain(job=job, attempt=attempt, processor=processor)
        return self._ask(Request("POST", "/v1/work/start", body_of, content=encoded(body)))

    def heartbeat(
        self, processor: str, *, running: Sequence[Report] = (), draining: bool | None = None
    ) -> HeldAttemptsResponse:
        """Show life, and how far each attempt has come: which of them have to stop."""
        body = plain(processor=processor, running=list(running), draining=draining)
        return self._ask(Request("POST", "/v1/work/heartbeat", body_of, content=encoded(body)))

    def finish(
        self,
        job: str,
        attempt: int,
        processor: str,
        outcome: Literal["succeeded", "failed", "cancelled", "given_back"],
        *,
        result: Any = None,
        error: str | None = None,
        traceback: str | None = None,
        retryable: bool | None = None,
        retry_after: str | float | None = None,
    ) -> FinishResponse:
        """How the attempt ended: ``done``, or ``late`` where the job had gone on without it."""
        body = plain(
            job=job,
            attempt=attempt,
            processor=processor,
            outcome=outcome,
            result=result,
            error=error,
            traceback=traceback,
            retryable=retryable,
            retry_after=retry_after,
        )
        return self._ask(Request("POST", "/v1/work/finish", body_of, content=encoded(body)))
