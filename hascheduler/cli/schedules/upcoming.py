"""``hascheduler schedule timeline`` and ``calendar``: when all schedules fire in the next hours or days."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, LabelFilter, Url, Watch
from hascheduler.cli.output.console import console, print_json, refuse_json_with_watch, show_or_watch
from hascheduler.cli.output.instants import clock_text, day_text, utc_datetime, with_utc
from hascheduler.cli.replica import replica
from hascheduler.cli.schedules.timeline_chart import (
    LEGEND,
    TimelineRow,
    ZoneOption,
    count_fires,
    draw_timeline,
    timeline_rows,
    zone_or_default,
)
from hascheduler.clock import SystemClock
from hascheduler.triggers import upcoming

_TIMES_MAX = 4
"""A schedule that fires more often on a day is shown by its count."""
_HOUR_MS = 3_600_000


@example("hascheduler schedule calendar --days 14")
@with_utc
def calendar(
    days: Annotated[int, typer.Option("--days", min=1, max=62, help="How many days, today included")] = 7,
    *,
    labels: LabelFilter = None,
    timezone: ZoneOption = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the next days, and what fires on each."""
    zone = zone_or_default(timezone)
    now_ms = SystemClock().wall_ms()
    with replica(url) as scheduler:
        rows = timeline_rows(scheduler, labels, now_ms)
    found = list(calendar_days(rows, now_ms, days, zone))
    if as_json:
        print_json({"timezone": zone.key, "days": [{"day": str(day.date()), "fires": fires} for day, fires in found]})
    else:
        console().print(_table(found), Text(f"times of {zone.key}", style="dim"))


def calendar_days(
    rows: Sequence[TimelineRow], now_ms: int, days: int, zone: ZoneInfo
) -> Iterator[tuple[datetime, list[dict[str, Any]]]]:
    """Each day with its schedules: the times of those that fire seldom (in order), the count of the others (first)."""
    today = utc_datetime(now_ms).astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    spent = dict.fromkeys((row.name for row in rows), 0)
    for number in range(days):
        day, next_day = today + timedelta(days=number), today + timedelta(days=number + 1)
        after_ms = max(now_ms, round(day.timestamp() * 1_000) - 1)
        through_ms = round(next_day.timestamp() * 1_000) - 1
        fires: list[dict[str, Any]] = []
        for row in rows:
            count = count_fires(row, after_ms, through_ms)
            if row.fires_left is not None:
                count = min(count, row.fires_left - spent[row.name])
            if not count:
                continue
            spent[row.name] += count
            at = [clock_text(one) for one in _first(row, after_ms, count, zone)] if count <= _TIMES_MAX else []
            fires.append({"name": row.name, "count": count, "at": at})
        yield day, sorted(fires, key=lambda one: (one["at"][:1], one["name"]))


def _first(row: TimelineRow, after_ms: int, count: int, zone: ZoneInfo) -> Iterator[datetime]:
    assert row.trigger is not None, "it fires"
    for one in upcoming(row.name, row.trigger, after_ms):
        if not one.excluded:
            yield utc_datetime(one.nominal_ms).astimezone(zone)
            count -= 1
        if not count:
            return


def _table(found: Sequence[tuple[datetime, list[dict[str, Any]]]]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    for day, fires in found:
        lines = Text("\n").join(_line(fire) for fire in fires) if fires else Text("–", style="dim")
        weekend = day.weekday() >= 5
        table.add_row(Text(day_text(day), style="bold cyan" if weekend else "bold"), lines)
    return table


def _line(fire: dict[str, Any]) -> Text:
    when = ", ".join(fire["at"]) or f"{fire['count']:,} times"
    return Text.assemble((f"{when}  ", "green"), fire["name"])


@example("hascheduler schedule timeline --hours 48 --label team=a")
@with_utc
def timeline(
    hours: Annotated[int, typer.Option("--hours", min=1, max=168, help="How far to look")] = 24,
    *,
    labels: LabelFilter = None,
    timezone: ZoneOption = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """Draw when schedules fire in the next hours.

    Nominal times: jitter is left out.
    """
    refuse_json_with_watch(as_json=as_json, watch=watch)
    zone = zone_or_default(timezone)
    with replica(url) as scheduler:

        def picture() -> RenderableType:
            now_ms = SystemClock().wall_ms()
            rows = timeline_rows(scheduler, labels, now_ms)
            if not rows:
                return Text("There are no schedules.", style="dim")
            lines = draw_timeline(rows, now_ms, hours, zone, console().width)
            return Group(*lines, "", Text(f"{LEGEND}   times of {zone.key}", style="dim"))

        if not as_json:
            show_or_watch(picture, watch=watch)
            return
        now_ms = SystemClock().wall_ms()
        rows = timeline_rows(scheduler, labels, now_ms)
        counts = [(row, count_fires(row, now_ms, now_ms + hours * _HOUR_MS)) for row in rows]
        fires = {row.name: count if row.fires_left is None else min(count, row.fires_left) for row, count in counts}
        print_json({"hours": hours, "fires": fires})
