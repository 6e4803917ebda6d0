"""``hascheduler job submit`` and ``wait``: one job, and its end if that is wanted."""

import time
from math import inf
from typing import Annotated

import typer
from rich.text import Text

from hascheduler.cli.completion import JobId, complete_definition
from hascheduler.cli.fields import body_of, options_of
from hascheduler.cli.input.values import check_job_id, sendable_key
from hascheduler.cli.jobs.tables import ended_job
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Given, IdempotencyKey, with_options
from hascheduler.cli.output.answers import OutputForm, Shown, asks
from hascheduler.cli.output.printable import printable
from hascheduler.cli.replica import Job, Scheduler, as_cli_errors
from hascheduler.errors import WorldError
from hascheduler.model.values.durations import parse_duration
from hascheduler.schema.job import SubmitJobBody

_ARGUMENT = ("definition",)
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_HELD_S = 30.0
"""For how long a replica holds a request back; less than proxies put up with."""
_FAILURES_MAX = 10
"""In a row, once there was an answer: a replica that restarts is waited for, one that is not there is not."""

_DUPLICATE = "not submitted: jobs of {} are unique, and this is a duplicate"


@example(
    """hascheduler job submit sleep --payload '{"seconds": 5}' --tenant acme --lane bulk --resources cpu=2""",
    "hascheduler job submit log --wait 30s --idempotency-key order-4711",
)
@asks(name="id")
@with_options("given", options_of(SubmitJobBody, _ARGUMENT))
def submit(
    scheduler: Scheduler,
    definition: Annotated[
        str,
        typer.Argument(
            metavar="DEFINITION", help="The type of job", show_default=False, autocompletion=complete_definition
        ),
    ],
    wait: Annotated[
        str | None, typer.Option("--wait", metavar="SPAN", help="Wait so long for its end, and show the result.")
    ] = None,
    idempotency_key: IdempotencyKey = None,
    *,
    given: Given,
    output: OutputForm,
) -> Shown:
    """Submit a job, to run as soon as it may.

    With --wait the exit status is 0 if it has succeeded, 3 if it has failed, 4 if it was cancelled, 5 if it has not
    ended yet.
    """
    wait_ms = None if wait is None else parse_duration(wait, ("--wait",))
    key = sendable_key(idempotency_key)
    said = body_of(SubmitJobBody, given, _ARGUMENT)
    job = scheduler.submit(definition, wait=None if wait_ms is None else wait_ms / 1_000, idempotency_key=key, **said)
    done = "known already: " if job.replayed else "submitted "
    if job.is_duplicate:
        done = f"{_DUPLICATE.format(definition)} of "
        if wait_ms is not None or output is not OutputForm.TEXT:
            typer.echo(f"hascheduler: {done}{printable(job.id)}", err=True)
    if wait_ms is not None:
        return ended_job(job.fields)
    return Shown(job.fields, Text.assemble(done, (job.id, "bold green")))


@example("hascheduler job wait job:0194f3a1b2c3 --timeout 5m && echo done")
@asks(name="id")
def wait(
    scheduler: Scheduler,
    id: JobId,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="SPAN", help="How long at most; default: as long as it takes.")
    ] = None,
) -> Shown:
    """Wait until a job has ended.

    The exit status is 0 if it has succeeded, 3 if it has failed, 4 if it was cancelled, 5 if it has not ended yet.
    """
    patience_ms = None if timeout is None else parse_duration(timeout, ("--timeout",))
    return ended_job(_end(scheduler, check_job_id(id), patience_ms).fields)


def _end(scheduler: Scheduler, id: str, patience_ms: int | None) -> Job:
    """The job when it has ended, or as it is when the time is over."""
    until = inf if patience_ms is None else time.monotonic() + patience_ms / 1_000
    pause_s, failures_left = _FIRST_PAUSE_S, 0
    while True:
        began = time.monotonic()
        held_s = max(0.0, min(until - began, _HELD_S))
        is_over = began >= until
        try:
            with as_cli_errors():
                job = scheduler.get(id, wait=held_s)
            failures_left = _FAILURES_MAX
            if is_over or job.has_ended:
                return job
        except WorldError:
            if is_over or failures_left == 0:
                raise
            failures_left -= 1
        now = time.monotonic()
        if now - began < held_s / 2:  # too many wait at that replica, it is of 0.2.0, or it did not answer
            time.sleep(max(0.0, min(pause_s, until - now)))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
