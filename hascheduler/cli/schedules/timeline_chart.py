"""Draws when schedules fire, one row each, as wide as the terminal: what `hascheduler schedule timeline` shows.

::

              Sat 21 Nov              │Sun 22 Nov
              18      20      22      │00      02
    backup    ╵       ╵       ╵       │╵       ╵•         1
    report    ╵•      ╵•      ╵•      │╵•      ╵•        24
    tick      ████████████████████████│█████████████ 86,400

Each cell counts the fires in it, so a row costs as much for a schedule of every second as for one of every day.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer
from rich.cells import cell_len
from rich.text import Text

from hascheduler.cli.output.instants import day_text, reader_zone, utc_datetime
from hascheduler.client import Scheduler
from hascheduler.errors import InvalidInput
from hascheduler.model.calendar import Calendar
from hascheduler.model.trigger import Trigger
from hascheduler.model.values.instants import WallMs, parse_instant
from hascheduler.model.values.zone_data import read_zone, zone_names
from hascheduler.triggers import count_firing, on_calendars
from hascheduler.wire.calendar import CalendarBody
from hascheduler.wire.trigger import read_trigger
from hascheduler.wire.validation import validated

_MINUTE_MS = 60_000
_CELL_MINUTES = (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1_440)
_HOUR_MS = 60 * _MINUTE_MS
# With these, the usual 24 hours have cells of half an hour in 80 columns.
_NAME_WIDTH_MAX = 20
_TOTAL_WIDTH = 8
_LABEL_WIDTH = 6
_DENSITIES = ((1, "•"), (2, "▂"), (10, "▅"), (100, "█"))
LEGEND = "• once   ▂ 2 or more   ▅ 10 or more   █ 100 or more"


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """``fires_left`` bounds how many there will be (None: no bound); without ``trigger`` it says only ``note``."""

    name: str
    trigger: Trigger | None
    fires_left: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """``cells`` spans of ``cell_ms`` from ``start_ms``, shown in ``zone``; what counts lies in (after, through]."""

    after_ms: int
    through_ms: int
    start_ms: int
    cell_ms: int
    cells: int
    zone: ZoneInfo

    def at(self, cell: int) -> datetime:
        return utc_datetime(self.start_ms + cell * self.cell_ms).astimezone(self.zone)


def draw_timeline(rows: Sequence[TimelineRow], now_ms: int, hours: int, zone: ZoneInfo, width: int) -> list[Text]:
    """The lines of the picture, each at most ``width`` wide."""
    name_width = min(_NAME_WIDTH_MAX, max((cell_len(row.name) for row in rows), default=4)) + 2
    axis = _axis(now_ms, hours, zone, width - name_width - _TOTAL_WIDTH)
    lines = [Text(" " * name_width) + line for line in _head(axis)]
    return lines + [_line(row, axis, name_width) for row in rows]


def count_fires(row: TimelineRow, after_ms: int, through_ms: int) -> int:
    """How many nominal times in (after, through] are going to fire, as far as its trigger knows."""
    return 0 if row.trigger is None else count_firing(row.trigger, after_ms + 1, through_ms)


def _axis(now_ms: int, hours: int, zone: ZoneInfo, columns: int) -> TimeAxis:
    """From the last whole cell of wall time on, with the finest cells that fit."""
    # A column is kept for each day's line, and a cell for the part of one that has passed.
    room = columns - -(-hours // 24) - 1
    minutes = next((size for size in _CELL_MINUTES if hours * 60 <= size * room), _CELL_MINUTES[-1])
    local = utc_datetime(now_ms).astimezone(zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    start = midnight + (local - midnight) // timedelta(minutes=minutes) * timedelta(minutes=minutes)
    # As wall times count, so that cells begin on the hour; on the day of a clock change they may not.
    start_ms, cell_ms = round(start.timestamp() * 1_000), minutes * _MINUTE_MS
    through_ms = now_ms + hours * _HOUR_MS
    cells = min(max(1, room + 1), (through_ms - start_ms) // cell_ms + 1)
    return TimeAxis(now_ms, through_ms, start_ms, cell_ms, cells, zone)


def _head(axis: TimeAxis) -> list[Text]:
    """The days, and the hours below them, each where it begins."""
    days, hours = Text(style="bold"), Text(style="dim")
    for cell in range(axis.cells):
        at = axis.at(cell)
        new_day = _begins_day(axis, cell)
        if new_day:
            _place(days, _column(axis, cell) - 1, "│")
            _place(hours, _column(axis, cell) - 1, "│")
        if new_day or cell == 0:
            _place(days, _column(axis, cell), day_text(at).rpartition(" ")[0])
        if _is_labelled(axis, at):
            _place(hours, _column(axis, cell), f"{at:%H}" if at.minute == 0 else f"{at:%H:%M}")
    end = _column(axis, axis.cells) + _TOTAL_WIDTH  # nothing stands above the totals
    return [_cut(days, end), _cut(hours, end)]


def _line(row: TimelineRow, axis: TimeAxis, name_width: int) -> Text:
    line = Text(style="dim" if row.note else "")
    line.append(row.name)
    line.truncate(name_width - 2, overflow="ellipsis")
    line.pad_right(name_width - line.cell_len)
    if row.note:
        return line.append(row.note, style="yellow")
    left, total = row.fires_left, 0
    for cell in range(axis.cells):
        begin_ms = axis.start_ms + cell * axis.cell_ms
        through_ms = min(begin_ms + axis.cell_ms - 1, axis.through_ms)
        count = count_fires(row, max(begin_ms - 1, axis.after_ms), through_ms)
        if left is not None:
            count = min(count, left - total)
        total += count
        if _begins_day(axis, cell):
            line.append("│", style="dim")
        mark = next((mark for least, mark in reversed(_DENSITIES) if count >= least), "")
        line.append(mark or ("╵" if _is_labelled(axis, axis.at(cell)) else " "), style="green" if mark else "dim")
    shown = f"{total:,}" if total < 1_000_000 else f"{total / 1_000_000:.1f}M"
    return line.append(f"{shown:>{_TOTAL_WIDTH}}", style="" if total else "dim")


def _column(axis: TimeAxis, cell: int) -> int:
    """A day begins with a line, which has a column of its own."""
    return cell + sum(_begins_day(axis, earlier) for earlier in range(1, min(cell + 1, axis.cells)))


def _begins_day(axis: TimeAxis, cell: int) -> bool:
    return cell > 0 and axis.at(cell).date() != axis.at(cell - 1).date()


def _is_labelled(axis: TimeAxis, at: datetime) -> bool:
    minutes = axis.cell_ms // _MINUTE_MS
    step = next((size for size in (15, 30, 60, 120, 180, 360, 720) if size // minutes >= _LABEL_WIDTH), 1_440)
    return (at.hour * 60 + at.minute) % step == 0


def _place(line: Text, column: int, text: str) -> None:
    """Writes ``text`` at ``column``, over what reaches there from the left."""
    if len(line) > column:
        line.right_crop(len(line) - column)
    line.append(" " * (column - len(line)) + text)


def _cut(line: Text, width: int) -> Text:
    if len(line) > width:
        line.right_crop(len(line) - width)
    return line


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


def timeline_rows(scheduler: Scheduler, labels: list[str] | None, now_ms: WallMs) -> list[TimelineRow]:
    """The one that fires next comes first; then those that are paused or over."""
    schedules = list(scheduler.schedules.list(labels))
    uses_calendars = any(schedule["trigger"].get("calendars") for schedule in schedules)
    calendars = {each["name"]: _calendar(each) for each in scheduler.calendars.list()} if uses_calendars else {}
    return order_rows(schedules, calendars, now_ms)


def order_rows(
    schedules: Iterable[Mapping[str, Any]], calendars: Mapping[str, Calendar], now_ms: WallMs
) -> list[TimelineRow]:
    ordered = sorted(schedules, key=lambda one: (one["next_at"] is None, _at(one["next_at"]), one["name"]))
    return [_row(schedule, calendars, now_ms) for schedule in ordered]


def _calendar(answer: Mapping[str, Any]) -> Calendar:
    said = {field: answer[field] for field in ("weekdays", "include", "exclude")}
    return validated(CalendarBody, said).resource(answer["name"])


def _at(instant: str | None) -> int:
    return 0 if instant is None else parse_instant(instant)


def _row(schedule: Mapping[str, Any], calendars: Mapping[str, Calendar], now_ms: WallMs) -> TimelineRow:
    name = schedule["name"]
    if schedule.get("paused"):
        return TimelineRow(name, None, note="paused")
    if schedule["next_at"] is None:
        return TimelineRow(name, None, note="over")
    try:
        trigger = on_calendars(read_trigger(schedule["trigger"], now_ms), calendars)
    except InvalidInput:
        # A replica of a newer version has kinds that are unknown here; or a calendar has just gone.
        return TimelineRow(name, None, note="a trigger that this version does not know")
    if trigger.max_fires is None:
        return TimelineRow(name, trigger)
    fired = (schedule.get("counts") or {}).get("fired", 0)
    return TimelineRow(name, trigger, fires_left=max(0, trigger.max_fires - fired))
