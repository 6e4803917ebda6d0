"""What takes more than one request: as generators that yield what is to be done next and get what came of it.

Neither of the two schedulers knows what happens here, and nothing here knows which of them carries it out.
"""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, TypedDict, TypeVar
from uuid import uuid4

from hascheduler.client import requests
from hascheduler.client.batching import group_key, split_jobs
from hascheduler.client.bodies import job_body, plain
from hascheduler.client.failures import JobCancelled, JobFailed, StillRunning
from hascheduler.client.options import BatchJob, JobChangeFilter, JobOptions, ScheduleChangeFilter
from hascheduler.client.requests import Request
from hascheduler.client.results import BatchResult, Changed, Job, Submitted
from hascheduler.model.job import JobState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pause:
    for_s: float


Flow = Generator[Request[Any] | Pause, Any, T]
Progressed = Callable[[Changed], None]


class ChangeOptions(TypedDict, total=False):
    """``dry_run`` only counts what matches, ``progress`` hears of each part. ``expected`` is the count that you agreed
    to: `Refused` (409) if more than 10 % more match now."""

    dry_run: bool
    expected: int
    progress: Progressed


class JobChange(JobChangeFilter, ChangeOptions, total=False):
    """Which jobs to change, and how."""


class ScheduleChange(ScheduleChangeFilter, ChangeOptions, total=False):
    """Which schedules to change, and how."""


_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_HELD_S = 30.0
"""Less than proxies put up with."""


def key_of(given: str | None) -> str:
    """A fresh one only where none is given: an empty one is a mistake, and would be another job each time."""
    return str(uuid4()) if given is None else given


def submit(
    definition: str, payload: object, idempotency_key: str | None, wait: float | None, options: JobOptions
) -> Flow[Job]:
    body = job_body(definition, payload, options)
    job: Job = yield requests.submit(body, key_of(idempotency_key), wait)
    return job


def submit_many(jobs: Sequence[BatchJob], idempotency_key: str | None, *, atomic: bool) -> Flow[Submitted]:
    """In as few requests as they fit into."""
    key = key_of(idempotency_key)
    groups = split_jobs([plain(**job) for job in jobs], atomic=atomic)
    # The longest of them: a key that can't be sent is refused before anything is sent.
    requests.demand_key(group_key(key, len(groups) - 1))
    batches: list[str] = []
    results: list[BatchResult] = []
    for number, group in enumerate(groups):
        if group:
            batch, answers = yield requests.submit_batch(
                group, group_key(key, number), key, requests.batch_of, atomic=atomic
            )
            batches.append(batch)
            results += answers
    return Submitted(tuple(batches), tuple(results))


def call(
    definition: str, payload: object, timeout: float, idempotency_key: str | None, options: JobOptions
) -> Flow[Any]:
    """The result. The replica holds the submit back until the job has ended; where that takes longer than it may,
    or breaks off, the same submit asks again. Of another job, whose duplicate this one is, only that is asked for: the
    same submit would make a new one when that has ended."""
    body = job_body(definition, payload, {"mode": "on_demand", **options})
    key = key_of(idempotency_key)
    until = time.monotonic() + timeout
    other: str | None = None
    while True:
        held_s = min(max(0.0, until - time.monotonic()), requests.WAIT_S_MAX)
        job: Job = yield requests.submit(body, key, held_s) if other is None else requests.get(other, held_s)
        other = job.id if job.is_duplicate else other
        if job.has_ended:
            return _result(job)
        if time.monotonic() >= until:
            raise StillRunning(job)
        yield Pause(_FIRST_PAUSE_S)


def wait(job_id: str, timeout: float | None) -> Flow[Job]:
    """The job when it has ended, however it did; `StillRunning` when the time is over.

    Each request is held back by the replica. Where that answers at once (too many wait there, or it is of 0.2.0), the
    next one comes after a pause.
    """
    until = inf if timeout is None else time.monotonic() + timeout
    pause_s = _FIRST_PAUSE_S
    while True:
        began = time.monotonic()
        held_s = max(0.0, min(until - began, _HELD_S))
        job: Job = yield requests.get(job_id, held_s)
        if job.has_ended:
            return job
        now = time.monotonic()
        if now >= until:
            raise StillRunning(job)
        if now - began < held_s / 2:
            yield Pause(max(0.0, min(pause_s, until - now)))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def change_where(
    what: str, which: JobChange | ScheduleChange, *, key: str | None = None, **more: object
) -> Flow[Changed]:
    """Repeat until it is complete: a request does a part of a large change; ``progress`` gets what is done so far."""
    filter: dict[str, Any] = {**which}
    options = {name: filter.pop(name) for name in ("dry_run", "expected") if name in filter}
    progress: Progressed | None = filter.pop("progress", None)
    body = {"filter": plain(**filter), **plain(**options, **more)}
    total: Changed = yield requests.change_where(what, body, key)
    while not total.complete:
        if progress is not None:
            progress(total)
        # A replica of 0.2.0 gives no ``next`` and knows no ``after``.
        after = {} if total.next is None else {"after": total.next}
        answer: Changed = yield requests.change_where(what, {**body, **after}, key)
        total = replace(
            answer,
            matched=total.matched,
            exact=total.exact,
            changed=total.changed + answer.changed,
            asked_to_stop=total.asked_to_stop + answer.asked_to_stop,
            refused=total.refused + answer.refused,
            error=answer.error or total.error,
        )
    return total


def _result(job: Job) -> Any:
    match job.state:
        case JobState.SUCCEEDED:
            return job.result
        case JobState.CANCELLED:
            raise JobCancelled(job)
        case _:
            raise JobFailed(job)
