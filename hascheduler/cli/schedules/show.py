"""``hascheduler schedule list``, ``get`` and ``verdicts``, and ``hascheduler verdicts`` of all schedules."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from hascheduler.cli.completion import ScheduleName, complete_tenant
from hascheduler.cli.input.normal_forms import normal_schedule
from hascheduler.cli.input.values import check_name, instant_or_ago
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, AsYaml, LabelFilter, Url, Watch
from hascheduler.cli.output.console import console, print_json, show
from hascheduler.cli.output.instants import instant_text, with_utc
from hascheduler.cli.output.tables import FittedTable, with_columns
from hascheduler.cli.output.yaml_text import as_yaml
from hascheduler.cli.replica import replica
from hascheduler.cli.schedules.tables import VERDICT_STYLES, schedule_page, schedules_table
from hascheduler.clock import SystemClock
from hascheduler.model.verdict import Verdict
from hascheduler.schema.schedule import ScheduleState


@example(
    "hascheduler schedule list --label team=a --watch",
    "hascheduler schedule list --text nightly --state paused",
)
@with_utc
@with_columns
def list_schedules(
    *,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Only those whose name contains it, in any case.")
    ] = None,
    states: Annotated[
        list[ScheduleState] | None, typer.Option("--state", help="Only those in this state; again for more.")
    ] = None,
    last: Annotated[
        list[Verdict] | None,
        typer.Option("--verdict", help="Only those whose last decided time got this verdict; again for more."),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Only its own.", autocompletion=complete_tenant)
    ] = None,
    labels: LabelFilter = None,
    ahead: Annotated[bool, typer.Option("--ahead", help="Only those that a wrong clock made fire too early.")] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """List schedules, and how they stand."""
    given: dict[str, Any] = {
        "text": text,
        "state": [state.value for state in states or ()],
        "verdict": [verdict.value for verdict in last or ()],
        "tenant": tenant,
        "ahead": ahead,
    }
    filter = {name: value for name, value in given.items() if value}
    with replica(url) as scheduler:
        show(
            lambda: {"items": list(scheduler.schedules.list(labels, **filter))},
            lambda answer: schedules_table(answer["items"], SystemClock().wall_ms()),
            as_json=as_json,
            watch=watch,
        )


@example("hascheduler schedule get nightly", "hascheduler schedule get nightly --yaml > nightly.yaml")
@with_utc
def get(name: ScheduleName, url: Url = DEFAULT_URL, as_json: AsJson = False, as_manifest: AsYaml = False) -> None:
    """Show one schedule."""
    with replica(url) as scheduler:
        answer = scheduler.schedules.get(check_name(name))
    if as_json:
        print_json(answer)
    elif as_manifest:
        typer.echo(as_yaml({"kind": "Schedule", **normal_schedule(answer)}), nl=False)
    else:
        console().print(schedule_page(answer, SystemClock().wall_ms()))


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
    table = FittedTable("", "time", "verdict", "what came of it", wraps=("what came of it",))
    for item in answer["items"]:
        table.add_row(_times(item), _verdict(item), _outcome(item))
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
@with_columns
def all_verdicts(
    *,
    only: Annotated[list[Verdict] | None, typer.Option("--verdict", help="Only these; again for more.")] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="INSTANT|SPAN", help="Only what was decided from then on; 1h: an hour ago."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="INSTANT|SPAN", help="Only what was decided before that.")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="TEXT", help="Only of those whose name contains it, in any case."),
    ] = None,
    labels: LabelFilter = None,
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", metavar="NAME", help="Only of its schedules.", autocompletion=complete_tenant),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many, the newest decision first")] = 50,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """Show which times of all schedules did not fire, and why.

    The newest decision first. Times that fired have jobs: hascheduler job list.
    """
    now_ms = SystemClock().wall_ms()
    wanted: list[Any] = [verdict.value for verdict in only or ()]
    given = {"since": since, "until": until}
    filter: dict[str, Any] = {
        name: instant_or_ago(at, f"--{name}", now_ms) for name, at in given.items() if at is not None
    }
    filter |= {name: value for name, value in (("text", text), ("tenant", tenant), ("labels", labels)) if value}
    with replica(url) as scheduler:
        show(
            lambda: {"items": list(islice(scheduler.verdicts(wanted, **filter), limit))},
            lambda answer: _all_verdicts_table(answer["items"]),
            as_json=as_json,
            watch=watch,
        )


def _all_verdicts_table(items: Sequence[Mapping[str, Any]]) -> RenderableType:
    if not items:
        return Text("There are no such times.", style="dim")
    table = FittedTable("", "schedule", "time", "verdict", "why", wraps=("why",))
    for item in items:
        table.add_row(Text(item["schedule"]), _times(item), _verdict(item), _outcome(item))
    return table
