"""`VirtualScheduler`: the scheduler that a test uses."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, Unpack

import httpx2
import structlog

from hascheduler.client import AsyncScheduler, Job, Problem, Refused
from hascheduler.client.options import JobListFilter, JobOptions
from hascheduler.dispatch.config import PolicyConfig
from hascheduler.errors import InvalidInput
from hascheduler.model.policy import DEFAULT_PRESET
from hascheduler.model.values.instants import parse_duration, parse_instant
from hascheduler.processor import Handlers, JobContext
from hascheduler.testing.cluster import HOST, PassingTime, VirtualClock, VirtualCluster
from hascheduler.testing.instrumented import Call, CrashPoint, Handler, InstrumentedHandlers
from hascheduler.testing.virtual_loop import VirtualLoop

START = "2030-01-01T00:00:00Z"
Span = str | float | timedelta
"""``"7d"``, ``"1h30m"``, a number of seconds, or a timedelta."""
T = TypeVar("T")
_F = TypeVar("_F", bound=Handler)

_BOOT_S = 30
"""How long before the start time of the test the replica starts."""
_REASONS_MAX = 20


class StillWaiting(AssertionError):
    """Jobs have not ended in the given time; the text says what each waits for."""

    def __init__(self, within: timedelta, live: int, jobs: Sequence[Job], reasons: Sequence[str]) -> None:
        self.jobs = tuple(jobs)
        lines = [
            f"\n  {job.id} of {job.definition!r} is {job.state.value}: {reason}"
            for job, reason in zip(jobs, reasons, strict=True)
        ]
        super().__init__(f"jobs that have not ended within {within}: {live}" + "".join(lines))


class VirtualScheduler:
    """A whole scheduler in the test's own process, on virtual time: API, leader and a processor, and no servers.

    ::

        with VirtualScheduler(start="2027-03-27T12:00:00Z") as scheduler:

            @scheduler.handler("report")
            def report(job): ...

            scheduler.add_schedule("nightly", trigger={...}, job={"definition": "report"})
            scheduler.advance("7d")
            assert len(scheduler.calls("report")) == 7

    ``handlers`` are registries as processors load them, ``slots`` is how many jobs run at once, ``policy`` is the value
    of ``HASCHEDULER_POLICY``. Time passes only in `advance`, `advance_to`, `drain` and `wait`. Handlers run for real:
    an ``asyncio.sleep`` of a coroutine takes virtual time; a plain function runs in a thread while the clock stops. If
    the API refuses a request, `hascheduler.client.Refused` is raised. Use it from one thread, outside any running loop.
    """

    __test__ = False

    def __init__(
        self, *handlers: Handlers, start: datetime | str = START, slots: int = 8, policy: str = DEFAULT_PRESET
    ) -> None:
        if slots < 1:
            raise InvalidInput(("slots",), f"{slots}", "at least 1")
        self._start = _instant(start, "start")
        self._slots = slots
        self._policy = PolicyConfig.of(policy)
        self._handlers = InstrumentedHandlers(lambda: self.now, self._crash)
        self._handlers_changed = False
        self._running: _Running | None = None
        self._is_closed = False
        # Log only warnings while the scheduler exists, unless the tests have configured structlog themselves.
        self._configured_log = not structlog.is_configured()
        if self._configured_log:
            structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
        for registry in handlers:
            for definition in registry.definitions:
                function = registry.find(definition)
                assert function is not None
                self.handle(definition, function)

    def __enter__(self) -> "VirtualScheduler":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything that runs; may be repeated."""
        self._is_closed = True
        running, self._running = self._running, None
        try:
            if running is not None:
                running.close()
        finally:
            if self._configured_log:
                self._configured_log = False
                structlog.reset_defaults()

    # Handlers

    def handler(self, definition: str) -> Callable[[_F], _F]:
        """Register the decorated function for ``definition``, or ``"*"`` for all that have no handler of their own."""

        def register(function: _F) -> _F:
            self.handle(definition, function)
            return function

        return register

    def handle(self, definition: str, function: Handler) -> None:
        """Register ``function`` in place of any present handler."""
        self._handlers.put(definition, function)
        self._handlers_changed = True

    def calls(self, definition: str | None = None) -> list[Call]:
        """Return every call of a handler so far, in order, those whose processor died included."""
        return [call for call in self._handlers.calls if definition in (None, call.definition)]

    # Time

    @property
    def now(self) -> datetime:
        """Return the virtual time as an aware datetime in UTC."""
        if self._running is None:
            return self._start
        return datetime.fromtimestamp(self._running.clock.wall_ms() / 1_000, UTC)

    def advance(self, span: Span) -> None:
        """Advance the time by ``span``, and run everything that is due within it and at its end."""
        running = self._start_if_needed()
        running.run(running.time.advance_to(running.time.reached() + _span(span, "span")))

    def advance_to(self, instant: datetime | str) -> None:
        """Advance the time to ``instant``; raise `InvalidInput` if it has passed."""
        running = self._start_if_needed()
        until = _instant(instant, "instant")
        if until < running.time.reached():
            expected = f"{self.now.isoformat()} or later"
            raise InvalidInput(("instant",), f"{until.isoformat()} has passed", expected)
        running.run(running.time.advance_to(until))

    def drain(self, within: Span = "1d") -> list[Job]:
        """Advance the time until every job has ended, retries included; return all jobs, as `jobs` lists them.

        Raise `StillWaiting` if some have not ended ``within`` that span; its text says what each waits for.
        """
        self._wait(_span(within, "within"), None)
        return self.jobs()

    def wait(self, job: Job | str, within: Span = "1d") -> Job:
        """Advance the time until the job has ended; return it. Raise `StillWaiting` as `drain` does."""
        job_id = job if isinstance(job, str) else job.id
        self._wait(_span(within, "within"), self.job(job_id).id)
        return self.job(job_id)

    # Jobs and schedules

    def submit(
        self,
        definition: str,
        payload: object = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Submit a job, as `hascheduler.client.Scheduler.submit` does. It starts when time passes."""
        key = idempotency_key
        return self._ask(lambda client: client.submit(definition, payload, idempotency_key=key, **options))

    def job(self, job_id: str) -> Job:
        """Return the job as it is, with its payload, result and attempts."""
        return self._ask(lambda client: client.get(job_id))

    def jobs(self, **filter: Unpack[JobListFilter]) -> list[Job]:
        """Return all that match, in the order of their submission, without payloads and results."""

        async def listed(client: AsyncScheduler) -> list[Job]:
            return [job async for job in client.list(**filter)]

        return sorted(self._ask(listed), key=lambda job: (job.submitted_at, job.id))

    def cancel(self, job: Job | str) -> str:
        """Cancel it; return ``cancelled``, ``already_running`` (its handler is asked to stop) or ``already_done``."""
        return self._ask(lambda client: client.cancel(job if isinstance(job, str) else job.id))

    def why(self, job: Job | str) -> str:
        """Return what a job waits for, in a sentence."""
        return str(self._ask(lambda client: client.why(job if isinstance(job, str) else job.id))["summary"])

    def add_schedule(self, name: str, **fields: Any) -> dict[str, Any]:
        """Create a schedule; ``fields`` are those of ``POST /v1/schedules``, such as ``trigger`` and ``job``."""
        return dict(self.request("POST", "/v1/schedules", {"name": name, **fields}))

    def put_definition(self, name: str, **fields: Any) -> dict[str, Any]:
        """Create or replace a definition; ``fields`` are those of ``PUT /v1/definitions/{name}``, such as ``retry``."""
        return dict(self.request("PUT", f"/v1/definitions/{name}", fields))

    def verdicts(self, schedule: str) -> list[dict[str, Any]]:
        """Return the verdict on each nominal time of a schedule, oldest first, as the API shows it."""
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            page = self.request("GET", f"/v1/schedules/{schedule}/verdicts?limit=200{after}")
            found.extend(page["items"])
            if page["next"] is None:
                return found[::-1]
            after = f"&after={page['next']}"

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Send any request of the HTTP API; return its decoded answer. Raise `Refused` for a status of 400 or more."""
        running = self._start_if_needed()
        return running.run(running.request(method, path, body))

    # Injected faults

    def fail_next(self, definition: str, error: Exception | None = None, *, times: int = 1) -> None:
        """Make the next ``times`` attempts raise ``error`` in the handler's place."""
        error = error or RuntimeError("a failure injected by the test")
        self._handlers.plans[definition].errors.extend([error] * _times(times))

    def crash_next(self, definition: str, when: CrashPoint = "after", *, times: int = 1) -> None:
        """Kill the processor in each of the next ``times`` attempts.

        ``"after"`` kills it after the handler has returned and before the result is reported, ``"before"`` before the
        handler is called. All other attempts in that processor die too. Another processor starts at once. The leader
        finds the dead one after the heartbeat timeout of 5 s, and its jobs run again: at once after the first loss,
        later after a pause. A loss is no failed try; a job fails once it was lost as often as its definition's
        ``retry.lost_attempts`` allows.
        """
        if when not in ("before", "after"):
            raise InvalidInput(("when",), repr(when), "'before' or 'after'")
        self._handlers.plans[definition].crashes.extend([when] * _times(times))

    def take(self, definition: str, span: Span) -> None:
        """Make each attempt take that long before its handler is called, from now on: for timeouts and overlap."""
        self._handlers.plans[definition].takes_s = _span(span, "span").total_seconds()

    def lose_answers(self, of: str = "finish", *, times: int = 1) -> None:
        """Carry out the next ``times`` writes that ``"start"`` or ``"finish"`` an attempt, but lose their answers."""
        if of not in ("start", "finish"):
            raise InvalidInput(("of",), repr(of), "'start' or 'finish'")
        for processor in self._start_if_needed().cluster.processors:
            processor.connection.fail_next(_times(times), of=f"work.{of}", carried_out=True)

    # Inside

    def _start_if_needed(self) -> "_Running":
        if self._is_closed:
            raise RuntimeError("this scheduler is closed: create a new one")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise RuntimeError("a virtual scheduler runs a loop of its own: use it in a plain test, not in a coroutine")
        if self._running is None:
            self._running = _Running(self._start, self._policy, self._slots)
        if self._handlers_changed:
            self._handlers_changed = False
            registry = self._handlers.registry(self._running.loop)
            self._running.run(self._running.cluster.renew_processor(registry))
        return self._running

    def _ask(self, asking: Callable[[AsyncScheduler], Coroutine[Any, Any, T]]) -> T:
        running = self._start_if_needed()
        return running.run(asking(running.client))

    def _crash(self, job: JobContext) -> None:
        assert self._running is not None
        self._running.cluster.crash(job.id, self._handlers.registry(self._running.loop))

    def _wait(self, within: timedelta, job_id: str | None) -> None:
        running = self._start_if_needed()
        live = running.run(running.time.drain(within, job_id))
        if live:
            jobs = [self.job(id) for id in live[:_REASONS_MAX]]
            raise StillWaiting(within, len(live), jobs, [self.why(job) for job in jobs])


class _Running:
    """The loop and everything that runs in it."""

    def __init__(self, start: datetime, policy: PolicyConfig, slots: int) -> None:
        self.loop = VirtualLoop()
        self.clock = VirtualClock(self.loop, round((start.timestamp() - _BOOT_S) * 1_000))
        self.cluster = VirtualCluster(self.loop, self.clock, policy, slots)
        self.loop.run_until_complete(self.cluster.start())
        self._http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.cluster.app), base_url=f"http://{HOST}", timeout=60
        )
        self.client = AsyncScheduler(f"http://{HOST}", http=self._http)
        self.loop.run_until_complete(asyncio.sleep(_BOOT_S - self.loop.time()))
        self.time = PassingTime(self.loop, self.clock, self.cluster)

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        """Run the loop until it is done; raise the replica's own error if the replica ends."""
        return self.loop.run_until_complete(self._run_beside_replica(doing))

    async def request(self, method: str, path: str, body: object) -> Any:
        response = await self._http.request(method, path, json=body)
        answer = response.json() if response.content else None
        if response.is_error:
            raise Refused(response.status_code, Problem(answer))
        return answer

    def close(self) -> None:
        try:
            self.loop.run_until_complete(self._http.aclose())
            self.loop.run_until_complete(self.cluster.stop())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
        finally:
            self.loop.close()

    async def _run_beside_replica(self, doing: Coroutine[Any, Any, T]) -> T:
        task = self.loop.create_task(doing)
        try:
            await asyncio.wait([task, self.cluster.replica_task], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self.cluster.replica_task.result()
                raise RuntimeError("the replica has ended")
            return task.result()
        finally:
            task.cancel()


def _instant(value: datetime | str, name: str) -> datetime:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidInput((name,), f"{value.isoformat()} has no time zone", "a datetime with tzinfo, such as UTC")
        return value.astimezone(UTC)
    return datetime.fromtimestamp(parse_instant(value, (name,)) / 1_000, UTC)


def _span(value: Span, name: str) -> timedelta:
    if isinstance(value, timedelta):
        if value < timedelta(0):
            raise InvalidInput((name,), str(value), "a span of at least 0")
        return value
    return timedelta(milliseconds=parse_duration(value, (name,)))


def _times(times: int) -> int:
    if times < 1:
        raise InvalidInput(("times",), f"{times}", "at least 1")
    return times
