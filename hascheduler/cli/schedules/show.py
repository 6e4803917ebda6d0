"""The commands ``hascheduler schedule list``, ``get`` and ``verdicts``, and ``hascheduler verdicts`` of all schedules.

Many schedules are a table, one is a page, and a trigger is one line.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.completion import ScheduleName, one_of
from hascheduler.cli.fields import filter_of, options_of
from hascheduler.cli.input.documents import normal_schedule
from hascheduler.cli.input.values import check_name
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Given, option, text_option, with_options
from hascheduler.cli.output.answers import Answer, Shown, asks
from hascheduler.cli.output.instants import instant_text, relative_text
from hascheduler.cli.output.tables import Cell, plain, table_of
from hascheduler.cli.output.yaml_text import as_text, as_yaml
from hascheduler.cli.replica import Scheduler
from hascheduler.model.verdict import Verdict
from hascheduler.schema.filters import ScheduleFilter, VerdictFilter

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
_ORDERS = ("name", "trouble", "next")
_SORT = text_option(
    f"--sort {'|'.join(_ORDERS)}",
    "By name, by the next time, or trouble first: failing, late, ahead, paused; default name",
    one_of(_ORDERS),
)


def schedules_table(answer: Mapping[str, Any]) -> RenderableType:
    columns: dict[str, Cell] = {
        "name": lambda schedule: Text(schedule["name"], style="bold"),
        "trigger": lambda schedule: trigger_text(schedule["trigger"]),
        "next": lambda schedule: relative_text(schedule["next_at"]),
        "state": lambda schedule: Text(", ").join(filter(None, (_state(schedule), _failures(schedule)))),
        "counts": _fire_counts,
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
    facts.add_row("counts", _fire_counts(schedule))
    if _failures(schedule):
        facts.add_row("failures", _failures(schedule))
    if schedule.get("jobs"):
        facts.add_row("jobs", _graph(schedule["jobs"]))
    facts.add_row("created", _instant(schedule["created_at"]))
    facts.add_row("revision", str(schedule["rev"]))
    title = Text(schedule["name"], style="bold")
    return Group(title, *warning_lines(schedule), facts, "", as_text(normal_schedule(schedule)))


def manifest(schedule: Schedule) -> str:
    """Return the schedule as a file holds it, or a preview of it."""
    if "trigger" not in schedule:
        return as_yaml(schedule)
    return as_yaml({"kind": "Schedule", **normal_schedule(schedule)})


def warning_lines(answer: Mapping[str, Any]) -> list[Text]:
    """Return the warnings of a schedule or a preview, one line each. Replicas of 0.2.0 send none."""
    return [Text(f"warning: {warning}", style="yellow") for warning in answer.get("warnings") or ()]


def _state(schedule: Schedule) -> Text:
    if schedule.get("paused"):
        because = schedule.get("paused_because")
        return Text(f"paused: {because}" if because else "paused", style="yellow")
    if schedule.get("ahead_until") is not None:
        return Text("ahead of now", style="red")
    if schedule["next_at"] is None:
        return Text("over", style="dim")
    if schedule.get("late"):
        return Text("late", style="red")
    return Text("active", style="green")


def _failures(schedule: Schedule) -> Text:
    in_a_row = schedule.get("failures_in_a_row")
    return Text(f"{in_a_row} failed in a row" if in_a_row else "", style="red")


def _fire_counts(schedule: Schedule) -> Text:
    counts = schedule.get("counts") or {}
    parts = [Text(f"{count} {name}", style=VERDICT_STYLES.get(name, "")) for name, count in counts.items() if count]
    return Text(", ").join(parts) if parts else Text("–", style="dim")


def _graph(jobs: Sequence[Mapping[str, Any]]) -> Text:
    """Return one line for each job of a fire: what it is, and after which jobs it runs."""
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


@example(
    "hascheduler schedule list --label team=a --watch",
    "hascheduler schedule list --text nightly --state paused",
    "hascheduler schedule list --sort trouble",
)
@asks(schedules_table, tables=1, watch_s=1, manifest=manifest)
@with_options("given", {**options_of(ScheduleFilter), "sort": _SORT})
def list_schedules(scheduler: Scheduler, *, given: Given) -> Answer:
    """List schedules and their state.

    The state includes how many of a schedule's jobs failed since the last that succeeded.
    """
    return {"items": list(scheduler.schedules.list(**filter_of(given)))}


@example("hascheduler schedule get nightly", "hascheduler schedule get nightly -o yaml > nightly.yaml")
@asks(schedule_page, manifest=manifest)
def get(scheduler: Scheduler, name: ScheduleName) -> Answer:
    """Show one schedule."""
    return scheduler.schedules.get(check_name(name))


@example("hascheduler schedule verdicts nightly --verdict missed --verdict skipped")
@asks(tables=1, watch_s=1)
def verdicts(
    scheduler: Scheduler,
    name: ScheduleName,
    *,
    only: Annotated[
        list[Verdict] | None, option(f"--verdict {'|'.join(Verdict)}", "Only these verdicts; repeatable")
    ] = None,
    limit: Annotated[int, option("--limit N", "How many, newest first", min=1, max=200)] = 20,
) -> Shown:
    """Show what happened at each of a schedule's times.

    Each fired, with its job and the job's state, or was skipped, missed, coalesced, paused, excluded or throttled.
    """
    answer = scheduler.schedules.counts(check_name(name), [verdict.value for verdict in only or ()], limit=limit)
    return Shown(answer, _verdicts_page(name, answer))


def _verdicts_page(name: str, answer: Mapping[str, Any]) -> RenderableType:
    columns: dict[str, Cell] = {"time": _times, "verdict": _verdict, "outcome": _outcome}
    none = "No such times have been decided yet."
    table = table_of("", answer["items"], columns, wraps=("outcome",), none=none)
    parts: list[RenderableType] = [Text(name, style="bold"), _counts(answer["counts"])]
    undecided = answer.get("undecided") or {}
    if undecided.get("count"):
        since = f" since {instant_text(undecided['since'])}" if undecided.get("since") else ""
        because = f" ({undecided['because']})" if undecided.get("because") else ""
        parts.append(Text(f"{undecided['count']} not decided yet{since}{because}", style="cyan"))
    parts.append(table)
    if answer.get("next"):
        parts.append(Text("There are more; use --limit to show them.", style="dim"))
    return Group(*parts)


def _counts(counts: Mapping[str, int]) -> Text:
    return Text("   ").join(Text(f"{name} {counts[name]}", style=VERDICT_STYLES.get(name, "")) for name in counts)


def _verdict(item: Mapping[str, Any]) -> Text:
    count = f" × {item['count']}" if item["count"] > 1 else ""
    return Text(f"{item['verdict']}{count}", style=VERDICT_STYLES.get(item["verdict"], ""))


def _times(item: Mapping[str, Any]) -> str:
    through = item.get("through_at")
    first = instant_text(item["nominal_at"])
    return first if through in (None, item["nominal_at"]) else f"{first}\n– {instant_text(through)}"


def _outcome(item: Mapping[str, Any]) -> Text:
    if item.get("job"):
        state = item.get("job_state") or "no longer kept"
        style = {"succeeded": "green", "failed": "red", "running": "cyan"}.get(state, "")
        return Text.assemble((state, style), " ", (item["job"], "dim"))
    if item["verdict"] == "throttled":
        return Text(f"the tenant's {item.get('because_of') or 'limit'} was reached")
    if item.get("verdict") == "missed" and item.get("because_of"):
        return Text("its job would have expired")
    if item.get("because_of"):
        return Text.assemble("blocked by ", (item["because_of"], "dim"))
    if item["verdict"] == "coalesced":
        return Text(f"into {instant_text(item['into'])}" if item.get("into") else "into the next fire")
    if item["verdict"] == "unstorable":
        return Text("its job cannot be stored: check the schedule's payload")
    return Text()


def _all_verdicts_table(answer: Answer) -> RenderableType:
    columns: dict[str, Cell] = {**plain("schedule"), "time": _times, "verdict": _verdict, "why": _outcome}
    return table_of("", answer["items"], columns, wraps=("why",), none="No times match.")


@example("hascheduler verdicts --verdict missed --since 1h --label team=a")
@asks(_all_verdicts_table, tables=1, watch_s=1)
@with_options("given", options_of(VerdictFilter))
def all_verdicts(
    scheduler: Scheduler,
    limit: Annotated[int, option("--limit N", "How many, newest decision first", min=1, max=10_000)] = 50,
    *,
    given: Given,
) -> Answer:
    """Show the times of all schedules that did not fire, and why.

    The newest decision first. For times that fired see hascheduler job list.
    """
    filter = filter_of(given)
    only = filter.pop("verdict", ())
    return {"items": list(islice(scheduler.verdicts(only, **filter), limit))}
