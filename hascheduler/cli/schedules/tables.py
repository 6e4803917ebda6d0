"""Schedules as people see them: a table of many, a page of one, a trigger in one line."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.input.normal_forms import normal_schedule
from hascheduler.cli.output.instants import instant_text, relative_text
from hascheduler.cli.output.tables import Cell, table_of
from hascheduler.cli.output.yaml_text import as_text, as_yaml

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
_TIMES_SHOWN = 3


def schedules_table(answer: Mapping[str, Any]) -> RenderableType:
    columns: dict[str, Cell] = {
        "name": lambda schedule: Text(schedule["name"], style="bold"),
        "trigger": lambda schedule: trigger_text(schedule["trigger"]),
        "next": lambda schedule: relative_text(schedule["next_at"]),
        "state": _state,
        "counts": _counts,
    }
    spare, wraps = ("counts", "trigger", "next"), ("trigger", "state", "counts")
    return table_of("", answer["items"], columns, spare, wraps, none="There are no schedules.")


def schedule_page(schedule: Schedule) -> RenderableType:
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("state", _state(schedule))
    facts.add_row("next", _instant(schedule["next_at"]))
    if schedule.get("next_due_at") not in (None, schedule["next_at"]):
        facts.add_row("with jitter", _instant(schedule["next_due_at"]))
    facts.add_row("last", _instant(schedule["last_nominal_at"]))
    facts.add_row("counts", _counts(schedule))
    if schedule.get("failures_in_a_row"):
        facts.add_row("failures", Text(f"{schedule['failures_in_a_row']} in a row", style="red"))
    if schedule.get("jobs"):
        facts.add_row("jobs", _graph(schedule["jobs"]))
    facts.add_row("created", _instant(schedule["created_at"]))
    facts.add_row("revision", str(schedule["rev"]))
    title = Text(schedule["name"], style="bold")
    return Group(title, *warning_lines(schedule), facts, "", as_text(normal_schedule(schedule)))


def manifest(schedule: Schedule) -> str:
    """Return the schedule as a file has it; or a preview of one."""
    if "trigger" not in schedule:
        return as_yaml(schedule)
    return as_yaml({"kind": "Schedule", **normal_schedule(schedule)})


def warning_lines(answer: Mapping[str, Any]) -> list[Text]:
    """The warnings of a schedule or a preview, a line each. Replicas of 0.2.0 have none."""
    return [Text(f"warning: {warning}", style="yellow") for warning in answer.get("warnings") or ()]


def _state(schedule: Schedule) -> Text:
    if schedule.get("paused"):
        because = schedule.get("paused_because")
        return Text(f"paused: {because}" if because else "paused", style="yellow")
    if schedule.get("ahead_until") is not None:
        return Text("ahead of now", style="red")
    if schedule["next_at"] is None:
        return Text("over", style="dim")
    return Text("active", style="green")


def _counts(schedule: Schedule) -> Text:
    counts = schedule.get("counts") or {}
    parts = [Text(f"{count} {name}", style=VERDICT_STYLES.get(name, "")) for name, count in counts.items() if count]
    return Text(", ").join(parts) if parts else Text("–", style="dim")


def _graph(jobs: Sequence[Mapping[str, Any]]) -> Text:
    """A line for each job that a fire makes: what it is, and after which it runs."""
    width = max(len(job["ref"]) for job in jobs)
    lines = []
    for job in jobs:
        after = f" after {', '.join(job['depends_on'])}" if job.get("depends_on") else ""
        lines.append(Text.assemble((f"{job['ref']:<{width}}", "bold"), f"  {job['definition']}", (after, "dim")))
    return Text("\n").join(lines)


def _instant(instant: str | None) -> str:
    return "–" if instant is None else f"{instant_text(instant)} ({relative_text(instant)})"


def trigger_text(trigger: Mapping[str, Any]) -> str:
    parts = [_pattern(trigger)]
    for name, word in (("jitter", "jitter"), ("start_at", "from"), ("end_at", "until")):
        if trigger.get(name) not in (None, "0s"):
            parts.append(f"{word} {instant_text(str(trigger[name]))}")
    if trigger.get("max_fires") is not None:
        parts.append(f"at most {trigger['max_fires']} times")
    windows = trigger.get("exclude") or ()
    if windows:
        parts.append(f"leaving out {len(windows)} window{'s' if len(windows) > 1 else ''}")
    return ", ".join(parts)


def _pattern(trigger: Mapping[str, Any]) -> str:
    match trigger.get("type"):
        case "cron":
            zone = trigger.get("timezone") or "UTC"
            return f"cron {trigger['expression']} {zone}"
        case "interval":
            return f"every {trigger['every']}"
        case "once":
            return f"once {instant_text(trigger['at'])}"
        case "times":
            at = trigger["at"]
            more = f" and {len(at) - _TIMES_SHOWN} more" if len(at) > _TIMES_SHOWN else ""
            return f"at {', '.join(instant_text(text) for text in at[:_TIMES_SHOWN])}{more}"
        case "any":
            return " or ".join(_pattern(part) for part in trigger["of"])
        case other:
            return str(other)
