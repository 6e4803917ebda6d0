"""``hascheduler job submit`` and ``wait``: one job, and its end if that is wanted."""

import time
from enum import StrEnum
from math import inf
from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.client import PATIENCE_S, Client, job_path
from hascheduler.cli.completion import JobId, complete_definition, complete_job
from hascheduler.cli.jobs.options import JOB, LABEL, job_fields, labels_of
from hascheduler.cli.jobs.tables import print_ended_job
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Given, Options, Url, with_options
from hascheduler.cli.output.console import console, print_json
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.model.durations import format_duration, parse_duration
from hascheduler.model.job import TERMINAL

_SAID_AS_THEY_ARE = ("target", "not_before", "expires_at", "depends_on", "on_dependency_failure")
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_FAILURES_MAX = 10
"""In a row, once there was an answer: a replica that restarts is waited for, one that is not there is not."""


class OnDependencyFailure(StrEnum):
    FAIL = "fail"
    IGNORE = "ignore"


_OPTIONS: Options = {
    "target": Annotated[
        str | None, typer.Option("--target", metavar="TEXT", help="What it works on; default: its own id.")
    ],
    **JOB,
    "not_before": Annotated[
        str | None, typer.Option("--not-before", metavar="INSTANT", help="It does not run before this.")
    ],
    "expires_at": Annotated[
        str | None, typer.Option("--expires-at", metavar="INSTANT", help="If it has not begun by then, it fails.")
    ],
    "depends_on": Annotated[
        list[str] | None,
        typer.Option(
            "--depends-on",
            metavar="JOB|BATCH",
            help="It runs when this has succeeded; again for more.",
            autocompletion=complete_job,
        ),
    ],
    "on_dependency_failure": Annotated[
        OnDependencyFailure | None,
        typer.Option("--on-dependency-failure", help="When one of those fails: fail too, or go on."),
    ],
    "label": LABEL,
}


@example(
    """hascheduler job submit sleep --payload '{"seconds": 5}' --tenant acme --lane bulk --resources cpu=2""",
    "hascheduler job submit log --wait 30s --idempotency-key order-4711",
)
@with_options("given", _OPTIONS)
def submit(
    definition: Annotated[
        str,
        typer.Argument(
            metavar="DEFINITION", help="The type of job", show_default=False, autocompletion=complete_definition
        ),
    ],
    wait: Annotated[
        str | None, typer.Option("--wait", metavar="SPAN", help="Wait so long for its end, and show the result.")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option("--idempotency-key", metavar="TEXT", help="Submitted again under it, it is the same job."),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    *,
    given: Given,
) -> None:
    """Submit a job, to run as soon as it may.

    With --wait the exit status is 0 if it has succeeded, else 1.
    """
    wait_ms = None if wait is None else parse_duration(wait, ("--wait",))
    headers = {} if idempotency_key is None else {"Idempotency-Key": sendable_key(idempotency_key)}
    query = [] if wait_ms is None else [("wait", format_duration(wait_ms))]
    patience_s = PATIENCE_S + (wait_ms or 0) / 1_000
    with Client(url) as client:
        heard, job = client.exchange(
            "POST", "/v1/jobs", _body(definition, given), query=query, headers=headers, patience_s=patience_s
        )
    if wait_ms is not None:
        print_ended_job(job, as_json=as_json)
    elif as_json:
        print_json(job)
    else:
        done = "known already: " if heard.get("Idempotency-Replayed") == "true" else "submitted "
        console().print(Text.assemble(done, (job["id"], "bold green")), soft_wrap=True)


def _body(definition: str, given: Given) -> dict[str, Any]:
    fields = {name: value for name, value in job_fields(given).items() if value is not None or name == "payload"}
    more = {name: given[name] for name in _SAID_AS_THEY_ARE if name in given}
    labels = {key: value for key, value in labels_of(given).items() if value is not None}
    return {"definition": definition, **fields, **more, **({"labels": labels} if labels else {})}


def sendable_key(key: str) -> str:
    if not 1 <= len(key) <= 255 or not all("!" <= character <= "~" for character in key):
        expected = "1 to 255 printable ASCII characters without blanks"
        raise InvalidInput(("--idempotency-key",), f"{key[:64]!r} can't be a key", expected)
    return key


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
        print_ended_job(_end(client, job_path(id), patience_ms), as_json=as_json)


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
