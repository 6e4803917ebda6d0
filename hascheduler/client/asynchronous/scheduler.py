"""The scheduler for programs with an asyncio loop."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, TypeVar, Unpack

import httpx
from tenacity import AsyncRetrying

from hascheduler.client import flows, requests
from hascheduler.client.asynchronous.asking import each
from hascheduler.client.asynchronous.cluster import AsyncClusterApi
from hascheduler.client.asynchronous.events import AsyncEventsApi
from hascheduler.client.asynchronous.resources import (
    AsyncDefinitionsApi,
    AsyncLanesApi,
    AsyncTenantsApi,
    AsyncTokensApi,
)
from hascheduler.client.asynchronous.schedules import AsyncSchedulesApi
from hascheduler.client.asynchronous.work import AsyncWorkApi
from hascheduler.client.bodies import BatchJob, JobFilter, JobOptions, query_of
from hascheduler.client.exchange import Exchange, tls_options
from hascheduler.client.failures import Retryable
from hascheduler.client.flows import Flow, Pause
from hascheduler.client.requests import Request
from hascheduler.client.results import Changed, Job, Submitted, read_job
from hascheduler.client.retries import retry_policy
from hascheduler.client.wire import WhyResponse

T = TypeVar("T")


class AsyncScheduler:
    """Asks the replicas at ``urls``, in turn where one fails, each request for ``patience`` seconds.

    ``http`` is a client of your own, for proxies or certificates; you close it.
    """

    def __init__(
        self,
        *urls: str,
        token: str | None = None,
        ca_file: str | None = None,
        patience: float = 30.0,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._exchange = Exchange(urls, token)
        self._patience_s = patience
        self._own = httpx.AsyncClient(**tls_options(ca_file)) if http is None else None
        self._http = self._own or http
        self.schedules = AsyncSchedulesApi(self._ask)
        self.definitions = AsyncDefinitionsApi(self._ask)
        self.lanes = AsyncLanesApi(self._ask)
        self.tenants = AsyncTenantsApi(self._ask)
        self.tokens = AsyncTokensApi(self._ask)
        self.cluster = AsyncClusterApi(self._ask, self._follow)
        self.events = AsyncEventsApi(self._follow, patience)
        self.work = AsyncWorkApi(self._ask)

    async def __aenter__(self) -> "AsyncScheduler":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        if self._own is not None:
            await self._own.aclose()

    async def submit(
        self,
        definition: str,
        payload: object = None,
        *,
        idempotency_key: str | None = None,
        wait: float | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Submit a job; with ``wait`` return when it has ended, or after so many seconds (at most 300)."""
        return await self._run(flows.submit(definition, payload, idempotency_key, wait, options))

    async def submit_many(self, jobs: Sequence[BatchJob], *, idempotency_key: str | None = None) -> Submitted:
        """Submit many at once; each is submitted or refused by itself. Look at ``refused``."""
        return await self._run(flows.submit_many(jobs, idempotency_key))

    async def call(
        self,
        definition: str,
        payload: object = None,
        *,
        timeout: float = 60.0,
        idempotency_key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Any:
        """What the handler returns; `JobFailed`, `JobCancelled` or, after ``timeout`` seconds, `StillRunning`."""
        return await self._run(flows.call(definition, payload, timeout, idempotency_key, options))

    async def get(self, job_id: str) -> Job:
        return await self._ask(requests.get(job_id))

    async def why(self, job_id: str) -> WhyResponse:
        """Why it waits: every rule that holds it back, or its place in line."""
        return await self._ask(requests.why(job_id))

    async def wait(self, job_id: str, timeout: float | None = None) -> Job:
        """The job when it has ended, however it did; `StillRunning` after ``timeout`` seconds."""
        return await self._run(flows.wait(job_id, timeout))

    async def list(self, **filter: Unpack[JobFilter]) -> AsyncIterator[Job]:
        """All that match, by descending id, without payloads and results."""
        async for job in each(self._ask, "/v1/jobs", query_of(**filter), read_job):
            yield job

    async def cancel(self, job_id: str) -> str:
        """``cancelled``, ``already_running`` (it was asked to stop) or ``already_done``."""
        return await self._ask(requests.change(job_id, "cancel"))

    async def reprioritize(self, job_id: str, priority: int) -> str:
        """``ok``, ``already_running`` or ``already_done``."""
        return await self._ask(requests.change(job_id, "reprioritize", priority=priority))

    async def retry(self, job_id: str) -> str:
        """``ok``, ``not_ended`` or ``not_failed``."""
        return await self._ask(requests.change(job_id, "retry"))

    async def cancel_where(self, *, dry_run: bool = False, **filter: Unpack[JobFilter]) -> Changed:
        """Cancel all that match and have not ended; ``dry_run`` only counts them."""
        return await self._run(flows.change_where("cancel", filter, dry_run=dry_run))

    async def reprioritize_where(self, priority: int, *, dry_run: bool = False, **filter: Unpack[JobFilter]) -> Changed:
        """Give all that match and wait another priority; ``dry_run`` only counts them."""
        return await self._run(flows.change_where("reprioritize", filter, dry_run=dry_run, priority=priority))

    async def retry_where(self, *, dry_run: bool = False, **filter: Unpack[JobFilter]) -> Changed:
        """Have all failed ones that match run again; ``dry_run`` only counts them."""
        return await self._run(flows.change_where("retry", filter, dry_run=dry_run))

    async def _run(self, flow: Flow[T]) -> T:
        heard: object = None
        while True:
            try:
                step = flow.send(heard)
            except StopIteration as end:
                result: T = end.value
                return result
            heard = None
            if isinstance(step, Pause):
                await asyncio.sleep(step.for_s)
            else:
                heard = await self._ask(step)

    async def _ask(self, request: Request[T]) -> T:
        return await AsyncRetrying(**retry_policy(self._patience_s + request.held_s))(self._ask_once, request)

    async def _follow(self, request: Request[Any]) -> AsyncIterator[str]:
        assert self._http is not None
        replica = self._exchange.replica
        try:
            async with self._http.stream(**self._exchange.sent(request, replica)) as response:
                if not response.is_success:
                    await response.aread()
                    self._exchange.heard(request, replica, response)
                async for line in response.aiter_lines():
                    yield line
        except Retryable as retryable:
            raise retryable.failure from None
        except httpx.HTTPError as error:
            failure = self._exchange.unheard(request, replica, error)
            raise (failure.failure if isinstance(failure, Retryable) else failure) from None

    async def _ask_once(self, request: Request[T]) -> T:
        assert self._http is not None
        replica = self._exchange.replica
        try:
            response = await self._http.request(**self._exchange.sent(request, replica))
        except httpx.HTTPError as error:
            raise self._exchange.unheard(request, replica, error) from None
        return self._exchange.heard(request, replica, response)
