"""``hascheduler job submit``: one job, and its answer if that is wanted."""

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.client import PATIENCE_S, Client
from hascheduler.cli.job_ends import tell_end
from hascheduler.cli.job_options import JOB, LABEL, job_fields, labels_of
from hascheduler.cli.names import complete_definition, complete_job
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Given, Options, Url, with_options
from hascheduler.cli.tables import console, print_json
from hascheduler.errors import InvalidInput
from hascheduler.model.durations import format_duration, parse_duration


class OnDependencyFailure(StrEnum):
    FAIL = "fail"
    IGNORE = "ignore"


_SAID_AS_THEY_ARE = ("target", "not_before", "expires_at", "depends_on", "on_dependency_failure")
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
        tell_end(job, as_json=as_json)
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
