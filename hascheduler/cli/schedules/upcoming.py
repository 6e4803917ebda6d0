"""``hascheduler schedule timeline`` and ``calendar``: when all schedules fire in the next hours or days."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import LabelFilter
from hascheduler.cli.output.answers import Shown, asks
from hascheduler.cli.output.instants import clock_text, day_text, reader_zone, utc_datetime
from hascheduler.cli.replica import Scheduler
from hascheduler.clock import SystemClock
from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs, parse_instant
from hascheduler.model.values.zone_data import read_zone, zone_names
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.noun import read_answer
from hascheduler.schema.trigger import Trigger
from hascheduler.triggers import count_firing, on_calendars, upcoming
from hascheduler.triggers.requests import read_trigger

_TIMES_MAX = 4
"""A schedule that fires more often on a day is shown by its count."""
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class ComingFires:
    """``fires_left`` bounds how many fires of a schedule come; None: no bound. Without ``trigger`` it says ``note``."""

    name: str
    trigger: Trigger | None
    fires_left: int | None = None
    note: str = ""

    def count(self, after_ms: int, through_ms: int) -> int:
        """Return how many nominal times in (after, through] are going to fire, if none fires before them."""
        count = 0 if self.trigger is None else count_firing(self.trigger, after_ms + 1, through_ms)
        return count if self.fires_left is None else min(count, self.fires_left)


ZoneOption = Annotated[
    str | None,
    typer.Option("--timezone", metavar="ZONE", help="Whose hours and days; default: that of TZ, or of this machine."),
]


def zone_or_default(name: str | None) -> ZoneInfo:
    """By its name, else the one in which all instants are shown."""
    if name is None:
        return reader_zone()
    if name not in zone_names():
        raise InvalidInput(("--timezone",), f"{name[:64]!r} is unknown", "an IANA name such as Europe/Paris")
    return read_zone(name)


@example("hascheduler schedule calendar --days 14")
@asks()
def calendar(
    scheduler: Scheduler,
    days: Annotated[int, typer.Option("--days", min=1, max=62, help="How many days, today included")] = 7,
    *,
    labels: LabelFilter = None,
    timezone: ZoneOption = None,
) -> Shown:
    """List the next days, and what fires on each."""
    zone, now_ms = zone_or_default(timezone), SystemClock().wall_ms()
    found = list(calendar_days(coming_fires(scheduler, labels, now_ms), now_ms, days, zone))
    answer = {"timezone": zone.key, "days": [{"day": str(day.date()), "fires": fires} for day, fires in found]}
    return Shown(answer, [_table(found), _zone_line(zone)])


def calendar_days(
    rows: Sequence[ComingFires], now_ms: int, days: int, zone: ZoneInfo
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
            count = row.count(after_ms, through_ms)
            if row.fires_left is not None:
                count = min(count, row.fires_left - spent[row.name])
            if not count:
                continue
            spent[row.name] += count
            at = [clock_text(one) for one in _first(row, after_ms, count, zone)] if count <= _TIMES_MAX else []
            fires.append({"name": row.name, "count": count, "at": at})
        yield day, sorted(fires, key=lambda one: (one["at"][:1], one["name"]))


def _first(row: ComingFires, after_ms: int, count: int, zone: ZoneInfo) -> Iterator[datetime]:
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
@asks(watch_s=1)
def timeline(
    scheduler: Scheduler,
    hours: Annotated[int, typer.Option("--hours", min=1, max=168, help="How far to look")] = 24,
    *,
    labels: LabelFilter = None,
    timezone: ZoneOption = None,
) -> Shown:
    """List when schedules fire next, and how often in the next hours.

    Nominal times: jitter is left out.
    """
    zone, now_ms = zone_or_default(timezone), SystemClock().wall_ms()
    rows = coming_fires(scheduler, labels, now_ms)
    fires = {row.name: row.count(now_ms, now_ms + hours * _HOUR_MS) for row in rows}
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("schedule", overflow="fold")
    table.add_column("next", no_wrap=True)
    table.add_column("fires", no_wrap=True, justify="right")
    for row in rows:
        count = fires[row.name]
        at = next(_first(row, now_ms, 1, zone)) if count else None
        shown = "–" if at is None else f"{day_text(at)} {clock_text(at)}"
        table.add_row(Text(row.name), row.note or shown, "" if row.note else f"{count:,}")
    picture = [table, _zone_line(zone)] if rows else [Text("There are no schedules.", style="dim")]
    return Shown({"hours": hours, "fires": fires}, picture)


def _zone_line(zone: ZoneInfo) -> Text:
    return Text(f"times of {zone.key}", style="dim")


def coming_fires(scheduler: Scheduler, labels: list[str] | None, now_ms: WallMs) -> list[ComingFires]:
    """The one that fires next comes first; then those that are paused or over."""
    schedules = list(scheduler.schedules.list(labels))
    uses_calendars = any(schedule["trigger"].get("calendars") for schedule in schedules)
    stored = scheduler.documents("calendars").list() if uses_calendars else ()
    calendars = {each["name"]: read_answer(Calendar, each) for each in stored}
    ordered = sorted(
        schedules,
        key=lambda one: (one["next_at"] is None, one["next_at"] and parse_instant(one["next_at"]), one["name"]),
    )
    return [_row(schedule, calendars, now_ms) for schedule in ordered]


def _row(schedule: Mapping[str, Any], calendars: Mapping[str, Calendar], now_ms: WallMs) -> ComingFires:
    name = schedule["name"]
    if schedule.get("paused"):
        return ComingFires(name, None, note="paused")
    if schedule["next_at"] is None:
        return ComingFires(name, None, note="over")
    try:
        trigger = on_calendars(read_trigger(schedule["trigger"], now_ms), calendars)
    except InvalidInput:
        # A replica of a newer version has kinds that are unknown here; or a calendar has just gone.
        return ComingFires(name, None, note="a trigger that this version does not know")
    if trigger.max_fires is None:
        return ComingFires(name, trigger)
    fired = (schedule.get("counts") or {}).get("fired", 0)
    return ComingFires(name, trigger, fires_left=max(0, trigger.max_fires - fired))
