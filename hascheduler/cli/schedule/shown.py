"""Schedules as people see them: a table of many, a page of one."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.diffs import as_text
from hascheduler.cli.moments import away_text
from hascheduler.cli.normal_forms import normal_schedule
from hascheduler.cli.tables import new_table
from hascheduler.cli.trigger_words import words

Schedule = Mapping[str, Any]

VERDICT_STYLES = {
    "fired": "green",
    "skipped": "yellow",
    "missed": "red",
    "coalesced": "yellow",
    "paused": "dim",
    "excluded": "dim",
    "throttled": "red",
    "unstorable": "red",
}


def schedules_table(schedules: Sequence[Schedule], now_ms: int) -> RenderableType:
    if not schedules:
        return Text("There are no schedules.", style="dim")
    table = new_table("", "name", "trigger", "next", "state", "counts")
    for schedule in schedules:
        table.add_row(
            Text(schedule["name"], style="bold"),
            Text(words(schedule["trigger"])),
            away_text(schedule["next_at"], now_ms),
            _state(schedule),
            _counts(schedule),
        )
    return table


def show_schedule(schedule: Schedule, now_ms: int) -> RenderableType:
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("state", _state(schedule))
    facts.add_row("next", _instant(schedule["next_at"], now_ms))
    if schedule.get("next_due_at") not in (None, schedule["next_at"]):
        facts.add_row("with jitter", _instant(schedule["next_due_at"], now_ms))
    facts.add_row("last", _instant(schedule["last_nominal_at"], now_ms))
    facts.add_row("counts", _counts(schedule))
    if schedule.get("failures_in_a_row"):
        facts.add_row("failures", Text(f"{schedule['failures_in_a_row']} in a row", style="red"))
    facts.add_row("created", _instant(schedule["created_at"], now_ms))
    facts.add_row("revision", str(schedule["rev"]))
    title = Text(schedule["name"], style="bold")
    return Group(title, facts, "", as_text(normal_schedule(schedule)))


def _state(schedule: Schedule) -> Text:
    if schedule.get("paused"):
        because = schedule.get("paused_because")
        return Text(f"paused: {because}" if because else "paused", style="yellow")
    if schedule["next_at"] is None:
        return Text("over", style="dim")
    return Text("active", style="green")


def _counts(schedule: Schedule) -> Text:
    counts = schedule.get("counts") or {}
    parts = [Text(f"{count} {name}", style=VERDICT_STYLES.get(name, "")) for name, count in counts.items() if count]
    return Text(", ").join(parts) if parts else Text("–", style="dim")


def _instant(instant: str | None, now_ms: int) -> str:
    return "–" if instant is None else f"{instant.replace('.000Z', 'Z')} ({away_text(instant, now_ms)})"
