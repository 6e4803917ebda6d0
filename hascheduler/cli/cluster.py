"""``hascheduler cluster``: what one replica sees of the whole, as tables, as JSON, or live."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.client import Answer, Client
from hascheduler.cli.live import not_both, show
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url, Watch
from hascheduler.cli.tables import new_table, or_dash, print_json, yes_or_no
from hascheduler.model.resource_texts import format_resources


@example("hascheduler cluster --watch")
def cluster(url: Url = DEFAULT_URL, as_json: AsJson = False, watch: Watch = False) -> None:
    """Show who leads, who is there, and what is wrong."""
    not_both(as_json=as_json, watch=watch)
    with Client(url) as client:
        if as_json:
            print_json(_asked(client))
        else:
            show(lambda: _tables(_asked(client)), watch=watch)


def _asked(client: Client) -> dict[str, Any]:
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
    text.append(f"\nseen by {answer['replica_id']}", style="dim")
    if not answer["ready"]:
        text.append(f"   not ready: {answer['unready_reason']}", style="red")
    return text


def _replicas(answer: Answer) -> Table:
    table = new_table("Replicas", "replica", "HTTP", "ready", "lag", "digest", "bad")
    holder = (answer["leader"] or {}).get("holder")
    for replica in answer["replicas"]:
        lag_ms = replica["stream_lag_ms"]
        table.add_row(
            Text(replica["id"], style="bold green" if replica["id"] == holder else ""),
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
        # As Text: whoever wrote such a document may have put markup into it.
        table.add_row(Text(row["collection"]), Text(row["id"]), Text(row["reason"]))
    return table
