"""``hascheduler schedule list``, ``get`` and ``verdicts``, and ``hascheduler verdicts`` of all schedules."""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from hascheduler.cli.completion import ScheduleName
from hascheduler.cli.fields import filter_of, options_of
from hascheduler.cli.input.values import check_name
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Given, with_options
from hascheduler.cli.output.answers import Answer, Shown, asks
from hascheduler.cli.output.instants import instant_text
from hascheduler.cli.output.tables import Cell, plain, table_of
from hascheduler.cli.replica import Scheduler
from hascheduler.cli.schedules.tables import VERDICT_STYLES, manifest, schedule_page, schedules_table
from hascheduler.model.verdict import Verdict
from hascheduler.schema.filters import ScheduleFilter, VerdictFilter


@example(
    "hascheduler schedule list --label team=a --watch",
    "hascheduler schedule list --text nightly --state paused",
)
@asks(schedules_table, tables=1, watch_s=1, manifest=manifest)
@with_options("given", options_of(ScheduleFilter))
def list_schedules(scheduler: Scheduler, *, given: Given) -> Answer:
    """List schedules, and how they stand."""
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
    only: Annotated[list[Verdict] | None, typer.Option("--verdict", help="Only these; again for more.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="How many, the newest first")] = 20,
) -> Shown:
    """Show what became of a schedule's times.

    Fired, with the job and how it stands, or skipped, missed, coalesced, paused, excluded or throttled, and why.
    """
    answer = scheduler.schedules.counts(check_name(name), [verdict.value for verdict in only or ()], limit=limit)
    return Shown(answer, _verdicts_page(name, answer))


def _verdicts_page(name: str, answer: Mapping[str, Any]) -> RenderableType:
    columns: dict[str, Cell] = {"time": _times, "verdict": _verdict, "what came of it": _outcome}
    none = "No such time was decided yet."
    table = table_of("", answer["items"], columns, wraps=("what came of it",), none=none)
    parts: list[RenderableType] = [Text(name, style="bold"), _counts(answer["counts"])]
    undecided = answer.get("undecided") or {}
    if undecided.get("count"):
        since = f" since {instant_text(undecided['since'])}" if undecided.get("since") else ""
        because = f" ({undecided['because']})" if undecided.get("because") else ""
        parts.append(Text(f"{undecided['count']} not decided yet{since}{because}", style="cyan"))
    parts.append(table)
    if answer.get("next"):
        parts.append(Text("There are more; --limit shows them.", style="dim"))
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
        return Text(f"the tenant's {item.get('because_of') or 'limits'} left no room")
    if item.get("verdict") == "missed" and item.get("because_of"):
        return Text("its job would have expired")
    if item.get("because_of"):
        return Text.assemble("in the way: ", (item["because_of"], "dim"))
    if item["verdict"] == "coalesced":
        return Text(f"into {instant_text(item['into'])}" if item.get("into") else "into the next fire")
    if item["verdict"] == "unstorable":
        return Text("its job can't be stored: look at the schedule's payload")
    return Text()


def _all_verdicts_table(answer: Answer) -> RenderableType:
    columns: dict[str, Cell] = {**plain("schedule"), "time": _times, "verdict": _verdict, "why": _outcome}
    return table_of("", answer["items"], columns, wraps=("why",), none="There are no such times.")


@example("hascheduler verdicts --verdict missed --since 1h --label team=a")
@asks(_all_verdicts_table, tables=1, watch_s=1)
@with_options("given", options_of(VerdictFilter))
def all_verdicts(
    scheduler: Scheduler,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many, the newest decision first")] = 50,
    *,
    given: Given,
) -> Answer:
    """Show which times of all schedules did not fire, and why.

    The newest decision first. Times that fired have jobs: hascheduler job list.
    """
    filter = filter_of(given)
    only = filter.pop("verdict", ())
    return {"items": list(islice(scheduler.verdicts(only, **filter), limit))}
