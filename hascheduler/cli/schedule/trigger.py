"""``hascheduler schedule trigger``: one job now."""

from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.client import Client, path_of
from hascheduler.cli.job_options import read_payload
from hascheduler.cli.names import ScheduleName
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url
from hascheduler.cli.tables import console, print_json
from hascheduler.model.schedule import Overlap


@example("""hascheduler schedule trigger nightly --payload '{"full": true}'""")
def trigger(
    name: ScheduleName,
    overlap: Annotated[
        Overlap | None,
        typer.Option("--overlap", help="While an earlier job has not ended; default: as the schedule has it."),
    ] = None,
    payload: Annotated[
        str | None,
        typer.Option("--payload", metavar="JSON|@FILE", help="Another payload than the schedule's."),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make a job of a schedule now.

    Beside its times, and whether it is paused or not.
    """
    body: dict[str, Any] = {} if overlap is None else {"overlap": overlap.value}
    if payload is not None:
        body["payload"] = read_payload(payload)
    with Client(url) as client:
        job = client.ask("POST", path_of("schedule", name, "trigger"), body)
    if as_json:
        print_json(job)
    else:
        console().print(Text.assemble("triggered ", (job["id"], "bold green")), soft_wrap=True)
