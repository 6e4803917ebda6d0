"""``hascheduler schedule pause`` and ``resume``."""

from typing import Annotated, Any

import typer

from hascheduler.cli.client import Client, path_of
from hascheduler.cli.names import ScheduleName
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url
from hascheduler.cli.schedule.shown import show_schedule
from hascheduler.cli.tables import console, print_json
from hascheduler.clock import SystemClock


@example('hascheduler schedule pause nightly --because "the disk is full"')
def pause(
    name: ScheduleName,
    because: Annotated[str | None, typer.Option("--because", metavar="TEXT", help="Why, for people.")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Pause a schedule. Its jobs go on, and it can still be triggered by hand."""
    _change(url, name, "pause", {} if because is None else {"because": because}, as_json=as_json)


@example("hascheduler schedule resume nightly --catch-up")
def resume(
    name: ScheduleName,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Treat the times since the pause as late ones, by the misfire policy.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Resume a paused schedule, from now on.

    What lay in between does not fire, unless with --catch-up.
    """
    _change(url, name, "resume", {"catch_up": catch_up}, as_json=as_json)


def _change(url: str, name: str, action: str, body: dict[str, Any], *, as_json: bool) -> None:
    with Client(url) as client:
        answer = client.ask("POST", path_of("schedule", name, action), body)
    if as_json:
        print_json(answer)
    else:
        console().print(show_schedule(answer, SystemClock().wall_ms()))
