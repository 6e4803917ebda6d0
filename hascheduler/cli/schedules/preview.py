"""``hascheduler schedule preview``: the next fires of a schedule, from a replica or computed here."""

from typing import Annotated, Any

import typer

from hascheduler.cli.completion import complete_schedule
from hascheduler.cli.input.values import check_name, whole_or_none
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Given, Url, with_options
from hascheduler.cli.output.instants import with_utc
from hascheduler.cli.schedules.options import TRIGGER, new_trigger
from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs, parse_instant


@example(
    "hascheduler schedule preview nightly",
    'hascheduler schedule preview --cron "30 2 * * *" --timezone Europe/Paris',
    "hascheduler schedule preview --every 90s --jitter 5s --count 20",
)
@with_utc
@with_options("given", TRIGGER)
def preview_schedule(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A stored schedule; or options", autocompletion=complete_schedule),
    ] = None,
    count: Annotated[str, typer.Option("--count", metavar="N", help="How many fires")] = "10",
    start: Annotated[
        str | None, typer.Option("--from", metavar="INSTANT", help="As if it were then; default: now.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    *,
    given: Given,
) -> None:
    """Show the next fires and clock changes.

    Of a stored schedule by its NAME, or, with --cron, --every or --at, of one that is not there yet: that needs no
    replica (NAME then only decides the jitter).
    """
    from hascheduler.cli.output.console import console, print_json
    from hascheduler.cli.schedules.preview_page import preview_page
    from hascheduler.clock import SystemClock

    now_ms = SystemClock().wall_ms()
    after_ms = now_ms if start is None else WallMs(parse_instant(start, ("--from",)) - 1)
    if given:
        answer = _computed(name, given, now_ms, after_ms, _count(count))
        title = f"Next fires of {_trigger_text(given)}"
    elif name is not None:
        answer = _from_replica(url, name, start, _count(count))
        title = f"Next fires of {name}"
    else:
        raise InvalidInput(("NAME",), "neither a schedule nor times are given", "NAME, or --cron, --every or --at")
    if as_json:
        print_json(answer)
    else:
        console().print(preview_page(title, answer, now_ms))


def _computed(name: str | None, given: Given, now_ms: WallMs, after_ms: WallMs, count: int) -> dict[str, Any]:
    from hascheduler.cli.schedules.local_preview import preview
    from hascheduler.wire.trigger import checked_trigger

    return preview(name or "preview", checked_trigger(new_trigger(given), now_ms), after_ms, count=count)


def _from_replica(url: str, name: str, start: str | None, count: int) -> dict[str, Any]:
    from hascheduler.cli.replica import replica

    with replica(url) as scheduler:
        return {**scheduler.schedules.preview(check_name(name), count=count, start=start)}


def _count(text: str) -> int:
    from hascheduler.dispatch.schedules.previews import PREVIEW_COUNT_MAX

    count = whole_or_none("--count", text)
    if count is None or not 1 <= count <= PREVIEW_COUNT_MAX:
        raise InvalidInput(("--count",), f"{text[:64]!r}", f"1 to {PREVIEW_COUNT_MAX}")
    return count


def _trigger_text(given: Given) -> str:
    from hascheduler.cli.schedules.tables import trigger_text

    return trigger_text(new_trigger(given))
