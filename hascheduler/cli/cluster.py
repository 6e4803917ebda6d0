"""``hascheduler cluster``: what one replica sees of the whole, as tables, as JSON, or live."""

import json
import time
from collections.abc import Mapping
from typing import Annotated, Any

import httpx
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hascheduler.errors import InvalidInput, WorldError

_PATIENCE_S = 5.0
_WATCH_EVERY_S = 1.0

Answer = Mapping[str, Any]


def cluster(
    url: Annotated[
        str, typer.Option(envvar="HASCHEDULER_URL", help="Any replica", show_default=True)
    ] = "http://127.0.0.1:8080",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every second, until Ctrl-C.")] = False,
) -> None:
    """Show who leads, who is there, and what is wrong."""
    if as_json and watch:
        raise InvalidInput(("--watch",), "can't be had with --json", "one of the two")
    with _client(url) as client:
        if as_json:
            typer.echo(json.dumps(_asked(client), indent=2, ensure_ascii=False))
        elif watch:
            _watch(client)
        else:
            Console().print(_tables(_asked(client)))


def _client(url: str) -> httpx.Client:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidInput(("--url",), f"{url!r}: {error}", "such as http://127.0.0.1:8080") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(("--url",), f"{url!r} is not a URL", "such as http://127.0.0.1:8080")
    return httpx.Client(base_url=parsed, timeout=_PATIENCE_S)


def _watch(client: httpx.Client) -> None:
    with Live(_tables(_asked(client)), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(_WATCH_EVERY_S)
            try:
                live.update(_tables(_asked(client)), refresh=True)
            except WorldError as error:  # it may come back, and whoever watches wants to see it
                live.update(Text(str(error), style="red"), refresh=True)


def _asked(client: httpx.Client) -> dict[str, Any]:
    """``/v1/cluster`` with the processors beside it."""
    answer = _get(client, "/v1/cluster")
    answer["processors"] = _get(client, "/v1/processors").get("items", [])
    return answer


def _get(client: httpx.Client, path: str) -> dict[str, Any]:
    try:
        response = client.get(path)
        answer = response.json()
    except httpx.ConnectError:
        raise WorldError(f"nothing answers at {client.base_url}; is a replica running there?") from None
    except (httpx.HTTPError, ValueError) as error:
        raise WorldError(f"{client.base_url} does not answer as a replica does ({type(error).__name__})") from None
    if response.status_code != 200 or not isinstance(answer, dict):
        detail = answer.get("detail", "") if isinstance(answer, dict) else ""
        raise WorldError(f"{client.base_url} answered {response.status_code}: {detail or 'that is no replica'}")
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
    text.append(f"\njournal {_or_dash(answer['journal_seq'])}   {counts}")
    text.append(f"\nseen by {answer['replica_id']}", style="dim")
    if not answer["ready"]:
        text.append(f"   not ready: {answer['unready_reason']}", style="red")
    return text


def _replicas(answer: Answer) -> Table:
    table = _table("Replicas", "replica", "HTTP", "ready", "lag", "digest", "bad")
    holder = (answer["leader"] or {}).get("holder")
    for replica in answer["replicas"]:
        lag_ms = replica["stream_lag_ms"]
        table.add_row(
            Text(replica["id"], style="bold green" if replica["id"] == holder else ""),
            Text(replica["http_endpoint"]),
            _yes_or_no(replica["ready"]),
            "–" if lag_ms is None else f"{lag_ms} ms",
            Text(replica["digest"][:8]),
            str(replica["quarantined"]),
        )
    return table


def _processors(answer: Answer) -> Table:
    table = _table("Processors", "processor", "runs", "slots", "alive", "draining", "parked")
    for processor in answer["processors"]:
        table.add_row(
            Text(processor["id"]),
            Text(", ".join(processor["definitions"])),
            f"{processor['occupied']}/{processor['slots']}",
            _yes_or_no(processor["alive"]),
            "yes" if processor["draining"] else "",
            str(processor["parked"]),
        )
    return table


def _quarantine(answer: Answer) -> Table:
    table = _table("Quarantine: documents that can't be read", "collection", "id", "reason")
    for row in answer["quarantine"]:
        # As Text: whoever wrote such a document may have put markup into it.
        table.add_row(Text(row["collection"]), Text(row["id"]), Text(row["reason"]))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold")  # ids are there to be copied: never cut one off
    return table


def _yes_or_no(value: bool) -> Text:
    return Text("yes", style="green") if value else Text("no", style="red")


def _or_dash(value: object) -> str:
    return "–" if value is None else str(value)
