"""``hascheduler cluster failovers``: the changes of leadership, and what each of them cost."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.client import Client
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url
from hascheduler.cli.tables import console, new_table, or_dash, print_json

_MOST = 50


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
        console().print(_table(answer["items"]))


def one_line(failover: Mapping[str, Any]) -> str:
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


def _table(items: Sequence[Mapping[str, Any]]) -> RenderableType:
    if not items:
        return Text("Nobody has told of a change of leadership yet.", style="dim")
    table = new_table(
        "", "term", "at", "leader", "cause", "detected", "deciding", "gap", "late", "merged", "missed", "ended"
    )
    for item in items:
        spans = (_span(item[name]) for name in ("detection_ms", "takeover_ms", "gap_ms"))
        late = f"{item['fires_late']}, ≤ {item['worst_lag_ms']} ms" if item["fires_late"] else "0"
        texts = (str(item["term"]), item["detected_at"], item["holder"], item["cause"], *spans, late)
        ended = Text(item["ended"], style="" if item["ended"] == "caught_up" else "yellow")
        table.add_row(*map(Text, (*texts, str(item["coalesced"]), str(item["missed"]))), ended)
    return table


def _span(span_ms: int | None) -> str:
    return or_dash(None) if span_ms is None else f"{span_ms} ms"
