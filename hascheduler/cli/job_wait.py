"""``hascheduler job wait``: until a job has ended."""

import time
from math import inf
from typing import Annotated, Any

import typer

from hascheduler.cli.client import Client, job_path
from hascheduler.cli.job_ends import tell_end
from hascheduler.cli.names import JobId
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url
from hascheduler.errors import WorldError
from hascheduler.model.durations import parse_duration
from hascheduler.model.job import TERMINAL

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_FAILURES_MAX = 10
"""In a row, once there was an answer: a replica that restarts is waited for, one that is not there is not."""


@example("hascheduler job wait job:0194f3a1b2c3 --timeout 5m && echo done")
def wait(
    id: JobId,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="SPAN", help="How long at most; default: as long as it takes.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Wait until a job has ended.

    The exit status is 0 if it has succeeded, else 1.
    """
    patience_ms = None if timeout is None else parse_duration(timeout, ("--timeout",))
    with Client(url) as client:
        tell_end(_end(client, job_path(id), patience_ms), as_json=as_json)


def _end(client: Client, path: str, patience_ms: int | None) -> dict[str, Any]:
    """The job when it has ended, or as it is when the time is over."""
    until = inf if patience_ms is None else time.monotonic() + patience_ms / 1_000
    pause_s, failures_left = _FIRST_PAUSE_S, 0
    while True:
        is_over = time.monotonic() >= until
        try:
            job = client.get(path)
            failures_left = _FAILURES_MAX
            if is_over or job["state"] in TERMINAL:
                return job
        except WorldError:
            if is_over or failures_left == 0:
                raise
            failures_left -= 1
        time.sleep(max(0.0, min(pause_s, until - time.monotonic())))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
