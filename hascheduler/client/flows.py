"""Operations of more than one request, as generators that yield the next step and receive its result.

Neither of the two schedulers knows the steps, and the generators do not know which scheduler carries them out.
"""

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Any, TypedDict, TypeVar

from hascheduler.client import options, requests
from hascheduler.client.bodies import group_key, plain, query_of, split_jobs
from hascheduler.client.failures import JobCancelled, JobFailed, StillRunning
from hascheduler.client.requests import Request
from hascheduler.client.results import BatchResult, Changed, Job, JsonObject, ListPage, Submitted
from hascheduler.errors import InvalidInput
from hascheduler.model.job import BATCH_PREFIX, TERMINAL, JobState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pause:
    for_s: float


Flow = Generator[Request[Any] | Pause, Any, T]
Progressed = Callable[[Changed], None]
Counted = Callable[[Mapping[JobState, int]], None]


class ChangeOptions(TypedDict, total=False):
    """Options of a change of all that match.

    ``dry_run`` only counts what matches; ``progress`` is called after each part. ``expected`` is the count that you
    agreed to: `Refused` (409) if more than 10 % more match now.
    """

    dry_run: bool
    expected: int
    progress: Progressed


class JobChange(options.JobChangeFilter, ChangeOptions, total=False):
    """The jobs to change, and how."""


class ScheduleChange(options.ScheduleChangeFilter, ChangeOptions, total=False):
    """The schedules to change, and how."""


_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_HELD_S = 30.0
"""Shorter than the timeouts of proxies."""


def submit_many(jobs: Sequence[options.BatchJob], idempotency_key: str | None, *, atomic: bool) -> Flow[Submitted]:
    """Submit the jobs in as few requests as possible."""
    key = requests.key_of(idempotency_key)
    groups = split_jobs([plain(**job) for job in jobs], atomic=atomic)
    # Check the longest key, so that one that can't be sent is refused before anything is sent.
    requests.key_of(group_key(key, len(groups) - 1))
    batches: list[str] = []
    results: list[BatchResult] = []
    for number, group in enumerate(groups if jobs else ()):
        batch, answers = yield requests.submit_batch(group, group_key(key, number), key, _batch_of, atomic=atomic)
        batches.append(batch)
        results += answers
    return Submitted(tuple(batches), tuple(results))


def _batch_of(body: JsonObject) -> tuple[str, list[BatchResult]]:
    return str(body["batch"]), [BatchResult(one) for one in body["results"]]


def call(body: JsonObject, timeout: float, idempotency_key: str | None) -> Flow[Any]:
    """Submit a job and return its result.

    The replica holds the submit back until the job has ended. If that takes too long, wait for the job by its id:
    repeating the submit would make a new job if the first one was a duplicate of another.
    """
    until = time.monotonic() + timeout
    held_s = min(max(0.0, timeout), requests.WAIT_S_MAX)
    job: Job = yield requests.submit_one("/v1/jobs", body, idempotency_key, held_s)
    if not job.has_ended:
        job = yield from wait(job.id, max(0.0, until - time.monotonic()))
    match job.state:
        case JobState.SUCCEEDED:
            return job.result
        case JobState.CANCELLED:
            raise JobCancelled(job)
        case _:
            raise JobFailed(job)


def wait(job_id: str, timeout: float | None) -> Flow[Job]:
    """Return the job once it has ended, however it did; raise `StillRunning` when the time is over.

    The replica holds each request back. If it answers at once (too many wait there, or it runs 0.2.0), pause before the
    next one.
    """
    until = inf if timeout is None else time.monotonic() + timeout
    pause_s = _FIRST_PAUSE_S
    while True:
        began = time.monotonic()
        held_s = max(0.0, min(until - began, _HELD_S))
        job: Job = yield requests.get_job(job_id, held_s)
        if job.has_ended:
            return job
        now = time.monotonic()
        if now >= until:
            raise StillRunning(job)
        if now - began < held_s / 2:
            yield Pause(max(0.0, min(pause_s, until - now)))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def wait_all(ids: Sequence[str], timeout: float | None, progress: Counted | None) -> Flow[dict[JobState, int]]:
    """Return how many of the jobs and of the batches' jobs ended in each state; ``progress`` gets the counts by state.

    Raise `StillRunning` with one of the others when the time is over.
    """
    until = inf if timeout is None else time.monotonic() + timeout
    ended: Counter[JobState] = Counter()
    for id in ids:
        if id.startswith(BATCH_PREFIX):
            ended = yield from _wait_for_batch(id, until, ended, progress)
        else:
            job = yield from wait(id, None if until == inf else max(0.0, until - time.monotonic()))
            ended[job.state] += 1
        if progress is not None:
            progress(dict(ended))
    return dict(ended)


@contextmanager
def shown(progress: Counted | bool, least: int) -> Iterator[Counted | None]:
    """Yield a function for the counts of `wait_all`: the given one, or a bar, if it is True and there is a terminal.

    ``least`` is how many jobs there are at least.
    """
    if progress is not True:
        yield progress or None
        return
    from rich.console import Console  # noqa: PLC0415  # most programs draw nothing
    from rich.progress import Progress  # noqa: PLC0415  # as above

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("waiting", total=least)

        def show(counts: Mapping[JobState, int]) -> None:
            ended = sum(count for state, count in counts.items() if state in TERMINAL)
            bar.update(task, total=max(least, sum(counts.values())), completed=ended)

        yield show


def _wait_for_batch(
    id: str, until: float, before: Counter[JobState], progress: Counted | None
) -> Flow[Counter[JobState]]:
    pause_s = _FIRST_PAUSE_S
    while True:
        counts: JsonObject = yield requests.asked(dict, "GET", "/v1/jobs:counts", query_of(batch=id))
        if not counts["matched"]:
            raise InvalidInput(("batch",), f"{id!r} has no jobs", "the id of a batch whose jobs are kept")
        ended = before + Counter({state: counts[state] for state in TERMINAL})
        if progress is not None:
            progress(before + Counter({state: counts[state] for state in JobState}))
        live = sorted(set(JobState) - TERMINAL)
        if not any(counts[state] for state in live):
            return ended
        now = time.monotonic()
        if now >= until:
            query = query_of(batch=id, state=live, limit=1)
            page: ListPage[Job] = yield requests.asked(requests.page_of(Job), "GET", "/v1/jobs", query)
            if page.items:
                raise StillRunning(page.items[0])
        yield Pause(min(pause_s, until - now) if now < until else pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


_SUMMED = ("changed", "asked_to_stop", "refused")


def change_where(what: str, which: JobChange | ScheduleChange, *, key: str | None = None, **more: Any) -> Flow[Changed]:
    """Repeat a change until it is complete, as each request does only a part; ``progress`` gets the total so far."""
    filter: dict[str, Any] = {**which}
    hear: Progressed = filter.pop("progress", None) or (lambda _: None)
    how = {name: filter.pop(name) for name in ("dry_run", "expected") if name in filter}
    body = {"filter": plain(**filter), **plain(**how, **more)}
    repeated: dict[str, Any] = {} if key is None else requests.keyed(key)
    after: dict[str, Any] = {}
    total: Changed | None = None
    while True:
        answer: Changed = yield requests.asked(
            Changed.read, "POST", f"/v1/{what}", body={**body, **after}, more_s=requests.MANY_S, **repeated
        )
        if total is not None:
            summed = {name: getattr(total, name) + getattr(answer, name) for name in _SUMMED}
            error = answer.error or total.error
            answer = replace(answer, matched=total.matched, exact=total.exact, error=error, **summed)
        total = answer
        if total.complete:
            return total
        hear(total)
        # A replica of 0.2.0 returns no ``next`` and does not know ``after``.
        after = {} if total.next is None else {"after": total.next}
