"""The scheduler for programs with an asyncio loop."""

import ssl
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import httpx2

from hascheduler.client import answers, flows, requests
from hascheduler.client.answer import as_it_is
from hascheduler.client.answers import BatchResponse, JobRetryResponse
from hascheduler.client.asynchronous.asking import AsyncAsker, AsyncPart
from hascheduler.client.asynchronous.events import AsyncEventsApi
from hascheduler.client.asynchronous.named import AsyncNamedApi, AsyncNounsApi
from hascheduler.client.asynchronous.operations import AsyncClusterApi, AsyncTokensApi, AsyncWorkApi
from hascheduler.client.asynchronous.schedules import AsyncSchedulesApi
from hascheduler.client.bodies import plain
from hascheduler.client.exchange import Exchange
from hascheduler.client.flows import JobChange
from hascheduler.client.options import BatchJob, JobErrorFilter, JobListFilter, JobOptions, Verdict, VerdictListFilter
from hascheduler.client.requests import MANY_S, job_path, keyed, word_of
from hascheduler.client.results import Changed, Job, JsonObject, ListPage, Submitted
from hascheduler.model.job import JobState

if TYPE_CHECKING:
    from hascheduler.client.nouns import Calendar, Definition, Lane, Tenant


class AsyncScheduler(AsyncPart):
    """The client of the replicas at ``urls``, each a URL or several with commas, asked in turn if one fails.

    Each request is retried for ``patience`` seconds; with 0 each replica is asked once. ``answer_timeout`` is for how
    many seconds one replica may be silent. ``tls`` is for replicas that demand a certificate, in place of ``ca_file``.
    ``http`` is a client of your own, for proxies; you close it.
    """

    def __init__(
        self,
        *urls: str,
        token: str | None = None,
        ca_file: str | None = None,
        tls: ssl.SSLContext | None = None,
        patience: float = 30.0,
        answer_timeout: float = 10.0,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        exchange = Exchange(urls, token, answer_timeout)
        client = http or httpx2.AsyncClient(verify=exchange.trust(ca_file, tls))
        self._own = client if http is None else None
        asker = AsyncAsker(exchange, client, patience)
        super().__init__(asker)
        self.schedules = AsyncSchedulesApi(asker)
        self.definitions: AsyncNounsApi[Definition] = AsyncNounsApi(asker, "definitions")
        self.lanes: AsyncNounsApi[Lane] = AsyncNounsApi(asker, "lanes")
        self.calendars: AsyncNounsApi[Calendar] = AsyncNounsApi(asker, "calendars")
        self.tenants: AsyncNounsApi[Tenant] = AsyncNounsApi(asker, "tenants")
        self.tokens = AsyncTokensApi(asker)
        self.cluster = AsyncClusterApi(asker)
        self.events = AsyncEventsApi(asker)
        self.work = AsyncWorkApi(asker)

    async def __aenter__(self) -> "AsyncScheduler":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        if self._own is not None:
            await self._own.aclose()

    def documents(
        self, collection: Literal["definitions", "lanes", "calendars", "tenants", "schedules"]
    ) -> AsyncNamedApi[JsonObject]:
        """Return named documents as the API writes them, for programs that hold files."""
        return AsyncNamedApi(self._asker, collection, as_it_is)

    async def submit(
        self,
        definition: str,
        payload: object = None,
        *,
        idempotency_key: str | None = None,
        wait: float | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Submit a job; with ``wait`` return when it has ended, or after that many seconds (at most 300)."""
        body = plain(definition=definition, payload=payload, **options)
        return await self._asker.ask(requests.submit_one("/v1/jobs", body, idempotency_key, wait))

    async def submit_many(
        self, jobs: Sequence[BatchJob], *, idempotency_key: str | None = None, atomic: bool = False
    ) -> Submitted:
        """Submit many jobs, each by itself: check ``refused``. With ``atomic``, submit all or none, at most 1,000."""
        return await self._asker.run(flows.submit_many(jobs, idempotency_key, atomic=atomic))

    async def submit_batch(self, jobs: Sequence[Any], *, idempotency_key: str, atomic: bool = False) -> BatchResponse:
        """Submit at most 1,000 jobs in one request, as a file or a program holds them; return the replica's answer."""
        key = idempotency_key
        return await self._asker.ask(requests.submit_batch(jobs, key, key, BatchResponse, atomic=atomic))

    async def call(
        self,
        definition: str,
        payload: object = None,
        *,
        timeout: float = 60.0,
        idempotency_key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Any:
        """Submit a job and return what its handler returns.

        Raise `JobFailed`, `JobCancelled` or, after ``timeout`` seconds, `StillRunning`.
        """
        body = {"mode": "on_demand", **plain(definition=definition, payload=payload, **options)}
        return await self._asker.run(flows.call(body, timeout, idempotency_key))

    async def get(self, job_id: str, *, wait: float | None = None) -> Job:
        """Return the job; with ``wait`` when it has ended, or after that many seconds (at most 300).

        If too many wait at the replica, it answers at once.
        """
        return await self._asker.ask(requests.get_job(job_id, wait))

    async def why(self, job_id: str) -> answers.WhyResponse:
        """Return why the job waits: every rule that holds it back, or its place in line."""
        return await self._get(answers.WhyResponse, job_path(job_id, "why"))

    async def wait(self, job_id: str, timeout: float | None = None) -> Job:
        """Return the job when it has ended, however it did; raise `StillRunning` after ``timeout`` seconds."""
        return await self._asker.run(flows.wait(job_id, timeout))

    async def wait_all(
        self, *ids: str, timeout: float | None = None, progress: flows.Counted | None = None
    ) -> dict[JobState, int]:
        """Return how many of these jobs, and of the jobs of these batches, ended in each state, once all have.

        ``progress`` is called with the counts so far. Raise `StillRunning` after ``timeout`` seconds.
        """
        return await self._asker.run(flows.wait_all(ids, timeout, progress))

    def list(self, **filter: Unpack[JobListFilter]) -> AsyncIterator[Job]:
        """Yield all jobs that match, the newest by submission first, without payloads and results."""
        return self._each(Job, "/v1/jobs", **filter)

    async def page(
        self, *, limit: int | None = None, after: str | None = None, **filter: Unpack[JobListFilter]
    ) -> ListPage[Job]:
        """Return a page of at most ``limit`` jobs, the newest by submission first, or those after ``next``."""
        return await self._page(Job, "/v1/jobs", **filter, limit=limit, after=after)

    async def count(self, **filter: Unpack[JobListFilter]) -> answers.JobCountsResponse:
        """Return how many jobs match, by state."""
        return await self._get(answers.JobCountsResponse, "/v1/jobs:counts", **filter)

    async def errors(self, **filter: Unpack[JobErrorFilter]) -> answers.JobErrorsResponse:
        """Return the newest failed jobs, grouped by definition and error; the largest group first."""
        return await self._get(answers.JobErrorsResponse, "/v1/jobs:errors", **filter)

    def verdicts(
        self, verdicts: Sequence[Verdict] = (), **filter: Unpack[VerdictListFilter]
    ) -> AsyncIterator[answers.ScheduleVerdictResponse]:
        """Yield the nominal times of all schedules that did not fire, or have these ``verdicts``, the newest first."""
        return self._each(answers.ScheduleVerdictResponse, "/v1/verdicts", verdict=verdicts, **filter)

    async def cancel(self, job_id: str) -> str:
        """Cancel the job; return ``cancelled``, ``already_running`` (it was asked to stop) or ``already_done``."""
        return await self._post(word_of, job_path(job_id, "cancel"))

    async def reprioritize(self, job_id: str, priority: int) -> str:
        """Change the job's priority; return ``ok``, ``already_running`` or ``already_done``."""
        return await self._post(word_of, job_path(job_id, "reprioritize"), {"priority": priority})

    async def retry(self, job_id: str, *, idempotency_key: str | None = None) -> str:
        """Retry a failed job; return ``ok``, ``not_ended`` or ``not_failed``. Under one key the job is revived once."""
        return await self._post(word_of, job_path(job_id, "retry"), **keyed(idempotency_key))

    async def retry_with_dependents(self, job_id: str, *, idempotency_key: str | None = None) -> JobRetryResponse:
        """Retry the job as `retry` does, and the jobs that never ran because it failed: they wait for it again."""
        path, body, key = job_path(job_id, "retry"), {"with_dependents": True}, keyed(idempotency_key)
        return await self._post(JobRetryResponse, path, body, more_s=MANY_S, **key)

    async def cancel_where(self, **which: Unpack[JobChange]) -> Changed:
        """Cancel all that match and have not ended, in as many requests as it takes."""
        return await self._asker.run(flows.change_where("jobs:cancel", which))

    async def reprioritize_where(self, priority: int, **which: Unpack[JobChange]) -> Changed:
        """Change the priority of all that match and wait."""
        return await self._asker.run(flows.change_where("jobs:reprioritize", which, priority=priority))

    async def retry_where(self, **which: Unpack[JobChange]) -> Changed:
        """Retry all failed jobs that match, each once."""
        return await self._asker.run(flows.change_where("jobs:retry", which))

    async def delete_where(self, **which: Unpack[JobChange]) -> Changed:
        """Delete all ended jobs that match; they are gone after ten minutes, unless they are retried until then."""
        return await self._asker.run(flows.change_where("jobs:delete", which))
