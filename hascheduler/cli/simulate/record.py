"""``hascheduler record``: writes the leader's inputs and decisions to a file, for `hascheduler simulate`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, Url
from hascheduler.cli.replica import replica
from hascheduler.client.wire import ClusterResponse
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
    with replica(leader, "broke off") as scheduler, _new(file) as out, _progress() as live:
        steps, end = _write(scheduler.cluster.record(format_duration(span_ms)), out, live)
    typer.echo(f"{steps} steps recorded in {file}: {end}")


def _write(lines: Iterator[str], out: TextIO, live: Live) -> tuple[int, str]:
    steps, end = 0, "it was cut off"
    try:
        for line in lines:
            out.write(line + "\n")
            said = json.loads(line)
            end = said.get("end", end)
            steps += "decisions" in said
            if steps % _REFRESH_EVERY == 1:
                live.update(Text(f"{steps} steps"), refresh=True)
    except KeyboardInterrupt:
        end = "ended by Ctrl-C"
    return steps, end


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


@contextmanager
def _new(file: Path) -> Iterator[TextIO]:
    try:
        with file.open("x", encoding="utf-8") as out:
            yield out
    except FileExistsError:
        raise InvalidInput(("FILE",), f"{file} exists", "a new file") from None
    except OSError as error:
        raise InvalidInput(("FILE",), f"{file}: {error.strerror}", "a file that can be written") from None


def _progress() -> Live:
    """On stderr, so that what the command prints stays its own."""
    return Live(Text("recording"), console=Console(stderr=True), auto_refresh=False, transient=True)
