"""The commands ``hascheduler schedule preview``, ``timeline`` and ``calendar``.

``preview`` shows the next fires of a schedule, from a replica or computed here, and how clock changes move them. The
others show when all schedules fire in the next hours or days.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hascheduler.cli.completion import complete_schedule
from hascheduler.cli.environment import access
from hascheduler.cli.input.values import check_name, coming_instant
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Given, InContext, LabelFilter, Url, argument, option, with_options
from hascheduler.cli.output import instants
from hascheduler.cli.output.answers import Answer, Shown, asks, prints
from hascheduler.cli.replica import Scheduler, replica
from hascheduler.cli.schedules.options import TRIGGER, new_trigger
from hascheduler.cli.schedules.show import trigger_text, warning_lines
from hascheduler.clock import SystemClock
from hascheduler.dispatch.schedules import previews
from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs, format_duration, format_instant, parse_instant
from hascheduler.model.values.zone_data import read_zone, zone_names
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.noun import read_answer
from hascheduler.schema.trigger import Trigger
from hascheduler.triggers import Upcoming, count_firing, count_nominal, excluded_until, on_calendars, upcoming
from hascheduler.triggers.requests import checked_trigger, read_trigger


@example(
    "hascheduler schedule preview nightly",
    'hascheduler schedule preview --cron "30 2 * * *" --timezone Europe/Paris',
    "hascheduler schedule preview --every 90s --jitter 5s --count 20",
)
@prints()
@with_options("given", TRIGGER)
def preview_schedule(
    name: Annotated[
        str | None, argument("[NAME]", "Name of a stored schedule, or use options", complete_schedule)
    ] = None,
    count: Annotated[int, option("--count N", "How many fires", min=1, max=previews.PREVIEW_COUNT_MAX)] = 10,
    start: Annotated[str | None, option("--from INSTANT|SPAN", "Start; 7d: in 7 days; default: now")] = None,
    url: Url = None,
    in_context: InContext = None,
    *,
    given: Given,
) -> Shown:
    """Show the next fires and clock changes.

    NAME is a stored schedule. With --cron, --every or --at, preview a schedule that does not exist yet: that needs no
    replica (NAME then only decides the jitter).
    """
    start = None if start is None else coming_instant("--from", start)
    after_ms = None if start is None else WallMs(parse_instant(start) - 1)
    answer: Answer
    if given:
        trigger = new_trigger(given)
        answer, title = _computed(name or "preview", trigger, after_ms, count), trigger_text(trigger)
    elif name is not None:
        with replica(access(url, in_context)) as scheduler:
            answer, title = scheduler.schedules.preview(check_name(name), count=count, start=start), name
    else:
        raise InvalidInput(("NAME",), "neither a schedule nor times are given", "NAME, or --cron, --every or --at")
    return Shown(answer, preview_page(f"Next fires of {title}", answer))


def _computed(schedule: str, body: Answer, after_ms: WallMs | None, count: int) -> Answer:
    """Return the first ``count`` fires after ``after_ms`` or now, and the clock changes of the next 400 days.

    ``schedule`` is the name that decides the jitter.
    """
    now_ms = SystemClock().wall_ms()
    trigger, after_ms = checked_trigger(body, now_ms), now_ms if after_ms is None else after_ms
    times = list(_times(schedule, trigger, after_ms, count))
    made = previews.finished(previews.make_preview(schedule, trigger, after_ms, times))
    # A trigger alone has no payload.
    return {**made, "fires": [{**fire, "payload": None} for fire in made["fires"]]}


def _times(schedule: str, trigger: Trigger, after_ms: WallMs, count: int) -> Iterator[Upcoming]:
    """Yield ``count`` fires, and the first time of each exclusion window between them, with the count of times in it.

    A window may hold millions of times, so they are counted, not listed.
    """
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


_PAYLOAD_SHOWN_MAX = 200

_CHANGE = {"": "", "+": "green", "-": "red"}


def preview_page(title: str, answer: Answer) -> RenderableType:
    parts: list[RenderableType] = [Text(title, style="bold")]
    parts += warning_lines(answer)
    parts.append(_fires(answer))
    changes = answer.get("clock_changes") or []
    zone = answer.get("timezone") or "UTC"
    if changes:
        # Several zones are shown in UTC, and each change names its zone.
        one = zone != "UTC"
        parts.append(Text.assemble("\n", (f"Clock changes{f' in {zone}' if one else ''} within 400 days", "bold")))
        parts += [_clock_change(change, one_zone=one) for change in changes]
    elif zone != "UTC":
        parts.append(Text(f"\nClocks in {zone} do not change within 400 days.", style="dim"))
    return Group(*parts)


def _fires(answer: Answer) -> RenderableType:
    rows = list(_rows(answer))
    if not rows:
        return Text("\nIt will not fire again.", style="yellow")
    zone, reader = answer.get("timezone") or "UTC", instants.reader_zone()
    finest = instants.finest_of([parse_instant(fire["nominal_at"]) for _, fire in rows])
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
        theirs = instants.utc_datetime(nominal_ms).astimezone(reader)
        read = f"{theirs.date()} {instants.clock_text(theirs, finest=finest)}"
        jitter = f"+{format_duration(due_ms - nominal_ms)}"
        style = _CHANGE[sign] or ("dim" if fire["excluded"] else "")
        grid.add_row(first, local, read, jitter, instants.relative_text(fire["nominal_at"]), style=style)
        note = fire.get("note") or ("is excluded" if fire["excluded"] else "")
        if note:
            lines.append(Text.assemble((f"{local}  ", "dim"), (instants.with_instants_shown(str(note)), "yellow")))
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
    """Yield the fires in order; in a comparison, added ones with ``+`` and removed ones with ``-``."""
    added = {fire["nominal_at"] for fire in answer.get("added") or ()}
    rows = [("+" if fire["nominal_at"] in added else "", fire) for fire in answer["fires"]]
    rows += [("-", fire) for fire in answer.get("removed") or ()]
    yield from sorted(rows, key=lambda row: parse_instant(row[1]["nominal_at"]))


def _local(fire: Answer, finest: str) -> str:
    """Return ``Sun 28 Mar 2027 03:00 +02:00``."""
    local = datetime.fromisoformat(fire["local"])
    day = instants.day_text(local)
    return f"{day:<15} {instants.clock_text(local, finest=finest)} {instants.offset_text(local)}"


def _clock_change(change: Answer, *, one_zone: bool) -> RenderableType:
    at_ms = parse_instant(change["at"])
    # Parse an offset such as +02:00 as part of an instant.
    before, after = (
        datetime.fromisoformat(f"2000-01-01T00:00:00{change[name]}").utcoffset() or timedelta()
        for name in ("offset_before", "offset_after")
    )
    wall_before, wall_after = instants.utc_datetime(at_ms) + before, instants.utc_datetime(at_ms) + after
    way = "forward" if change["kind"] == "gap" else "back"
    head = Text.assemble(
        (instants.day_text(wall_before - timedelta(milliseconds=1)), "bold"),
        f"  clocks go {way} ",
        (f"{instants.clock_text(wall_before)} → {instants.clock_text(wall_after)}", "cyan"),
        (f"  ({change['offset_before']} → {change['offset_after']})", "dim"),
    )
    # An explanation begins with the zone and the clock change, which the heading already shows.
    explanation = change["explanation"].partition("; ")[2] if one_zone else ""
    text = Text(explanation or change["explanation"])
    return Padding(Group(head, Padding(text, (0, 0, 0, 2))), (1, 0, 0, 0))


_TIMES_MAX = 4
"""A schedule that fires more often on a day is shown by its count."""
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class ComingFires:
    """The coming fires of a schedule.

    ``fires_left`` bounds how many there are; None: no bound. Without a ``trigger``, ``note`` says why.
    """

    name: str
    trigger: Trigger | None
    fires_left: int | None = None
    note: str = ""

    def count(self, after_ms: int, through_ms: int) -> int:
        """Return how many nominal times in (after, through] will fire, if none fires before them."""
        count = 0 if self.trigger is None else count_firing(self.trigger, after_ms + 1, through_ms)
        return count if self.fires_left is None else min(count, self.fires_left)


ZoneOption = Annotated[
    str | None, option("--timezone ZONE", "Time zone of the hours and days; default: that of TZ or this machine")
]


def zone_or_default(name: str | None) -> ZoneInfo:
    """Return the zone by its name; without a name, the one in which all instants are shown."""
    if name is None:
        return instants.reader_zone()
    if name not in zone_names():
        raise InvalidInput(("--timezone",), f"{name[:64]!r} is unknown", "an IANA name such as Europe/Paris")
    return read_zone(name)


@example("hascheduler schedule calendar --days 14")
@asks()
def calendar(
    scheduler: Scheduler,
    days: Annotated[int, option("--days N", "How many days, including today", min=1, max=62)] = 7,
    *,
    labels: LabelFilter = None,
    timezone: ZoneOption = None,
) -> Shown:
    """List the next days and what fires on each."""
    zone, now_ms = zone_or_default(timezone), SystemClock().wall_ms()
    found = list(calendar_days(coming_fires(scheduler, labels, now_ms), now_ms, days, zone))
    answer = {"timezone": zone.key, "days": [{"day": str(day.date()), "fires": fires} for day, fires in found]}
    return Shown(answer, [_table(found), _zone_line(zone)])


def calendar_days(
    rows: Sequence[ComingFires], now_ms: int, days: int, zone: ZoneInfo
) -> Iterator[tuple[datetime, list[dict[str, Any]]]]:
    """Yield each day with its schedules: frequent ones first, by count, then the others in order, by their times."""
    today = instants.utc_datetime(now_ms).astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
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
            at = [instants.clock_text(one) for one in _first(row, after_ms, count, zone)] if count <= _TIMES_MAX else []
            fires.append({"name": row.name, "count": count, "at": at})
        yield day, sorted(fires, key=lambda one: (one["at"][:1], one["name"]))


def _first(row: ComingFires, after_ms: int, count: int, zone: ZoneInfo) -> Iterator[datetime]:
    assert row.trigger is not None, "it fires"
    for one in upcoming(row.name, row.trigger, after_ms):
        if not one.excluded:
            yield instants.utc_datetime(one.nominal_ms).astimezone(zone)
            count -= 1
        if not count:
            return


def _table(found: Sequence[tuple[datetime, list[dict[str, Any]]]]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    for day, fires in found:
        lines = Text("\n").join(_line(fire) for fire in fires) if fires else Text("–", style="dim")
        weekend = day.weekday() >= 5
        table.add_row(Text(instants.day_text(day), style="bold cyan" if weekend else "bold"), lines)
    return table


def _line(fire: dict[str, Any]) -> Text:
    when = ", ".join(fire["at"]) or f"{fire['count']:,} times"
    return Text.assemble((f"{when}  ", "green"), fire["name"])


@example("hascheduler schedule timeline --hours 48 --label team=a")
@asks(watch_s=1)
def timeline(
    scheduler: Scheduler,
    hours: Annotated[int, option("--hours N", "How many hours to show", min=1, max=168)] = 24,
    *,
    labels: LabelFilter = None,
    timezone: ZoneOption = None,
) -> Shown:
    """List when schedules fire in the next hours, and how often.

    Times are nominal, without jitter.
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
        shown = "–" if at is None else f"{instants.day_text(at)} {instants.clock_text(at)}"
        table.add_row(Text(row.name), row.note or shown, "" if row.note else f"{count:,}")
    picture = [table, _zone_line(zone)] if rows else [Text("There are no schedules.", style="dim")]
    return Shown({"hours": hours, "fires": fires}, picture)


def _zone_line(zone: ZoneInfo) -> Text:
    return Text(f"times of {zone.key}", style="dim")


def coming_fires(scheduler: Scheduler, labels: list[str] | None, now_ms: WallMs) -> list[ComingFires]:
    """Return the schedules in the order of their next fire, then those that are paused or over."""
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
        # A replica of a newer version has kinds that are unknown here, or a calendar was just deleted.
        return ComingFires(name, None, note="a trigger unknown to this version")
    if trigger.max_fires is None:
        return ComingFires(name, trigger)
    fired = (schedule.get("counts") or {}).get("fired", 0)
    return ComingFires(name, trigger, fires_left=max(0, trigger.max_fires - fired))
