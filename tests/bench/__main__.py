"""Runs the benchmarks, prints a table, and one line of JSON for machines."""

import asyncio
import json
import shlex
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hascheduler.embedded.stack import Stack, StackPlan, open_stack
from tests.bench.decisions import SIZES, TARGETS, draw, measure_decisions
from tests.bench.failover import measure_failover
from tests.bench.finished import measure_finished
from tests.bench.fires import measure_fires
from tests.bench.flood import Flood, measure_flood
from tests.bench.schedules import measure_schedules
from tests.bench.submits import measure_submits

app = typer.Typer(help=__doc__, add_completion=False)
_DATABASE = "hascheduler-bench"


@app.command()
def fires(schedules: int = 200, seconds: int = 30, replicas: int = 3, processors: int = 2) -> None:
    """Schedules that fire every second: expected, fired, missed, doubled, lag."""
    _run("fires", replicas, processors, lambda stack: measure_fires(stack, schedules, seconds))


@app.command()
def failover(kills: int = 5, replicas: int = 3, processors: int = 2) -> None:
    """From ending the leader to the first decision of the next term."""
    _run("failover", replicas, processors, lambda stack: measure_failover(stack, _DATABASE, kills))


@app.command()
def schedules(count: int = 100_000, idle_seconds: int = 20, changes: int = 200, repeats: int = 1) -> None:
    """Schedules that wait: time to ready, memory, idle CPU, and how soon a change is in force."""
    folder = Path(".run/bench/schedules")
    folder.mkdir(parents=True, exist_ok=True)
    _show("schedules", asyncio.run(measure_schedules(count, idle_seconds, changes, repeats, folder)))


@app.command()
def decisions(
    presets: Annotated[str, typer.Option(help="With commas; the first at all sizes, the others at 100,000.")] = (
        "balanced,fair,affinity,swimlanes"
    ),
    repeats: int = 1,
    plot: Annotated[str | None, typer.Option(help="Draw cost against pending jobs to this file.")] = None,
) -> None:
    """The dispatch core alone: what a decision costs, by how many jobs wait."""
    first, *others = presets.split(",")
    found = {first: measure_decisions(first, SIZES, repeats)}
    found |= {preset: measure_decisions(preset, SIZES[1:2], repeats) for preset in others}
    for preset, by_size in found.items():
        for size, figures in by_size.items():
            _show(f"decisions, {preset}, {size:,} pending", dict(figures))
    small, large = (found[first][size]["decision_us"] for size in (SIZES[0], SIZES[-1]))
    largest = found[first][SIZES[-1]]
    of_target = {f"{name}_of_target": round(largest[name] / target, 2) for name, target in TARGETS.items()}
    _show(f"decisions, {first}", {"growth_of_decision": round(large / small, 2), **of_target})
    if plot is not None:
        draw(found, plot)


@app.command()
def submits(
    per_second: int = 100,
    running: Annotated[int, typer.Option(help="Jobs that run each second in all.")] = 200,
    seconds: int = 30,
    replicas: int = 3,
    processors: int = 2,
) -> None:
    """How soon a submit is acknowledged while other jobs run."""
    _run("submits", replicas, processors, lambda stack: measure_submits(stack, _DATABASE, per_second, running, seconds))


@app.command()
def flood(
    slots: int = 8,
    nap_ms: Annotated[int, typer.Option(help="What each job takes.")] = 50,
    times: Annotated[int, typer.Option(help="So many times the capacity.")] = 10,
    seconds: int = 30,
    replicas: int = 1,
) -> None:
    """One tenant floods: how long another one's jobs wait, and the replica's memory."""
    load = Flood(slots, nap_ms, times, seconds)
    _run("flood", replicas, 1, lambda stack: measure_flood(stack, _DATABASE, load), slots)


@app.command()
def finished(count: int = 1_000_000, requests: int = 300) -> None:
    """Jobs that have ended: to look at one, to list them, and by which index."""
    _run("finished", 1, 0, lambda stack: measure_finished(stack, _DATABASE, count, requests))


@app.command()
def all(replicas: Annotated[int, typer.Option(help="For every benchmark.")] = 3, processors: int = 2) -> None:
    """Every benchmark with its defaults."""
    fires(replicas=replicas, processors=processors)
    failover(replicas=replicas, processors=processors)
    schedules()
    decisions()
    submits(replicas=replicas, processors=processors)
    flood()
    finished()


def _run(
    name: str,
    replicas: int,
    processors: int,
    measure: Callable[[Stack], Awaitable[dict[str, Any]]],
    slots: int = 32,
) -> None:
    console = Console(stderr=True)

    async def run() -> dict[str, Any]:
        settings = {"HASCHEDULER_DATABASE": _DATABASE}
        folder = Path(".run/bench") / name
        shutil.rmtree(folder, ignore_errors=True)  # the effects of an earlier run
        plan = StackPlan(folder, replicas, processors, slots=slots, settings=settings)
        async with open_stack(plan, console.print) as stack:
            return {"transport": stack.transport, **await measure(stack)}

    _show(name, asyncio.run(run()))


def _show(name: str, figures: dict[str, Any]) -> None:
    table = Table(title=f"{name}: python -m tests.bench {shlex.join(sys.argv[1:])}", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for figure, value in figures.items():
        table.add_row(figure, str(value))
    Console(stderr=True).print(table)
    sys.stdout.write(json.dumps({name: figures}) + "\n")


app()
