"""``hascheduler schedule calendar``: the coming days, and what fires on each."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.client import Client
from hascheduler.cli.moments import clock_text, day_text, moment
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, LabelFilter, Url, label_query
from hascheduler.cli.schedule.coming import Zone, coming_rows, zone_of
from hascheduler.cli.tables import console, print_json
from hascheduler.cli.timelines import Row, count_fires
from hascheduler.clock import SystemClock
from hascheduler.triggers import upcoming

_TIMES_MAX = 4
"""A schedule that fires more often on a day is told by its count."""


@example("hascheduler schedule calendar --days 14")
def calendar(
    days: Annotated[int, typer.Option("--days", min=1, max=62, help="How many days, today included")] = 7,
    *,
    labels: LabelFilter = None,
    timezone: Zone = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the next days, and what fires on each."""
    zone = zone_of(timezone)
    now_ms = SystemClock().wall_ms()
    with Client(url) as client:
        rows = coming_rows(client.items("/v1/schedules", label_query(labels)), now_ms)
    found = list(calendar_days(rows, now_ms, days, zone))
    if as_json:
        print_json({"timezone": zone.key, "days": [{"day": str(day.date()), "fires": fires} for day, fires in found]})
    else:
        console().print(_table(found))


def calendar_days(
    rows: Sequence[Row], now_ms: int, days: int, zone: ZoneInfo
) -> Iterator[tuple[datetime, list[dict[str, Any]]]]:
    """Each day with its schedules: the times of those that fire seldom (in order), the count of the others (first)."""
    today = moment(now_ms).astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
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


def _first(row: Row, after_ms: int, count: int, zone: ZoneInfo) -> Iterator[datetime]:
    assert row.trigger is not None, "it fires"
    for one in upcoming(row.name, row.trigger, after_ms):
        if not one.excluded:
            yield moment(one.nominal_ms).astimezone(zone)
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
