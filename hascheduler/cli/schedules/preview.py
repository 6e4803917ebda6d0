"""``hascheduler schedule preview``: the next fires of a schedule, from a replica or computed here."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hascheduler.cli.completion import complete_schedule
from hascheduler.cli.input.values import check_name, whole_or_none
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Given, Url, with_options
from hascheduler.cli.output.instants import with_utc
from hascheduler.cli.schedules.options import TRIGGER, new_trigger
from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs, format_instant, parse_instant

if TYPE_CHECKING:
    from hascheduler.model.trigger import Trigger
    from hascheduler.triggers import Upcoming


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
    from hascheduler.wire.trigger import checked_trigger

    return _preview(name or "preview", checked_trigger(new_trigger(given), now_ms), after_ms, count=count)


def _preview(schedule: str, trigger: "Trigger", after_ms: WallMs, *, count: int) -> dict[str, Any]:
    """The first ``count`` fires after ``after_ms``, and the clock changes of the next 400 days.

    ``schedule`` is the name that decides the jitter.
    """
    from hascheduler.dispatch.schedules import previews

    times = list(_times(schedule, trigger, after_ms, count))
    made = asdict(previews.finished(previews.make_preview(schedule, trigger, after_ms, times)))
    # A trigger alone has no payload.
    return {**made, "fires": [{**fire, "payload": None} for fire in made["fires"]]}


def _times(schedule: str, trigger: "Trigger", after_ms: WallMs, count: int) -> "Iterator[Upcoming]":
    """``count`` fires, and of each window of excluded times that lies between them the first, with how many there are.

    A window may hold millions of them, so they are counted and not looked at.
    """
    from hascheduler.triggers import Upcoming, count_nominal, excluded_until, upcoming

    fired, passed_ms = 0, after_ms
    while True:
        for one in upcoming(schedule, trigger, passed_ms, fired=fired):
            end_ms = excluded_until(trigger, one.nominal_ms)
            if end_ms is not None:
                left_out = count_nominal(trigger, one.nominal_ms - 1, end_ms - 1)
                times = "1 time is" if left_out == 1 else f"{left_out:,} times are"
                note = f"{times} excluded, until {format_instant(end_ms)}"
                yield Upcoming(one.nominal_ms, one.due_ms, excluded=True, note=note)
                passed_ms = WallMs(end_ms - 1)
                break
            yield one
            fired += 1
            if fired == count:
                return
        else:
            return


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
