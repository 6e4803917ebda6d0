"""``hascheduler schedule preview``: the next fires, by a replica or computed here, and how clock changes move them."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hascheduler.cli.completion import complete_schedule
from hascheduler.cli.input.values import check_name, whole_or_none
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, Given, Url, with_options
from hascheduler.cli.output.answers import Answer, Shown, prints
from hascheduler.cli.output.instants import (
    clock_text,
    day_text,
    finest_of,
    offset_text,
    reader_zone,
    relative_text,
    utc_datetime,
    with_instants_shown,
)
from hascheduler.cli.replica import replica
from hascheduler.cli.schedules.options import TRIGGER, new_trigger
from hascheduler.cli.schedules.tables import trigger_text, warning_lines
from hascheduler.clock import SystemClock
from hascheduler.errors import InvalidInput
from hascheduler.model.values.durations import format_duration
from hascheduler.model.values.instants import WallMs, format_instant, parse_instant

if TYPE_CHECKING:
    from hascheduler.schema.trigger import Trigger
    from hascheduler.triggers import Upcoming


@example(
    "hascheduler schedule preview nightly",
    'hascheduler schedule preview --cron "30 2 * * *" --timezone Europe/Paris',
    "hascheduler schedule preview --every 90s --jitter 5s --count 20",
)
@prints()
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
    *,
    given: Given,
) -> Shown:
    """Show the next fires and clock changes.

    Of a stored schedule by its NAME, or, with --cron, --every or --at, of one that is not there yet: that needs no
    replica (NAME then only decides the jitter).
    """
    after_ms = None if start is None else WallMs(parse_instant(start, ("--from",)) - 1)
    wanted = _count(count)
    answer: Answer
    if given:
        trigger = new_trigger(given)
        answer, title = _computed(name or "preview", trigger, after_ms, wanted), trigger_text(trigger)
    elif name is not None:
        with replica(url) as scheduler:
            answer, title = scheduler.schedules.preview(check_name(name), count=wanted, start=start), name
    else:
        raise InvalidInput(("NAME",), "neither a schedule nor times are given", "NAME, or --cron, --every or --at")
    return Shown(answer, preview_page(f"Next fires of {title}", answer))


def _computed(schedule: str, said: Answer, after_ms: WallMs | None, count: int) -> Answer:
    """Return the first ``count`` fires after ``after_ms`` or now, and the clock changes of the next 400 days.

    ``schedule`` is the name that decides the jitter.
    """
    from hascheduler.dispatch.schedules import previews
    from hascheduler.triggers.requests import checked_trigger

    now_ms = SystemClock().wall_ms()
    trigger, after_ms = checked_trigger(said, now_ms), now_ms if after_ms is None else after_ms
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


def _count(text: str) -> int:
    from hascheduler.dispatch.schedules.previews import PREVIEW_COUNT_MAX

    count = whole_or_none("--count", text)
    if count is None or not 1 <= count <= PREVIEW_COUNT_MAX:
        raise InvalidInput(("--count",), f"{text[:64]!r}", f"1 to {PREVIEW_COUNT_MAX}")
    return count


_PAYLOAD_SHOWN_MAX = 200

_CHANGE = {"": "", "+": "green", "-": "red"}


def preview_page(title: str, answer: Answer) -> RenderableType:
    parts: list[RenderableType] = [Text(title, style="bold")]
    parts += warning_lines(answer)
    parts.append(_fires(answer))
    changes = answer.get("clock_changes") or []
    zone = answer.get("timezone") or "UTC"
    if changes:
        # Several zones are shown in UTC, and each change says whose clock it is.
        one = zone != "UTC"
        parts.append(Text.assemble("\n", (f"Clock changes{f' in {zone}' if one else ''} within 400 days", "bold")))
        parts += [_clock_change(change, one_zone=one) for change in changes]
    elif zone != "UTC":
        parts.append(Text(f"\nClocks in {zone} do not change within 400 days.", style="dim"))
    return Group(*parts)


def _fires(answer: Answer) -> RenderableType:
    rows = list(_rows(answer))
    if not rows:
        return Text("\nIt will not fire any more.", style="yellow")
    zone, reader = answer.get("timezone") or "UTC", reader_zone()
    finest = finest_of([parse_instant(fire["nominal_at"]) for _, fire in rows])
    compared = any(sign for sign, _ in rows)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("", zone, reader.key, "jitter", "when"):
        justify: JustifyMethod = "left" if name in (zone, reader.key, "when") else "right"
        style = "dim" if name in ("", reader.key) and name != zone else ""
        grid.add_column(name, no_wrap=True, justify=justify, style=style)
    lines: list[RenderableType] = []
    number = 0
    for sign, fire in rows:
        nominal_ms, due_ms = parse_instant(fire["nominal_at"]), parse_instant(fire["due_at"])
        fires = sign != "-" and not fire["excluded"]
        number += fires
        first = f"{sign}{number if fires else ''}" if compared else str(number if fires else "×")
        local = _local(fire, finest)
        theirs = utc_datetime(nominal_ms).astimezone(reader)
        read = f"{theirs.date()} {clock_text(theirs, finest=finest)}"
        jitter = f"+{format_duration(due_ms - nominal_ms)}"
        style = _CHANGE[sign] or ("dim" if fire["excluded"] else "")
        grid.add_row(first, local, read, jitter, relative_text(fire["nominal_at"]), style=style)
        note = fire.get("note") or ("is excluded" if fire["excluded"] else "")
        if note:
            lines.append(Text.assemble((f"{local}  ", "dim"), (with_instants_shown(str(note)), "yellow")))
        if fire.get("payload") is not None:
            text = json.dumps(fire["payload"], ensure_ascii=False)
            shown = text if len(text) <= _PAYLOAD_SHOWN_MAX else f"{text[:_PAYLOAD_SHOWN_MAX]}…"
            lines.append(Text.assemble((f"{local}  ", "dim"), shown))
    if all(fire["due_at"] == fire["nominal_at"] for _, fire in rows):
        del grid.columns[3]
    if zone == reader.key:
        del grid.columns[2]
    return Group("", grid, *(["", *lines] if lines else []))


def _rows(answer: Answer) -> Iterator[tuple[str, Answer]]:
    """The fires in their order; in a comparison, what came is ``+`` and what went is ``-``."""
    added = {fire["nominal_at"] for fire in answer.get("added") or ()}
    rows = [("+" if fire["nominal_at"] in added else "", fire) for fire in answer["fires"]]
    rows += [("-", fire) for fire in answer.get("removed") or ()]
    yield from sorted(rows, key=lambda row: parse_instant(row[1]["nominal_at"]))


def _local(fire: Answer, finest: str) -> str:
    """``Sun 28 Mar 2027 03:00 +02:00``."""
    local = datetime.fromisoformat(fire["local"])
    day = day_text(local)
    return f"{day:<15} {clock_text(local, finest=finest)} {offset_text(local)}"


def _clock_change(change: Answer, *, one_zone: bool) -> RenderableType:
    at_ms = parse_instant(change["at"])
    # An offset such as +02:00 is that of an instant with it.
    before, after = (
        datetime.fromisoformat(f"2000-01-01T00:00:00{change[name]}").utcoffset() or timedelta()
        for name in ("offset_before", "offset_after")
    )
    wall_before, wall_after = utc_datetime(at_ms) + before, utc_datetime(at_ms) + after
    way = "forward" if change["kind"] == "gap" else "back"
    head = Text.assemble(
        (day_text(wall_before - timedelta(milliseconds=1)), "bold"),
        f"  clocks go {way} ",
        (f"{clock_text(wall_before)} → {clock_text(wall_after)}", "cyan"),
        (f"  ({change['offset_before']} → {change['offset_after']})", "dim"),
    )
    # An explanation begins with what the clock does, which stands in the heading already, and whose clock it is.
    explanation = change["explanation"].partition("; ")[2] if one_zone else ""
    text = Text(explanation or change["explanation"])
    return Padding(Group(head, Padding(text, (0, 0, 0, 2))), (1, 0, 0, 0))
