# Written by scripts/generate-client from hascheduler/client/asynchronous/scheduler.py: change that one.
"""The scheduler for programs without a loop. Threads may share one."""

import ssl
import time
from collections.abc import Iterator, MutableSequence, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

import httpx
from tenacity import Retrying

from hascheduler.client import flows, requests
from hascheduler.client.answers import (
    BatchResponse,
    JobCountsResponse,
    JobErrorsResponse,
    JobRetryResponse,
    ScheduleVerdictResponse,
    WhyResponse,
)
from hascheduler.client.bodies import query_of
from hascheduler.client.exchange import Exchange
from hascheduler.client.failures import Refused, Retryable, Unavailable
from hascheduler.client.flows import Flow, JobChange, Pause
from hascheduler.client.options import BatchJob, JobErrorFilter, JobListFilter, JobOptions, Verdict, VerdictListFilter
from hascheduler.client.requests import MANY_S, Request, as_it_is, asked, job_path, keyed, word_of
from hascheduler.client.results import Changed, Job, JsonObject, ListPage, Submitted, read_job
from hascheduler.client.retries import retry_policy
from hascheduler.client.synchronous.asking import each
from hascheduler.client.synchronous.cluster import ClusterApi
from hascheduler.client.synchronous.events import EventsApi
from hascheduler.client.synchronous.named import NamedApi, NounsApi
from hascheduler.client.synchronous.schedules import SchedulesApi
from hascheduler.client.synchronous.tokens import TokensApi
from hascheduler.client.synchronous.work import WorkApi

if TYPE_CHECKING:
    from hascheduler.client.nouns import Calendar, Definition, Lane, Tenant

T = TypeVar("T")


class Scheduler:
    """Asks the replicas at ``urls``, each a URL or several with commas, in turn if one fails, each request for
    ``patience`` seconds; with 0 each replica once.

    ``answer_timeout`` is for how many one replica may be silent. ``tls`` is for replicas that demand a certificate, in
    place of ``ca_file``. ``http`` is a client of your own, for proxies; you close it.
    """

    def __init__(
        self,
        *urls: str,
        token: str | None = None,
        ca_file: str | None = None,
        tls: ssl.SSLContext | None = None,
        patience: float = 30.0,
        answer_timeout: float = 10.0,
        http: httpx.Client | None = None,
    ) -> None:
        self._exchange = Exchange(urls, token, answer_timeout)
        self._patience_s = patience
        self._own = httpx.Client(verify=self._exchange.trust(ca_file, tls)) if http is None else None
        self._http = self._own or http
        self.schedules = SchedulesApi(self._ask, self._run)
        self.definitions: NounsApi[Definition] = NounsApi(self._ask, "definitions")
        self.lanes: NounsApi[Lane] = NounsApi(self._ask, "lanes")
        self.calendars: NounsApi[Calendar] = NounsApi(self._ask, "calendars")
        self.tenants: NounsApi[Tenant] = NounsApi(self._ask, "tenants")
        self.tokens = TokensApi(self._ask)
        self.cluster = ClusterApi(self._ask, self._follow)
        self.events = EventsApi(self._follow, patience)
        self.work = WorkApi(self._ask)

    def __enter__(self) -> "Scheduler":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def documents(
        self, collection: Literal["definitions", "lanes", "calendars", "tenants", "schedules"]
    ) -> NamedApi[JsonObject]:
        """Return them as the API writes them, for programs that hold files."""
        return NamedApi(self._ask, collection, as_it_is)

    def submit(
        self,
        definition: str,
        payload: object = None,
        *,
        idempotency_key: str | None = None,
        wait: float | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Submit a job; with ``wait`` return when it has ended, or after so many seconds (at most 300)."""
        return self._run(flows.submit(definition, payload, idempotency_key, wait, options))

    def submit_many(
        self, jobs: Sequence[BatchJob], *, idempotency_key: str | None = None, atomic: bool = False
    ) -> Submitted:
        """Submit many at once; each is submitted or refused by itself. Look at ``refused``.

        With ``atomic`` all or none, at most 1,000: `Refused` with the errors of all jobs that are wrong.
        """
        return self._run(flows.submit_many(jobs, idempotency_key, atomic=atomic))

    def submit_batch(self, jobs: Sequence[Any], *, idempotency_key: str, atomic: bool = False) -> BatchResponse:
        """At most 1,000 jobs in one request, as a file or a program holds them; the answer as the replica gives it."""
        key = idempotency_key
        return self._ask(requests.submit_batch(jobs, key, key, BatchResponse, atomic=atomic))

    def call(
        self,
        definition: str,
        payload: object = None,
        *,
        timeout: float = 60.0,
        idempotency_key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Any:
        """What the handler returns; `JobFailed`, `JobCancelled` or, after ``timeout`` seconds, `StillRunning`."""
        return self._run(flows.call(definition, payload, timeout, idempotency_key, options))

    def get(self, job_id: str, *, wait: float | None = None) -> Job:
        """With ``wait`` when it has ended, or after so many seconds as it is then (at most 300). A replica that has too
        many who wait, or is of 0.2.0, answers at once; `wait` goes on until it has ended."""
        return self._ask(requests.get(job_id, wait))

    def why(self, job_id: str) -> WhyResponse:
        """Why it waits: every rule that holds it back, or its place in line."""
        return self._ask(asked(WhyResponse, "GET", job_path(job_id, "why")))

    def wait(self, job_id: str, timeout: float | None = None) -> Job:
        """The job when it has ended, however it did; `StillRunning` after ``timeout`` seconds."""
        return self._run(flows.wait(job_id, timeout))

    def list(self, **filter: Unpack[JobListFilter]) -> Iterator[Job]:
        """All that match, the newest by submission first, without payloads and results."""
        for job in each(self._ask, "/v1/jobs", query_of(**filter), read_job):
            yield job

    def page(
        self, *, limit: int | None = None, after: str | None = None, **filter: Unpack[JobListFilter]
    ) -> ListPage[Job]:
        """A page of at most ``limit`` jobs, the newest by submission first, or those after the ``next`` of a page."""
        return self._ask(requests.page("/v1/jobs", query_of(**filter), read_job, limit, after))

    def count(self, **filter: Unpack[JobListFilter]) -> JobCountsResponse:
        """How many jobs match, by state."""
        return self._ask(asked(JobCountsResponse, "GET", "/v1/jobs:counts", query_of(**filter)))

    def errors(self, **filter: Unpack[JobErrorFilter]) -> JobErrorsResponse:
        """The newest failed jobs, grouped by definition and by what went wrong; the largest group first."""
        return self._ask(asked(JobErrorsResponse, "GET", "/v1/jobs:errors", query_of(**filter)))

    def verdicts(
        self, verdicts: Sequence[Verdict] = (), **filter: Unpack[VerdictListFilter]
    ) -> Iterator[ScheduleVerdictResponse]:
        """The nominal times of all schedules that did not fire, the newest decision first.

        All, or those with these ``verdicts``. Those of one schedule, fired ones too, has ``schedules.verdicts``.
        """
        query = query_of(verdict=verdicts, **filter)
        for verdict in each(self._ask, "/v1/verdicts", query, ScheduleVerdictResponse):
            yield verdict

    def cancel(self, job_id: str) -> str:
        """``cancelled``, ``already_running`` (it was asked to stop) or ``already_done``."""
        return self._ask(asked(word_of, "POST", job_path(job_id, "cancel")))

    def reprioritize(self, job_id: str, priority: int) -> str:
        """``ok``, ``already_running`` or ``already_done``."""
        path, body = job_path(job_id, "reprioritize"), {"priority": priority}
        return self._ask(asked(word_of, "POST", path, body=body))

    def retry(self, job_id: str, *, idempotency_key: str | None = None) -> str:
        """``ok``, ``not_ended`` or ``not_failed``; under one key the job is revived once."""
        key = keyed(flows.key_of(idempotency_key))
        return self._ask(asked(word_of, "POST", job_path(job_id, "retry"), **key))

    def retry_with_dependents(self, job_id: str, *, idempotency_key: str | None = None) -> JobRetryResponse:
        """As `retry`, of the jobs too that never ran because this one had failed: they wait for it again."""
        key, body = keyed(flows.key_of(idempotency_key)), {"with_dependents": True}
        return self._ask(asked(JobRetryResponse, "POST", job_path(job_id, "retry"), body=body, more_s=MANY_S, **key))

    def cancel_where(self, **which: Unpack[JobChange]) -> Changed:
        """Cancel all that match and have not ended, in as many requests as it takes."""
        return self._run(flows.change_where("jobs:cancel", which))

    def reprioritize_where(self, priority: int, **which: Unpack[JobChange]) -> Changed:
        """Give all that match and wait another priority."""
        return self._run(flows.change_where("jobs:reprioritize", which, priority=priority))

    def retry_where(self, **which: Unpack[JobChange]) -> Changed:
        """Have all failed ones that match run again, each once."""
        return self._run(flows.change_where("jobs:retry", which))

    def _run(self, flow: Flow[T]) -> T:
        heard: object = None
        while True:
            try:
                step = flow.send(heard)
            except StopIteration as end:
                result: T = end.value
                return result
            heard = None
            if isinstance(step, Pause):
                time.sleep(step.for_s)
            else:
                heard = self._ask(step)

    def _ask(self, request: Request[T]) -> T:
        doubts: MutableSequence[Retryable] = []
        policy = retry_policy(self._patience_s, request.held_s, self._exchange.replicas)
        return Retrying(**policy)(self._ask_or_look, request, doubts)

    def _ask_or_look(self, request: Request[T], doubts: MutableSequence[Retryable]) -> T:
        """``doubts`` has the last try whose outcome is unknown; what became of it is asked first."""
        if doubts:
            found: T | None = self._look(doubts[-1])
            if found is not None:
                return found
            doubts.clear()
        try:
            return self._ask_once(request)
        except Retryable as met:
            if met.look is not None:
                doubts.append(met)
            raise

    def _look(self, doubt: Retryable) -> Any:
        try:
            return self._ask_once(doubt.look)
        except Retryable as met:
            raise Retryable(doubt.failure, met.after_s) from met
        except (Refused, Unavailable) as error:
            raise doubt.failure from error

    def _follow(self, request: Request[Any]) -> Iterator[str]:
        assert self._http is not None
        replica = self._exchange.replica
        try:
            with self._http.stream(**self._exchange.sent(request, replica)) as response:
                if not response.is_success:
                    response.read()
                    self._exchange.heard(request, replica, response)
                for line in response.iter_lines():
                    yield line
        except Retryable as retryable:
            raise retryable.failure from None
        except httpx.HTTPError as error:
            failure = self._exchange.unheard(request, replica, error)
            raise (failure.failure if isinstance(failure, Retryable) else failure) from None

    def _ask_once(self, request: Request[T]) -> T:
        assert self._http is not None
        replica = self._exchange.replica
        try:
            response = self._http.request(**self._exchange.sent(request, replica))
        except httpx.HTTPError as error:
            raise self._exchange.unheard(request, replica, error) from None
        return self._exchange.heard(request, replica, response)
