"""``scheduler.work``: take jobs and end them over HTTP, for processors without the broker and the database.

A program in Python has `hascheduler.processor`; this is the exchange below, as programs in other languages speak it.
"""

from collections.abc import Sequence
from typing import Literal, Unpack

from hascheduler.client.answers import (
    FetchResponse,
    FinishResponse,
    HeldAttemptsResponse,
    RegisteredResponse,
    StartedResponse,
)
from hascheduler.client.asynchronous.asking import Ask
from hascheduler.client.bodies import plain
from hascheduler.client.options import AttemptName, FinishOptions, RegisterBody, Report
from hascheduler.client.requests import asked, delete, delete_again, named, take_back


class AsyncWorkApi:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def register(self, **processor: Unpack[RegisterBody]) -> RegisteredResponse:
        """A new processor, and how often it has to show life. One of which no answer tells is not used, and expires."""
        path = "/v1/work/processors"
        return await self._ask(
            asked(RegisteredResponse, "POST", path, body=dict(processor), look=take_back("work/processors"))
        )

    async def deregister(self, processor: str) -> bool:
        """What it holds goes to others. False if it was not registered."""
        path = named("work/processors", processor)
        return await self._ask(delete(path, look=delete_again(path)))

    async def fetch(
        self, processor: str, *, wait: float = 0.0, limit: int | None = None, running: Sequence[AttemptName] = ()
    ) -> FetchResponse:
        """Attempts that are promised to it; the answer is held back for up to ``wait`` seconds until there is one."""
        body = plain(processor=processor, wait=wait, limit=limit, running=list(running))
        return await self._ask(asked(FetchResponse, "POST", "/v1/work/fetch", body=body, held_s=wait))

    async def start(self, job: str, attempt: int, processor: str) -> StartedResponse:
        """The payload, for an attempt that is still the processor's; else `Refused`, 409: drop it."""
        body = plain(job=job, attempt=attempt, processor=processor)
        return await self._ask(asked(StartedResponse, "POST", "/v1/work/start", body=body))

    async def heartbeat(
        self, processor: str, *, running: Sequence[Report] = (), draining: bool | None = None
    ) -> HeldAttemptsResponse:
        """Show life, and how far each attempt has come: which of them have to stop."""
        body = plain(processor=processor, running=list(running), draining=draining)
        return await self._ask(asked(HeldAttemptsResponse, "POST", "/v1/work/heartbeat", body=body))

    async def finish(
        self,
        job: str,
        attempt: int,
        processor: str,
        outcome: Literal["succeeded", "failed", "cancelled", "given_back"],
        **options: Unpack[FinishOptions],
    ) -> FinishResponse:
        """How the attempt ended: ``done``, or ``late`` if the job had gone on without it."""
        body = plain(job=job, attempt=attempt, processor=processor, outcome=outcome, **options)
        return await self._ask(asked(FinishResponse, "POST", "/v1/work/finish", body=body))
