"""The SDK: the whole HTTP API from your code, with and without an asyncio loop.

::

    from hascheduler.client import JobFailed, Scheduler

    with Scheduler("http://replica-1:8080,http://replica-2:8080") as scheduler:  # or Scheduler.from_env()
        job = scheduler.submit("resize", {"image": "a.png"}, priority=7, labels={"team": "a"})
        scheduler.wait(job.id, timeout=60)
        thumbnail = scheduler.call("thumbnail", {"image": "a.png"}, timeout=10)  # what the handler returned
        done = scheduler.submit_many([
            {"ref": "fetch", "definition": "fetch", "payload": {"url": "https://example.org"}},
            {"definition": "index", "depends_on": ["ref:fetch"]},
        ])
        for job in scheduler.list(state="failed", definition="resize"):
            print(job.id, job.failures, job.error)
        scheduler.cancel_where(labels={"team": "a"}, dry_run=True).matched

    scheduler.schedules      create, put, get, list, patch, delete, pause, resume, trigger, backfill, preview, …
                             pause_where, resume_where, reset_where, trigger_where: all that match
    scheduler.definitions    put, get, list, patch, delete; the same for ``lanes``, ``calendars``, ``tenants``:
                             ``put(Definition(name="resize", max_concurrency=3, timeout_ms=60_000))``
    scheduler.documents      the same five as JSON, for programs that hold files
    scheduler.cluster        status, processors, failovers, whoami, audit, record
    scheduler.events         follow: job events as they happen, resumed at the next replica if one goes away
    scheduler.tokens         create, list, revoke
    scheduler.work           register, fetch, start, heartbeat, finish: the exchange of processors in other languages

`AsyncScheduler` has the same methods, to be awaited (``async for`` over lists and events). Named nouns are the classes
of `hascheduler.schema`. All other answers are the API's JSON with typed attributes: ``schedule["next_at"]`` is the
text, ``schedule.next_at`` the datetime (`hascheduler.client.answer`).

A submit is safe to retry, and is retried: it carries an idempotency key, a fresh one unless you give your own (such as
an order number), so it makes one job however often it is sent. Failed connections, 502, 503 and 504 are retried at the
next replica, 429 after the pause that the replica asks for. Each request is retried for ``patience`` seconds, plus the
time for which it asked the replica to hold the answer back. A request that makes something new each time (a schedule, a
token) is retried only if it never reached a replica, or if a check finds nothing there; after `Unavailable`, check
whether it is there.

Errors are `Refused` (with its subclasses `NotFound` and `Conflict`), `Unavailable`, `InvalidInput` for values that
can't be sent, and from ``call`` and ``wait`` `JobFailed`, `JobCancelled` and `StillRunning`, which have the ``job``.

How it is built: ``requests`` defines each request and how its answer is read, ``flows`` the operations of several
requests, both without any I/O. ``asynchronous`` carries them out; ``synchronous``, ``answers`` and ``options`` are
written by ``scripts/generate-client``. The SDK needs httpx2 and nothing of the scheduler but its words (``model``), its
errors, `hascheduler.contexts` and, on first use of a named noun, its nouns (``schema``, and so pydantic).
"""

from typing import TYPE_CHECKING, Any

from hascheduler.client.answer import Answer
from hascheduler.client.answers import AttemptResponse as Attempt
from hascheduler.client.answers import ProgressResponse as Progress
from hascheduler.client.asynchronous.scheduler import AsyncScheduler
from hascheduler.client.failures import JobCancelled, JobFailed, Refused, StillRunning, Unavailable
from hascheduler.client.failures import RefusedConflict as Conflict
from hascheduler.client.failures import RefusedNotFound as NotFound
from hascheduler.client.options import BatchJob, JobChangeFilter, JobOptions
from hascheduler.client.results import BatchResult, Changed, Job, JobEvent, ListPage, Problem, Submitted
from hascheduler.client.synchronous.scheduler import Scheduler
from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState

if TYPE_CHECKING:
    from hascheduler.client.nouns import (
        Calendar,
        Definition,
        KeyLimit,
        Lane,
        RateLimit,
        RetryPolicy,
        Tenant,
        Uniqueness,
    )

__all__ = [
    "Answer", "AsyncScheduler", "Attempt", "BatchJob", "BatchResult", "Calendar", "Changed", "Conflict", "Definition",
    "InvalidInput", "Job", "JobCancelled", "JobChangeFilter", "JobEvent", "JobFailed", "JobOptions", "JobState",
    "KeyLimit", "Lane", "ListPage", "NotFound", "Problem", "Progress", "RateLimit", "Refused", "RetryPolicy",
    "Scheduler", "StillRunning", "Submitted", "Tenant", "Unavailable", "Uniqueness",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import nouns on first use."""
    if name in __all__:
        from hascheduler.client import nouns  # noqa: PLC0415  # programs that only submit need no pydantic

        return getattr(nouns, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
