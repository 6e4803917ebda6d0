"""``hascheduler schedule list``, ``get`` and ``verdicts``, and ``hascheduler verdicts`` of all schedules."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from hascheduler.cli.completion import ScheduleName
from hascheduler.cli.input.normal_forms import normal_schedule
from hascheduler.cli.input.values import check_name
from hascheduler.cli.jobs.filters import filter_of, filter_options
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Given, Url, Watch, with_options
from hascheduler.cli.output.console import console, show
from hascheduler.cli.output.instants import instant_text, with_utc
from hascheduler.cli.output.tables import Cell, OutputForm, print_one, show_list, table_of, with_columns, with_output
from hascheduler.cli.output.yaml_text import as_yaml
from hascheduler.cli.replica import replica
from hascheduler.cli.schedules.tables import VERDICT_STYLES, schedule_page, schedules_table
from hascheduler.clock import SystemClock
from hascheduler.model.verdict import Verdict
from hascheduler.schema.filters import ScheduleFilter, VerdictFilter


@example(
    "hascheduler schedule list --label team=a --watch",
    "hascheduler schedule list --text nightly --state paused",
)
@with_utc
@with_options("given", filter_options(ScheduleFilter))
@with_output
@with_columns
def list_schedules(*, url: Url = DEFAULT_URL, watch: Watch = False, given: Given, output: OutputForm) -> None:
    """List schedules, and how they stand."""
    filter = filter_of(given)
    with replica(url) as scheduler:
        show_list(
            lambda: {"items": list(scheduler.schedules.list(**filter))},
            lambda schedules: schedules_table(schedules, SystemClock().wall_ms()),
            _manifest,
            output,
            watch=watch,
        )


@example("hascheduler schedule get nightly", "hascheduler schedule get nightly -o yaml > nightly.yaml")
@with_utc
@with_output
def get(name: ScheduleName, url: Url = DEFAULT_URL, *, output: OutputForm) -> None:
    """Show one schedule."""
    with replica(url) as scheduler:
        answer = scheduler.schedules.get(check_name(name))
    if output in (OutputForm.TEXT, OutputForm.WIDE):
        console().print(schedule_page(answer, SystemClock().wall_ms()))
    else:
        print_one(answer, _manifest, output)


def _manifest(answer: Mapping[str, Any]) -> str:
    return as_yaml({"kind": "Schedule", **normal_schedule(answer)})


@example("hascheduler schedule verdicts nightly --verdict missed --verdict skipped")
@with_utc
@with_columns
def verdicts(
    name: ScheduleName,
    *,
    only: Annotated[list[Verdict] | None, typer.Option("--verdict", help="Only these; again for more.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="How many, the newest first")] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """Show what became of a schedule's times.

    Fired, with the job and how it stands, or skipped, missed, coalesced, paused, excluded or throttled, and why.
    """
    check_name(name)
    wanted: list[Any] = [verdict.value for verdict in only or ()]
    with replica(url) as scheduler:
        show(
            lambda: scheduler.schedules.counts(name, wanted, limit=limit),
            lambda answer: _verdicts_page(name, answer),
            as_json=as_json,
            watch=watch,
        )


def _verdicts_page(name: str, answer: Mapping[str, Any]) -> RenderableType:
    columns: dict[str, Cell] = {"time": _times, "verdict": _verdict, "what came of it": _outcome}
    table = table_of("", answer["items"], columns, wraps=("what came of it",))
    parts: list[RenderableType] = [Text(name, style="bold"), _counts(answer["counts"])]
    undecided = answer.get("undecided") or {}
    if undecided.get("count"):
        since = f" since {instant_text(undecided['since'])}" if undecided.get("since") else ""
        because = f" ({undecided['because']})" if undecided.get("because") else ""
        parts.append(Text(f"{undecided['count']} not decided yet{since}{because}", style="cyan"))
    parts.append(table if answer["items"] else Text("No such time was decided yet.", style="dim"))
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


@example("hascheduler verdicts --verdict missed --since 1h --label team=a")
@with_utc
@with_options("given", filter_options(VerdictFilter))
@with_columns
def all_verdicts(
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many, the newest decision first")] = 50,
    *,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    watch: Watch = False,
    given: Given,
) -> None:
    """Show which times of all schedules did not fire, and why.

    The newest decision first. Times that fired have jobs: hascheduler job list.
    """
    filter = filter_of(given)
    only = filter.pop("verdict", ())
    with replica(url) as scheduler:
        show(
            lambda: {"items": list(islice(scheduler.verdicts(only, **filter), limit))},
            lambda answer: _all_verdicts_table(answer["items"]),
            as_json=as_json,
            watch=watch,
        )


def _all_verdicts_table(items: Sequence[Mapping[str, Any]]) -> RenderableType:
    if not items:
        return Text("There are no such times.", style="dim")
    columns: dict[str, Cell] = {
        "schedule": lambda item: item["schedule"],
        "time": _times,
        "verdict": _verdict,
        "why": _outcome,
    }
    return table_of("", items, columns, wraps=("why",))
