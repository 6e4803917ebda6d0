"""``hascheduler job submit``: one job."""

from typing import Annotated

import typer
from rich.text import Text

from hascheduler.cli.client import Client
from hascheduler.cli.job_options import JOB, LABEL, job_fields, labels_of
from hascheduler.cli.names import complete_definition
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Given, Options, Url, with_options
from hascheduler.cli.tables import console, print_json

_OPTIONS: Options = {
    "target": Annotated[
        str | None, typer.Option("--target", metavar="TEXT", help="What it works on; default: its own id.")
    ],
    **JOB,
    "not_before": Annotated[
        str | None, typer.Option("--not-before", metavar="INSTANT", help="It does not run before this.")
    ],
    "label": LABEL,
}


@example("""hascheduler job submit sleep --payload '{"seconds": 5}' --tenant acme --lane bulk --resources cpu=2""")
@with_options("given", _OPTIONS)
def submit(
    definition: Annotated[
        str,
        typer.Argument(
            metavar="DEFINITION", help="The type of job", show_default=False, autocompletion=complete_definition
        ),
    ],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    *,
    given: Given,
) -> None:
    """Submit a job, to run as soon as it may."""
    fields = {name: value for name, value in job_fields(given).items() if value is not None or name == "payload"}
    more = {name: given[name] for name in ("target", "not_before") if name in given}
    labels = {key: value for key, value in labels_of(given).items() if value is not None}
    body = {"definition": definition, **fields, **more, **({"labels": labels} if labels else {})}
    with Client(url) as client:
        answer = client.ask("POST", "/v1/jobs", body)
    if as_json:
        print_json(answer)
    else:
        console().print(Text.assemble("submitted ", (answer["id"], "bold green")), soft_wrap=True)
