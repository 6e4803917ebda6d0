"""``hascheduler job counts`` and ``errors``: how many jobs there are in each state, and what went wrong with them."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from hascheduler.cli.jobs.options import BEGINS, IN_ANY_STATE, LISTED, WITHIN, list_filter
from hascheduler.cli.jobs.tables import STATE_STYLES
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Given, Url, Watch, with_options
from hascheduler.cli.output.console import new_table, print_json, refuse_json_with_watch, show_or_watch
from hascheduler.cli.output.instants import relative_text
from hascheduler.cli.output.tables import FittedTable, with_columns
from hascheduler.cli.replica import replica
from hascheduler.clock import SystemClock
from hascheduler.model.job import JobState

Answer = Mapping[str, Any]


@example("hascheduler job counts --definition resize --since 1h --watch")
@with_options("given", LISTED)
def counts(*, url: Url = DEFAULT_URL, as_json: AsJson = False, watch: Watch = False, given: Given) -> None:
    """Count jobs by state."""
    refuse_json_with_watch(as_json=as_json, watch=watch)
    filter = list_filter(given, SystemClock().wall_ms())
    with replica(url) as scheduler:
        if as_json:
            print_json(scheduler.count(**filter))
        else:
            show_or_watch(lambda: _counts_table(scheduler.count(**filter)), watch=watch)


@example("hascheduler job errors --since 1h", "hascheduler job retry --definition resize --state failed")
@with_options("given", {**BEGINS, **IN_ANY_STATE, **WITHIN})
@with_columns
def errors(*, url: Url = DEFAULT_URL, as_json: AsJson = False, watch: Watch = False, given: Given) -> None:
    """Group the newest failed jobs by what went wrong.

    Errors that are equal but for numbers, ids and quoted texts are one group; the largest group comes first.
    """
    refuse_json_with_watch(as_json=as_json, watch=watch)
    filter = list_filter(given, SystemClock().wall_ms())
    with replica(url) as scheduler:
        if as_json:
            print_json(scheduler.errors(**filter))
        else:
            show_or_watch(lambda: _errors_page(scheduler.errors(**filter), SystemClock().wall_ms()), watch=watch)


def _counts_table(answer: Answer) -> RenderableType:
    table = new_table("", "state", "jobs")
    for state in JobState:
        table.add_row(
            Text(state.value, style=STATE_STYLES.get(state.value, "")),
            _number(answer[state.value], at_least=state in answer["at_least"]),
        )
    table.add_row(Text("all", style="bold"), _number(answer["matched"], at_least=not answer["exact"]))
    return table


def _number(count: int, *, at_least: bool) -> str:
    return f"{count} or more" if at_least else str(count)


def _errors_page(answer: Answer, now_ms: int) -> RenderableType:
    groups: Sequence[Answer] = answer["groups"]
    if not groups:
        return Text("No job has failed.", style="dim")
    columns = ("jobs", "definition", "error", "last", "first", "example")
    table = FittedTable("", *columns, spare=("first", "example", "last"), wraps=("error",))
    for group in groups:
        table.add_row(
            str(group["count"]),
            Text(group["definition"]),
            Text(group["fault"], style="red"),
            *(relative_text(group[name], now_ms) for name in ("last_at", "first_at")),
            Text(group["job"]),
        )
    parts: list[RenderableType] = [table]
    others = answer["others"]
    if others["groups"]:
        parts.append(Text(f"and {others['count']} jobs in {others['groups']} smaller groups", style="dim"))
    if not answer["complete"]:
        parts.append(Text(f"Of the newest {answer['examined']} failed jobs that match.", style="dim"))
    return Group(*parts)
