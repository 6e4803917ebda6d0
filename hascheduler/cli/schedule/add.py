"""``hascheduler schedule add``: a new schedule."""

from typing import Annotated

import typer

from hascheduler.cli.names import NewName
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, DryRun, Given, Url, with_options
from hascheduler.cli.schedule_options import SCHEDULE, new_schedule


@example(
    "hascheduler schedule add tick --every 1s --definition log",
    'hascheduler schedule add nightly --cron "30 2 * * *" --timezone Europe/Paris \\',
    "    --definition repack --target demo --overlap skip --label team=a",
)
@with_options("given", SCHEDULE)
def add(
    name: NewName,
    paused: Annotated[bool, typer.Option("--paused", help="Create it paused.")] = False,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    *,
    given: Given,
) -> None:
    """Make a schedule.

    --cron, --every or --at say when, --definition says what.
    """
    body = new_schedule(name, given) | ({"paused": True} if paused else {})

    from hascheduler.cli.client import Client
    from hascheduler.cli.diffs import as_text
    from hascheduler.cli.schedule.shown import show_schedule
    from hascheduler.cli.shown_previews import show_preview
    from hascheduler.cli.tables import console, print_json
    from hascheduler.clock import SystemClock

    now_ms = SystemClock().wall_ms()
    with Client(url) as client:
        if dry_run:
            answer = client.ask("POST", "/v1/schedules/preview", {"name": name, "trigger": body["trigger"]})
        else:
            answer = client.ask("POST", "/v1/schedules", body)
    if as_json:
        print_json({"body": body, "preview": answer} if dry_run else answer)
    elif dry_run:
        console().print(as_text(body), "")
        console().print(show_preview("Next fires", answer, now_ms))
    else:
        console().print(show_schedule(answer, now_ms))
