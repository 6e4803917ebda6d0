"""``scheduler.work``: take jobs and end them over HTTP, for processors without the broker and the database.

A program in Python has `hascheduler.processor`; this is the exchange below, as programs in other languages speak it.
"""

from collections.abc import Sequence
from typing import Literal, Unpack

from hascheduler.client import answers
from hascheduler.client.asynchronous.asking import AsyncPart
from hascheduler.client.bodies import plain
from hascheduler.client.options import AttemptName, FinishOptions, RegisterBody, Report
from hascheduler.client.requests import delete, named, take_back

_PROCESSORS = "work/processors"


class AsyncWorkApi(AsyncPart):
    async def register(self, **processor: Unpack[RegisterBody]) -> answers.RegisteredResponse:
        """A new processor, and how often it has to show life. One of which no answer tells is not used, and expires."""
        path, look = f"/v1/{_PROCESSORS}", take_back(_PROCESSORS)
        return await self._post(answers.RegisteredResponse, path, dict(processor), look=look)

    async def deregister(self, processor: str) -> bool:
        """What it holds goes to others. False if it was not registered."""
        return await self._asker.ask(delete(named(_PROCESSORS, processor)))

    async def fetch(
        self, processor: str, *, wait: float = 0.0, limit: int | None = None, running: Sequence[AttemptName] = ()
    ) -> answers.FetchResponse:
        """Attempts that are promised to it; the answer is held back for up to ``wait`` seconds until there is one."""
        body = plain(processor=processor, wait=wait, limit=limit, running=list(running))
        return await self._post(answers.FetchResponse, "/v1/work/fetch", body, held_s=wait)

    async def start(self, job: str, attempt: int, processor: str) -> answers.StartedResponse:
        """The payload, for an attempt that is still the processor's; else `Refused`, 409: drop it."""
        body = {"job": job, "attempt": attempt, "processor": processor}
        return await self._post(answers.StartedResponse, "/v1/work/start", body)

    async def heartbeat(
        self, processor: str, *, running: Sequence[Report] = (), draining: bool | None = None
    ) -> answers.HeldAttemptsResponse:
        """Show life, and how far each attempt has come: which of them have to stop."""
        body = plain(processor=processor, running=list(running), draining=draining)
        return await self._post(answers.HeldAttemptsResponse, "/v1/work/heartbeat", body)

    async def finish(
        self,
        job: str,
        attempt: int,
        processor: str,
        outcome: Literal["succeeded", "failed", "cancelled", "given_back"],
        **options: Unpack[FinishOptions],
    ) -> answers.FinishResponse:
        """How the attempt ended: ``done``, or ``late`` if the job had gone on without it."""
        body = plain(job=job, attempt=attempt, processor=processor, outcome=outcome, **options)
        return await self._post(answers.FinishResponse, "/v1/work/finish", body)
