"""Runs the workloads on every system, one after the other; prints a table and one line of JSON."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pymongo.errors import PyMongoError

from hascheduler.embedded.children import run_in_foreground
from hascheduler.errors import InvalidInput, WorldError
from tests.bench.peers.running import Running, open_ours, open_peer
from tests.bench.peers.systems import OURS, PEERS, SYSTEMS, WORKLOADS, CannotRun, command_of, version_of
from tests.bench.peers.workloads import failover, fires, throughput
from tests.bench.results import describe_machine

_FOLDER = Path(".run/bench/peers")
_FAULTS = (CannotRun, WorldError, InvalidInput, OSError, PyMongoError)
_ELSEWHERE = ("HASCHEDULER_MONGODB_URI", "HASCHEDULER_AMQP_URL")
"""Servers that are not started here, and so not the same for all."""
_JOBS, _BATCH = 5_000, 500
_SCHEDULES, _SECONDS = (200, 1_000), 30
_FAILOVER_SCHEDULES, _KILLS = 100, 3


def main(
    systems: Annotated[str, typer.Option(help=f"Some of {','.join(SYSTEMS)}.")] = ",".join(SYSTEMS),
    workloads: Annotated[str, typer.Option(help=f"Some of {','.join(WORKLOADS)}.")] = ",".join(WORKLOADS),
) -> None:
    """The same workloads on this scheduler and on others, in one run."""
    chosen, wanted = _some("--systems", systems, SYSTEMS), _some("--workloads", workloads, WORKLOADS)
    for name in _ELSEWHERE:
        os.environ.pop(name, None)
    found = run_in_foreground(_measure_all(chosen, wanted))
    measured = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": describe_machine(),
        "command": f"python -m tests.bench.peers {shlex.join(sys.argv[1:])}".rstrip(),
        "systems": found,
    }
    typer.echo("\n".join(_table(found)), err=True)
    typer.echo(json.dumps({"peers": measured}))
    if "not_run" in found.get(OURS, {}):
        raise typer.Exit(1)


def _some(option: str, given: str, known: Sequence[str]) -> list[str]:
    """In the order of ``known``."""
    named = [name.strip() for name in given.split(",")]
    unknown = [repr(name) for name in named if name not in known]
    if unknown:
        typer.echo(f"{option}: unknown {', '.join(unknown)}; expected some of {', '.join(known)}", err=True)
        raise typer.Exit(2)
    return [name for name in known if name in named]


async def _measure_all(systems: Sequence[str], workloads: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What is known of each; ``not_run`` if it could not go on."""
    found: dict[str, dict[str, Any]] = {}
    for name in systems:
        title = OURS if name == OURS else f"{PEERS[name].package} {version_of(PEERS[name])}"
        keeps = "durable state" if name == OURS else PEERS[name].keeps
        measured = found[name] = {"title": title, "keeps": keeps}
        try:
            await _measure(name, workloads, measured)
        except _FAULTS as error:
            measured["not_run"] = " ".join(str(error).split()) or type(error).__name__
            typer.echo(f"{name} not run: {measured['not_run']}", err=True)
    return found


async def _measure(name: str, workloads: Sequence[str], found: dict[str, Any]) -> None:
    command = [] if name == OURS else await asyncio.to_thread(command_of, PEERS[name])

    def fresh(what: str) -> AbstractAsyncContextManager[Running]:
        typer.echo(f"{name}: {what}", err=True)
        folder = _FOLDER / name / what.replace(" ", "-")
        return open_ours(folder, kills=what == "failover") if name == OURS else open_peer(PEERS[name], command, folder)

    able = WORKLOADS if name == OURS else PEERS[name].workloads
    if "throughput" in workloads:
        async with fresh("throughput") as system:
            found["throughput"] = await throughput(system, _JOBS, _BATCH)
    if "fires" in workloads and "fires" in able:
        for schedules in _SCHEDULES:
            async with fresh(f"fires of {schedules}") as system:
                found.setdefault("fires", {})[str(schedules)] = await fires(system, schedules, _SECONDS)
    if "failover" in workloads and "failover" in able:
        async with fresh("failover") as system:
            found["failover"] = await failover(system, _FAILOVER_SCHEDULES, _KILLS)


def _table(systems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown of all systems that were measured in one run."""
    lag = "1,000 schedules × 1 s: not fired, lag p99"
    yield f"| system | keeps | no-op jobs/s | {lag} | one of two killed: until all schedules fire again |"
    yield "|---|---|---|---|---|"
    for system in systems.values():
        fires, taken_over = system.get("fires", {}).get("1000", {}), system.get("failover", {})
        cells = [
            system.get("throughput", {}).get("jobs_per_s", ""),
            f"{fires['not_fired_percent']} %, {fires['lag_p99_ms']} ms" if fires else "",
            f"{taken_over['resumed_last_ms']} ms" if taken_over else "",
        ]
        if "not_run" in system:
            cells[0] = f"not run: {system['not_run']}"
        yield f"| {system['title']} | {system['keeps']} | {' | '.join(map(str, cells))} |"


typer.run(main)
