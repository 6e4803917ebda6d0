"""What is coming of stored schedules, from how a replica shows them."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any
from zoneinfo import ZoneInfo, available_timezones

import typer

from hascheduler.cli.timelines import Row
from hascheduler.cli.trigger_bodies import read_trigger
from hascheduler.errors import InvalidInput
from hascheduler.model.instants import WallMs, parse_instant

Zone = Annotated[
    str | None, typer.Option("--timezone", metavar="ZONE", help="Whose hours and days; default: UTC, or as TZ says.")
]


def zone_of(name: str | None) -> ZoneInfo:
    """By its name, else that of the environment where it names one, else UTC."""
    import os

    if name is None:
        given = os.environ.get("TZ", "")
        return ZoneInfo(given if given in available_timezones() else "UTC")
    if name not in available_timezones():
        raise InvalidInput(("--timezone",), f"{name[:64]!r} is unknown", "an IANA name such as Europe/Paris")
    return ZoneInfo(name)


def coming_rows(schedules: Iterable[Mapping[str, Any]], now_ms: WallMs) -> list[Row]:
    """The one that fires next comes first; then those that are paused or over."""
    ordered = sorted(schedules, key=lambda one: (one["next_at"] is None, _at(one["next_at"]), one["name"]))
    return [_row(schedule, now_ms) for schedule in ordered]


def _at(instant: str | None) -> int:
    return 0 if instant is None else parse_instant(instant)


def _row(schedule: Mapping[str, Any], now_ms: WallMs) -> Row:
    name = schedule["name"]
    if schedule.get("paused"):
        return Row(name, None, note="paused")
    if schedule["next_at"] is None:
        return Row(name, None, note="over")
    try:
        trigger = read_trigger(schedule["trigger"], now_ms)
    except InvalidInput:
        # A replica of a newer version has kinds that are unknown here.
        return Row(name, None, note="a trigger that this version does not know")
    if trigger.max_fires is None:
        return Row(name, trigger)
    fired = (schedule.get("counts") or {}).get("fired", 0)
    return Row(name, trigger, fires_left=max(0, trigger.max_fires - fired))
