"""``hascheduler pause --all`` and ``hascheduler resume --all``: everything stops, and goes on."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url
from hascheduler.cli.output.console import console, print_json
from hascheduler.cli.output.instants import instant_text, with_utc
from hascheduler.cli.replica import replica
from hascheduler.errors import InvalidInput

All = Annotated[bool, typer.Option("--all", help="Everything there is; demanded, as it concerns all.")]


@example('hascheduler pause --all --because "the database of the invoices moves"')
@with_utc
def pause(
    everything: All = False,
    because: Annotated[
        str | None, typer.Option("--because", metavar="TEXT", help="Why, for all who wonder; demanded.")
    ] = None,
    schedules_only: Annotated[
        bool, typer.Option("--schedules-only", help="No schedule fires; jobs that wait are dispatched all the same.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Pause everything: no schedule fires, no job begins.

    It lasts until `hascheduler resume --all`, through changes of the leader. What has been dispatched goes on to its
    end. Then each schedule catches up as its misfire policy says, as after a time without a leader.
    """
    _demand_all("pause", everything=everything)
    if because is None:
        raise InvalidInput(("--because",), "missing", "a reason, for all who wonder why nothing happens")
    with replica(url) as scheduler:
        answer = scheduler.cluster.pause(because, schedules_only=schedules_only)
    _show(answer, as_json=as_json)


@example("hascheduler resume --all")
def resume(everything: All = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Resume everything that `hascheduler pause` has paused.

    Schedules that are paused by themselves stay so, and drained processors drained.
    """
    _demand_all("resume", everything=everything)
    with replica(url) as scheduler:
        answer = scheduler.cluster.resume()
    _show(answer, as_json=as_json)


def pause_line(paused: Mapping[str, Any]) -> str:
    """``everything is paused since 2030-01-01T00:00:00Z by deployer: the database moves``."""
    what = "all schedules are paused" if paused["schedules_only"] else "everything is paused"
    return f"{what} since {instant_text(paused['since'])} by {paused['by']}: {paused['because']}"


def _demand_all(command: str, *, everything: bool) -> None:
    if not everything:
        raise InvalidInput(("--all",), "missing", f"--all, or for one schedule: hascheduler schedule {command} NAME")


def _show(answer: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    paused = answer["paused"]
    console().print("nothing is paused" if paused is None else pause_line(paused), markup=False, soft_wrap=True)
