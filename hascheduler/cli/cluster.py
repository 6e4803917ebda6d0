"""``hascheduler cluster``: one replica's view of the whole cluster, as tables, as JSON, or live.

Its other views are commands of their own: ``hascheduler cluster failovers`` lists the changes of leadership and what
each of them cost.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.client import Answer, Client
from hascheduler.cli.commands import CLUSTER
from hascheduler.cli.lazy_groups import example, lazy_group
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url, Watch
from hascheduler.cli.output.console import (
    console,
    new_table,
    or_dash,
    print_json,
    refuse_json_with_watch,
    show_or_watch,
    yes_or_no,
)
from hascheduler.errors import InvalidInput
from hascheduler.model.resources import format_resources

cluster = typer.Typer(cls=lazy_group(CLUSTER), invoke_without_command=True, add_completion=False, rich_markup_mode=None)
_MOST = 50


@cluster.callback(epilog="\b\nExample:\n  hascheduler cluster --watch")
def _cluster(context: typer.Context, url: Url = DEFAULT_URL, as_json: AsJson = False, watch: Watch = False) -> None:
    """Show who leads, who is there, and what is wrong."""
    if context.invoked_subcommand is not None:
        _demand_options_behind(context, context.invoked_subcommand)
        return
    refuse_json_with_watch(as_json=as_json, watch=watch)
    with Client(url) as client:
        if as_json:
            print_json(_fetch(client))
        else:
            show_or_watch(lambda: _tables(_fetch(client)), watch=watch)


def _demand_options_behind(context: typer.Context, command: str) -> None:
    """The command has its own options; the same in front of it would be ignored silently."""
    for name in ("url", "as_json", "watch"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = f"--{name.removeprefix('as_')}"
            raise InvalidInput((option,), f"stands before {command}", f"hascheduler cluster {command} {option} …")


def _fetch(client: Client) -> dict[str, Any]:
    """``/v1/cluster`` with the processors beside it."""
    answer = client.get("/v1/cluster")
    answer["processors"] = client.get("/v1/processors").get("items", [])
    return answer


def _tables(answer: Answer) -> RenderableType:
    parts: list[RenderableType] = [_summary(answer), _replicas(answer), _processors(answer)]
    if answer["quarantine"]:
        parts.append(_quarantine(answer))
    return Group(*parts)


def _summary(answer: Answer) -> Text:
    leader = answer["leader"]
    text = Text()
    if leader:
        text.append("leader ", style="dim").append(leader["holder"], style="bold green")
        text.append(f"   term {leader['term']}   since {leader['since']}")
    else:
        text.append("nobody leads", style="bold red")
    counts = "   ".join(f"{name} {count}" for name, count in answer["counts"].items())
    text.append(f"\njournal {or_dash(answer['journal_seq'])}   {counts}")
    failover = answer.get("failover")  # a replica of an older release does not tell
    if failover:
        text.append(f"\nlast failover   {failover_line(failover)}")
    text.append(f"\nseen by {answer['replica_id']}", style="dim")
    if "schema" in answer:
        text.append(f"   schema version {answer['schema']['version']}", style="dim")
    findings = answer.get("findings")
    if findings and findings["counts"]:
        counts = ", ".join(f"{kind} {count}" for kind, count in findings["counts"].items())
        text.append(f"\nbroken: {counts}", style="bold red").append("   hascheduler check tells more", style="dim")
    if answer.get("mirrors_differ"):
        text.append(f"\nits mirror differs from {', '.join(answer['mirrors_differ'])}", style="bold red")
    if not answer["ready"]:
        text.append(f"   not ready: {answer['unready_reason']}", style="red")
    return text


def _replicas(answer: Answer) -> Table:
    table = new_table("Replicas", "replica", "version", "HTTP", "ready", "lag", "digest", "bad")
    holder = (answer["leader"] or {}).get("holder")
    for replica in answer["replicas"]:
        lag_ms = replica["stream_lag_ms"]
        table.add_row(
            Text(replica["id"], style="bold green" if replica["id"] == holder else ""),
            Text(or_dash(replica.get("version"))),  # a replica of an older release does not tell
            Text(replica["http_endpoint"]),
            yes_or_no(replica["ready"]),
            "–" if lag_ms is None else f"{lag_ms} ms",
            Text(replica["digest"][:8]),
            str(replica["quarantined"]),
        )
    return table


def _processors(answer: Answer) -> Table:
    table = new_table("Processors", "processor", "runs", "slots", "resources", "alive", "draining", "parked")
    for processor in answer["processors"]:
        table.add_row(
            Text(processor["id"]),
            Text(", ".join(processor["definitions"])),
            f"{processor['occupied']}/{processor['slots']}",
            format_resources(processor["resources"]),
            yes_or_no(processor["alive"]),
            "yes" if processor["draining"] else "",
            str(processor["parked"]),
        )
    return table


def _quarantine(answer: Answer) -> Table:
    table = new_table("Quarantine: documents that can't be read", "collection", "id", "reason")
    for row in answer["quarantine"]:
        # As Text: such a document may hold markup.
        table.add_row(Text(row["collection"]), Text(row["id"]), Text(row["reason"]))
    return table


@example("hascheduler cluster failovers --limit 10", "hascheduler cluster failovers --json")
def failovers(
    limit: Annotated[int, typer.Option("--limit", min=1, max=_MOST, help="How many, the latest first")] = _MOST,
    *,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the changes of leadership, and what they cost."""
    with Client(url) as client:
        answer = client.get("/v1/cluster/failovers", [("limit", str(limit))])
    if as_json:
        print_json({"items": answer["items"]})
    else:
        console().print(_failovers_table(answer["items"]))


def failover_line(failover: Mapping[str, Any]) -> str:
    """``term 8 at 2030-01-01T00:00:00.060Z, died; detected 40 ms, deciding 80 ms; 3 fires late, at most 132 ms``."""
    spans = [
        f"{word} {failover[name]} ms"
        for word, name in (("detected", "detection_ms"), ("deciding", "takeover_ms"), ("gap", "gap_ms"))
        if failover[name] is not None
    ]
    late = failover["fires_late"]
    parts = [
        f"term {failover['term']} at {failover['detected_at']}, {failover['cause']}",
        ", ".join(spans),
        f"{late} fires late, at most {failover['worst_lag_ms']} ms" if late else "no fire late",
        f"{failover['missed']} missed" if failover["missed"] else "",
    ]
    return "; ".join(part for part in parts if part)


def _failovers_table(items: Sequence[Mapping[str, Any]]) -> RenderableType:
    if not items:
        return Text("Nobody has told of a change of leadership yet.", style="dim")
    table = new_table(
        "", "term", "at", "leader", "cause", "detected", "deciding", "gap", "late", "merged", "missed", "ended"
    )
    for item in items:
        spans = (_span_or_dash(item[name]) for name in ("detection_ms", "takeover_ms", "gap_ms"))
        late = f"{item['fires_late']}, ≤ {item['worst_lag_ms']} ms" if item["fires_late"] else "0"
        texts = (str(item["term"]), item["detected_at"], item["holder"], item["cause"], *spans, late)
        ended = Text(item["ended"], style="" if item["ended"] == "caught_up" else "yellow")
        table.add_row(*map(Text, (*texts, str(item["coalesced"]), str(item["missed"]))), ended)
    return table


def _span_or_dash(span_ms: int | None) -> str:
    return or_dash(None) if span_ms is None else f"{span_ms} ms"
