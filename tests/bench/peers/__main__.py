"""Runs the workloads on every system, one after the other; prints a table and one line of JSON, and writes a file."""

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pymongo.errors import PyMongoError
from rich.console import Console

from hascheduler.embedded.children import run_in_foreground
from hascheduler.errors import InvalidInput, WorldError
from tests.bench.machine import describe_machine
from tests.bench.peers.environments import CannotRun, command_of, version_of
from tests.bench.peers.ours import open_ours
from tests.bench.peers.running import Running
from tests.bench.peers.systems import OURS, PEERS, SYSTEMS, WORKLOADS
from tests.bench.peers.theirs import open_peer
from tests.bench.peers.workloads import Load, failover, fires, throughput
from tests.bench.report import peers_table

_FOLDER = Path(".run/bench/peers")
_RESULTS = Path(".run/bench/peers.json")
_BUSY = 1.0
_LOAD = Load()
_FAULTS = (CannotRun, WorldError, InvalidInput, OSError, PyMongoError)
_ELSEWHERE = ("HASCHEDULER_MONGODB_URI", "HASCHEDULER_AMQP_URL")
"""Servers that are not started here, and so not the same for all."""

_console = Console(stderr=True)


def main(
    *,
    systems: Annotated[str, typer.Option(help=f"Some of {','.join(SYSTEMS)}.")] = ",".join(SYSTEMS),
    workloads: Annotated[str, typer.Option(help=f"Some of {','.join(WORKLOADS)}.")] = ",".join(WORKLOADS),
    jobs: Annotated[int, typer.Option(min=1, help="No-op jobs of the throughput.")] = _LOAD.jobs,
    schedules: Annotated[str, typer.Option(help="Of the fires, with commas.")] = "200,1000",
    seconds: Annotated[int, typer.Option(min=1, help="That fires are observed.")] = _LOAD.seconds,
    kills: Annotated[int, typer.Option(min=1, help="Of the failover.")] = _LOAD.kills,
) -> None:
    """The same workloads on this scheduler and on others, in one run."""
    chosen, wanted = _some("--systems", systems, SYSTEMS), _some("--workloads", workloads, WORKLOADS)
    counts = tuple(_count(each) for each in schedules.split(","))
    load = Load(jobs=jobs, schedules=counts, seconds=seconds, kills=kills)
    for name in _ELSEWHERE:
        os.environ.pop(name, None)
    if os.getloadavg()[0] > _BUSY:
        _console.print(f"[yellow]the machine is busy (load {os.getloadavg()[0]:.1f}): no figures to rely on")
    found = run_in_foreground(_measure_all(chosen, wanted, load))
    command = f"python -m tests.bench.peers {shlex.join(sys.argv[1:])}".rstrip()
    told = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": describe_machine() | {"node": _node()},
        "command": command,
        "systems": found,
    }
    _console.print(*peers_table(told), sep="\n", markup=False, highlight=False, soft_wrap=True)
    _RESULTS.parent.mkdir(parents=True, exist_ok=True)
    _RESULTS.write_text(json.dumps(told, indent=1) + "\n")
    sys.stdout.write(json.dumps({"peers": told}) + "\n")
    if "not_run" in found.get(OURS, {}):
        raise typer.Exit(1)


def _some(option: str, given: str, known: Sequence[str]) -> list[str]:
    """In the order of ``known``."""
    named = [name.strip() for name in given.split(",")]
    unknown = [repr(name) for name in named if name not in known]
    if unknown:
        _refuse(f"{option}: unknown {', '.join(unknown)}; expected some of {', '.join(known)}")
    return [name for name in known if name in named]


def _count(given: str) -> int:
    if not given.strip().isdecimal() or int(given) == 0:
        _refuse(f"--schedules: {given!r} is no number of schedules; expected whole numbers with commas, as in 200,1000")
    return int(given)


def _refuse(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    raise typer.Exit(2)


async def _measure_all(systems: Sequence[str], workloads: Sequence[str], load: Load) -> dict[str, dict[str, Any]]:
    """What is known of each; ``not_run`` if it could not go on."""
    found = {name: _of(name) for name in systems}
    for name, measured in found.items():
        try:
            await _measure(name, workloads, load, measured)
        except _FAULTS as error:
            measured["not_run"] = " ".join(str(error).split()) or type(error).__name__
            _console.print(f"{name} not run: {measured['not_run']}", style="yellow", markup=False)
    return found


def _of(name: str) -> dict[str, Any]:
    if name == OURS:
        return {"title": OURS, "keeps": "durable state"}
    peer = PEERS[name]
    return {"title": f"{peer.package} {version_of(peer)}", "keeps": peer.keeps}


async def _measure(name: str, workloads: Sequence[str], load: Load, found: dict[str, Any]) -> None:
    command = [] if name == OURS else await asyncio.to_thread(command_of, PEERS[name])

    def fresh(what: str) -> AbstractAsyncContextManager[Running]:
        _console.print(f"{name}: {what}")
        folder = _FOLDER / name / what.replace(" ", "-")
        return open_ours(folder, kills=what == "failover") if name == OURS else open_peer(PEERS[name], command, folder)

    able = WORKLOADS if name == OURS else PEERS[name].workloads
    if "throughput" in workloads:
        async with fresh("throughput") as system:
            found["throughput"] = await throughput(system, load.jobs, load.batch)
        if name == OURS:
            async with fresh("throughput one by one") as system:
                alone = await throughput(system, load.jobs, 1)
            found["throughput"] |= {f"one_by_one_{figure}": value for figure, value in alone.items()}
        found["throughput_jobs_per_s"] = found["throughput"]["jobs_per_s"]
    if "fires" in workloads and "fires" in able:
        for schedules in load.schedules:
            async with fresh(f"fires of {schedules}") as system:
                found.setdefault("fires", {})[str(schedules)] = await fires(system, schedules, load.seconds)
    if "failover" in workloads and "failover" in able:
        async with fresh("failover") as system:
            found["failover"] = await failover(system, load.failover_schedules, load.kills)


def _node() -> str:
    if shutil.which("node") is None:
        return "none"
    return subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip().lstrip("v")


typer.run(main)
