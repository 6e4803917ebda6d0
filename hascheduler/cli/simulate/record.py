"""``hascheduler record``: writes the leader's inputs and decisions to a file, for `hascheduler simulate`."""

import json
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, Url
from hascheduler.cli.replica import replica
from hascheduler.client.answers import ClusterResponse
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.model.values.durations import format_duration, parse_duration

_REFRESH_EVERY = 50


@example("hascheduler record afternoon.jsonl --for 1m\nhascheduler simulate afternoon.jsonl")
def record(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it; it must not exist.")],
    span: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long.")] = "30s",
    url: Url = DEFAULT_URL,
) -> None:
    """Record the leader's inputs and decisions. Ctrl-C ends it early, and what was written counts."""
    span_ms = parse_duration(span, ("--for",))
    with replica(url) as scheduler:
        leader = _leader(scheduler.cluster.status(), url)
    # On standard error, so that what the command prints stays its own.
    live = Live(Text("recording"), console=Console(stderr=True), auto_refresh=False, transient=True)
    steps, end = 0, "it was cut off"
    with replica(leader, "broke off") as scheduler, _new(file) as out, live:
        try:
            for line in scheduler.cluster.record(format_duration(span_ms)):
                out.write(line + "\n")
                read = json.loads(line)
                end = read.get("end", end)
                steps += "decisions" in read
                if steps % _REFRESH_EVERY == 1:
                    live.update(Text(f"{steps} steps"), refresh=True)
        except KeyboardInterrupt:
            end = "ended by Ctrl-C"
    typer.echo(f"{steps} steps recorded in {file}: {end}")


def _leader(cluster: ClusterResponse, url: str) -> str:
    """Where the leader answers."""
    if cluster["leading"]:
        return url
    holder = cluster["leader"]["holder"] if cluster["leader"] else None
    for one in cluster["replicas"]:
        if one["id"] == holder:
            # All replicas speak what this one does.
            return f"{url.partition('://')[0]}://{one['http_endpoint']}"
    raise WorldError("nobody leads at the moment, so there is nothing to record")


def _new(file: Path) -> TextIO:
    try:
        return file.open("x", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(("FILE",), f"{file}: {error.strerror}", "a new file that can be written") from None
