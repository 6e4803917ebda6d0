# Written by scripts/generate-client from hascheduler/client/asynchronous/scheduler.py: change that one.
"""The scheduler for programs without a loop. Threads may share one."""

import ssl
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import httpx2

from hascheduler.client import answers, flows, requests
from hascheduler.client.answer import as_it_is
from hascheduler.client.answers import BatchResponse, JobRetryResponse
from hascheduler.client.bodies import plain
from hascheduler.client.exchange import Exchange
from hascheduler.client.flows import JobChange
from hascheduler.client.options import BatchJob, JobErrorFilter, JobListFilter, JobOptions, Verdict, VerdictListFilter
from hascheduler.client.requests import MANY_S, job_path, keyed, word_of
from hascheduler.client.results import Changed, Job, JsonObject, ListPage, Submitted
from hascheduler.client.synchronous.asking import Asker, Part
from hascheduler.client.synchronous.events import EventsApi
from hascheduler.client.synchronous.named import NamedApi, NounsApi
from hascheduler.client.synchronous.operations import ClusterApi, TokensApi, WorkApi
from hascheduler.client.synchronous.schedules import SchedulesApi
from hascheduler.model.job import JobState

if TYPE_CHECKING:
    from hascheduler.client.nouns import Calendar, Definition, Lane, Tenant


class Scheduler(Part):
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
        http: httpx2.Client | None = None,
    ) -> None:
        exchange = Exchange(urls, token, answer_timeout)
        client = http or httpx2.Client(verify=exchange.trust(ca_file, tls))
        self._own = client if http is None else None
        asker = Asker(exchange, client, patience)
        super().__init__(asker)
        self.schedules = SchedulesApi(asker)
        self.definitions: NounsApi[Definition] = NounsApi(asker, "definitions")
        self.lanes: NounsApi[Lane] = NounsApi(asker, "lanes")
        self.calendars: NounsApi[Calendar] = NounsApi(asker, "calendars")
        self.tenants: NounsApi[Tenant] = NounsApi(asker, "tenants")
        self.tokens = TokensApi(asker)
        self.cluster = ClusterApi(asker)
        self.events = EventsApi(asker)
        self.work = WorkApi(asker)

    def __enter__(self) -> "Scheduler":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def documents(
        self, collection: Literal["definitions", "lanes", "calendars", "tenants", "schedules"]
    ) -> NamedApi[JsonObject]:
        """Return named documents as the API writes them, for programs that hold files."""
        return NamedApi(self._asker, collection, as_it_is)

    def submit(
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
        return self._asker.ask(requests.submit_one("/v1/jobs", body, idempotency_key, wait))

    def submit_many(
        self, jobs: Sequence[BatchJob], *, idempotency_key: str | None = None, atomic: bool = False
    ) -> Submitted:
        """Submit many jobs, each by itself: check ``refused``. With ``atomic``, submit all or none, at most 1,000."""
        return self._asker.run(flows.submit_many(jobs, idempotency_key, atomic=atomic))

    def submit_batch(self, jobs: Sequence[Any], *, idempotency_key: str, atomic: bool = False) -> BatchResponse:
        """Submit at most 1,000 jobs in one request, as a file or a program holds them; return the replica's answer."""
        key = idempotency_key
        return self._asker.ask(requests.submit_batch(jobs, key, key, BatchResponse, atomic=atomic))

    def call(
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
        return self._asker.run(flows.call(body, timeout, idempotency_key))

    def get(self, job_id: str, *, wait: float | None = None) -> Job:
        """Return the job; with ``wait`` when it has ended, or after that many seconds (at most 300).

        If too many wait at the replica, it answers at once.
        """
        return self._asker.ask(requests.get_job(job_id, wait))

    def why(self, job_id: str) -> answers.WhyResponse:
        """Return why the job waits: every rule that holds it back, or its place in line."""
        return self._get(answers.WhyResponse, job_path(job_id, "why"))

    def wait(self, job_id: str, timeout: float | None = None) -> Job:
        """Return the job when it has ended, however it did; raise `StillRunning` after ``timeout`` seconds."""
        return self._asker.run(flows.wait(job_id, timeout))

    def wait_all(
        self, *ids: str, timeout: float | None = None, progress: flows.Counted | None = None
    ) -> dict[JobState, int]:
        """Return how many of these jobs, and of the jobs of these batches, ended in each state, once all have.

        ``progress`` is called with the counts so far. Raise `StillRunning` after ``timeout`` seconds.
        """
        return self._asker.run(flows.wait_all(ids, timeout, progress))

    def list(self, **filter: Unpack[JobListFilter]) -> Iterator[Job]:
        """Yield all jobs that match, the newest by submission first, without payloads and results."""
        return self._each(Job, "/v1/jobs", **filter)

    def page(
        self, *, limit: int | None = None, after: str | None = None, **filter: Unpack[JobListFilter]
    ) -> ListPage[Job]:
        """Return a page of at most ``limit`` jobs, the newest by submission first, or those after ``next``."""
        return self._page(Job, "/v1/jobs", **filter, limit=limit, after=after)

    def count(self, **filter: Unpack[JobListFilter]) -> answers.JobCountsResponse:
        """Return how many jobs match, by state."""
        return self._get(answers.JobCountsResponse, "/v1/jobs:counts", **filter)

    def errors(self, **filter: Unpack[JobErrorFilter]) -> answers.JobErrorsResponse:
        """Return the newest failed jobs, grouped by definition and error; the largest group first."""
        return self._get(answers.JobErrorsResponse, "/v1/jobs:errors", **filter)

    def verdicts(
        self, verdicts: Sequence[Verdict] = (), **filter: Unpack[VerdictListFilter]
    ) -> Iterator[answers.ScheduleVerdictResponse]:
        """Yield the nominal times of all schedules that did not fire, or have these ``verdicts``, the newest first."""
        return self._each(answers.ScheduleVerdictResponse, "/v1/verdicts", verdict=verdicts, **filter)

    def cancel(self, job_id: str) -> str:
        """Cancel the job; return ``cancelled``, ``already_running`` (it was asked to stop) or ``already_done``."""
        return self._post(word_of, job_path(job_id, "cancel"))

    def reprioritize(self, job_id: str, priority: int) -> str:
        """Change the job's priority; return ``ok``, ``already_running`` or ``already_done``."""
        return self._post(word_of, job_path(job_id, "reprioritize"), {"priority": priority})

    def retry(self, job_id: str, *, idempotency_key: str | None = None) -> str:
        """Retry a failed job; return ``ok``, ``not_ended`` or ``not_failed``. Under one key the job is revived once."""
        return self._post(word_of, job_path(job_id, "retry"), **keyed(idempotency_key))

    def retry_with_dependents(self, job_id: str, *, idempotency_key: str | None = None) -> JobRetryResponse:
        """Retry the job as `retry` does, and the jobs that never ran because it failed: they wait for it again."""
        path, body, key = job_path(job_id, "retry"), {"with_dependents": True}, keyed(idempotency_key)
        return self._post(JobRetryResponse, path, body, more_s=MANY_S, **key)

    def cancel_where(self, **which: Unpack[JobChange]) -> Changed:
        """Cancel all that match and have not ended, in as many requests as it takes."""
        return self._asker.run(flows.change_where("jobs:cancel", which))

    def reprioritize_where(self, priority: int, **which: Unpack[JobChange]) -> Changed:
        """Change the priority of all that match and wait."""
        return self._asker.run(flows.change_where("jobs:reprioritize", which, priority=priority))

    def retry_where(self, **which: Unpack[JobChange]) -> Changed:
        """Retry all failed jobs that match, each once."""
        return self._asker.run(flows.change_where("jobs:retry", which))

    def delete_where(self, **which: Unpack[JobChange]) -> Changed:
        """Delete all ended jobs that match; they are gone after ten minutes, unless they are retried until then."""
        return self._asker.run(flows.change_where("jobs:delete", which))
