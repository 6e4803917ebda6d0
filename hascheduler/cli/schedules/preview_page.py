"""A preview as a page for people: the next fires, and how clock changes move them.

Takes the answer of the replica's previews, or the same computed here.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hascheduler.cli.output.instants import (
    clock_text,
    day_text,
    finest_of,
    offset_text,
    reader_zone,
    relative_span,
    utc_datetime,
    with_instants_shown,
)
from hascheduler.cli.schedules.tables import warning_lines
from hascheduler.model.values.durations import format_duration
from hascheduler.model.values.instants import parse_instant

Fire = Mapping[str, Any]

_PAYLOAD_SHOWN_MAX = 200

_CHANGE = {"": "", "+": "green", "-": "red"}


def preview_page(title: str, answer: Mapping[str, Any], now_ms: int) -> RenderableType:
    parts: list[RenderableType] = [Text(title, style="bold")]
    parts += warning_lines(answer)
    parts.append(_fires(answer, now_ms))
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


def _fires(answer: Mapping[str, Any], now_ms: int) -> RenderableType:
    rows = list(_rows(answer))
    if not rows:
        return Text("\nIt will not fire any more.", style="yellow")
    zone = answer.get("timezone") or "UTC"
    finest = finest_of([parse_instant(fire["nominal_at"]) for _, fire in rows])
    compared = any(sign for sign, _ in rows)
    delayed = any(fire["due_at"] != fire["nominal_at"] for _, fire in rows)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    grid.add_column("", no_wrap=True, justify="right", style="dim")
    grid.add_column(zone, no_wrap=True)
    reader = reader_zone()
    if zone != reader.key:
        grid.add_column(reader.key, no_wrap=True, style="dim")
    if delayed:
        grid.add_column("jitter", no_wrap=True, justify="right")
    grid.add_column("when", no_wrap=True)
    lines: list[RenderableType] = []
    number = 0
    for sign, fire in rows:
        nominal_ms = parse_instant(fire["nominal_at"])
        fires = sign != "-" and not fire["excluded"]
        number += fires
        cells = [
            f"{sign}{number if fires else ''}" if compared else str(number if fires else "×"),
            _local(fire, finest),
        ]
        if zone != reader.key:
            theirs = utc_datetime(nominal_ms).astimezone(reader)
            cells.append(f"{theirs.date()} {clock_text(theirs, finest=finest)}")
        if delayed:
            cells.append(f"+{format_duration(parse_instant(fire['due_at']) - nominal_ms)}")
        style = _CHANGE[sign] or ("dim" if fire["excluded"] else "")
        grid.add_row(*cells, relative_span(nominal_ms, now_ms), style=style)
        if fire.get("note"):
            lines.append(
                Text.assemble((f"{_local(fire, finest)}  ", "dim"), (with_instants_shown(str(fire["note"])), "yellow"))
            )
        elif fire["excluded"]:
            lines.append(Text.assemble((f"{_local(fire, finest)}  ", "dim"), ("is excluded", "yellow")))
        if fire.get("payload") is not None:
            text = json.dumps(fire["payload"], ensure_ascii=False)
            shown = text if len(text) <= _PAYLOAD_SHOWN_MAX else f"{text[:_PAYLOAD_SHOWN_MAX]}…"
            lines.append(Text.assemble((f"{_local(fire, finest)}  ", "dim"), shown))
    return Group("", grid, *(["", *lines] if lines else []))


def _rows(answer: Mapping[str, Any]) -> Iterator[tuple[str, Fire]]:
    """The fires in their order; in a comparison, what came is ``+`` and what went is ``-``."""
    added = {fire["nominal_at"] for fire in answer.get("added") or ()}
    rows = [("+" if fire["nominal_at"] in added else "", fire) for fire in answer["fires"]]
    rows += [("-", fire) for fire in answer.get("removed") or ()]
    yield from sorted(rows, key=lambda row: parse_instant(row[1]["nominal_at"]))


def _local(fire: Fire, finest: str) -> str:
    """``Sun 28 Mar 2027 03:00 +02:00``."""
    local = datetime.fromisoformat(fire["local"])
    day = day_text(local)
    return f"{day:<15} {clock_text(local, finest=finest)} {offset_text(local)}"


def _clock_change(change: Mapping[str, Any], *, one_zone: bool) -> RenderableType:
    at_ms = parse_instant(change["at"])
    before, after = (_seconds(change[name]) * 1_000 for name in ("offset_before", "offset_after"))
    wall_before, wall_after = utc_datetime(at_ms + before), utc_datetime(at_ms + after)
    way = "forward" if change["kind"] == "gap" else "back"
    head = Text.assemble(
        (day_text(utc_datetime(at_ms + before - 1)), "bold"),
        f"  clocks go {way} ",
        (f"{clock_text(wall_before)} → {clock_text(wall_after)}", "cyan"),
        (f"  ({change['offset_before']} → {change['offset_after']})", "dim"),
    )
    # An explanation begins with what the clock does, which stands in the heading already, and whose clock it is.
    explanation = change["explanation"].partition("; ")[2] if one_zone else ""
    text = Text(explanation or change["explanation"])
    return Padding(Group(head, Padding(text, (0, 0, 0, 2))), (1, 0, 0, 0))


def _seconds(offset: str) -> int:
    """An offset such as ``+02:00`` in seconds."""
    sign = -1 if offset.startswith("-") else 1
    hours, minutes = offset[1:].split(":")[:2]
    return sign * (int(hours) * 3_600 + int(minutes) * 60)
