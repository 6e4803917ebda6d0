"""Runs the benchmarks: shows a table, and prints one line of JSON for machines."""

import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from signal import SIGKILL, SIGSTOP, SIGTERM
from typing import Annotated

import typer

from hascheduler.embedded.children import run_in_foreground
from hascheduler.embedded.stack import Stack
from hascheduler.errors import CallerError, InvalidInput, WorldError
from tests.bench.decisions import SIZES, measure_decisions
from tests.bench.jobs import (
    FLOOD_SLOTS,
    FLOOD_TIMES,
    OVERLOAD_TIMES,
    measure_cost,
    measure_flood,
    measure_idle,
    measure_overload,
    measure_starts,
    measure_throughput,
    read_loads,
)
from tests.bench.moves import measure_slot_moves
from tests.bench.results import Figures, run_bench
from tests.bench.soak import measure_soak
from tests.bench.stacks import FOLDER, Crew, on_stack
from tests.bench.stalls import measure_stalls
from tests.bench.stored import measure_pending, measure_schedules
from tests.bench.times import measure_failover, measure_fires, measure_storm

SUITE: Mapping[str, Sequence[str]] = {
    "throughput": ("--runs", "3"),
    **dict.fromkeys(("latency", "fires", "storm", "failover", "cost", "idle", "flood", "overload", "slot-moves"), ()),
    **dict.fromkeys(("schedules", "pending", "stalls", "decisions"), ()),
}
"""All but the soak, with what is given to each: the whole takes some three quarters of an hour on two cores."""
CREW = Crew(replicas=3, processors=2)

app = typer.Typer(help=__doc__, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
Count = Annotated[int, typer.Option(min=1)]
Counts = Annotated[str, typer.Option(help="With commas.")]
Slots = Annotated[int, typer.Option(min=1, help="Of each processor.")]


@app.command()
def throughput(
    *,
    replicas: Counts = "1,3",
    processors: Counts = "1,4",
    runs: Annotated[int, typer.Option(min=1, help="Medians over so many.")] = 1,
) -> None:
    """Jobs that do nothing, submitted over HTTP until all have succeeded."""
    counts = read_numbers("--processors", processors)
    crews = [Crew(*each, slots=128) for each in product(read_numbers("--replicas", replicas), counts)]
    cases = {
        f"{crew}, {_in_batches(size)}": (crew, partial(measure_throughput, jobs=20_000, batch=size))
        for crew in crews
        for size in (1, 500)
    }
    _run("throughput", cases, runs)


@app.command()
def latency(
    *, rates: Annotated[str, typer.Option(help="Jobs per second, with commas.")] = "50,200,1000", seconds: Count = 30
) -> None:
    """From a submit to the start of the handler, at several rates."""
    measure = partial(measure_starts, seconds=seconds, folder=FOLDER / "latency")
    cases = {f"{rate:,} jobs/s": (CREW, partial(measure, per_second=rate)) for rate in read_numbers("--rates", rates)}
    _run("latency", cases)


@app.command()
def fires(
    *, schedules: Annotated[str, typer.Option(help="How many; with commas.")] = "200,1000,2000", seconds: Count = 60
) -> None:
    """Schedules that fire every second: expected, fired, missed, doubled, lag."""
    crew = replace(CREW, slots=1_024)
    cases = {
        f"{count:,} schedules": (crew, partial(measure_fires, schedules=count, seconds=seconds))
        for count in read_numbers("--schedules", schedules)
    }
    _run("fires", cases)


@app.command()
def storm(schedules: Count = 10_000) -> None:
    """Schedules that are all due at one instant: when the last has started."""
    crew = replace(CREW, slots=128)
    _run("storm", {f"{schedules:,} at once": (crew, partial(measure_storm, schedules=schedules))})


@app.command()
def failover(
    *,
    kills: Annotated[int, typer.Option(min=0, help="Leaders that get SIGKILL.")] = 50,
    terminations: Annotated[int, typer.Option(min=0, help="Leaders that get SIGTERM.")] = 10,
) -> None:
    """From ending the leader to the first dispatch of the next term; SIGSTOP, noticed later, thrice."""
    plan = {SIGKILL: kills, SIGTERM: terminations, SIGSTOP: 3}
    run_bench("failover", lambda: on_stack("failover", CREW, partial(measure_failover, plan=plan)))


@app.command()
def cost(
    *,
    loads: Annotated[
        str, typer.Option(help="Jobs a second, with commas; 1000/500 is 1,000 a second, 500 of them a request.")
    ] = "50,200,1000,1000/500",
    seconds: Count = 20,
) -> None:
    """CPU of a job by kind of process, and MongoDB's operations, by load."""
    measure = partial(measure_cost, loads=read_loads(loads), seconds=seconds)
    run_bench("cost", lambda: on_stack("cost", CREW, measure))


@app.command()
def idle() -> None:
    """CPU and memory of each kind of process while there is nothing to do."""
    run_bench("idle", lambda: on_stack("idle", CREW, measure_idle))


@app.command()
def soak(
    minutes: Annotated[float, typer.Option(min=0.5)] = 30,
    per_second: Annotated[int, typer.Option(min=1, help="Jobs; 200 fires come beside them.")] = 800,
) -> None:
    """A long run in which leaders are killed: lost, doubled, and whether memory or lag grow."""
    measure = partial(measure_soak, per_second=per_second, minutes=minutes, folder=FOLDER / "soak")
    _run("soak", {f"{minutes:g} minutes, {per_second:,} jobs/s": (CREW, measure)})


@app.command()
def schedules(counts: Counts = "10000,100000,1000000") -> None:
    """Schedules that wait: time to ready, memory, and idle CPU."""
    sizes = read_numbers("--counts", counts)
    run_bench("schedules", lambda: run_in_foreground(measure_schedules(sizes, FOLDER / "schedules")))


@app.command()
def pending(count: Count = 1_000_000) -> None:
    """Jobs that wait: time to ready, memory, and what it costs to take from them."""
    measured = partial(measure_pending, count, FOLDER / "pending")
    run_bench("pending", lambda: {f"{count:,} pending": run_in_foreground(measured())})


@app.command()
def stalls() -> None:
    """Requests that ask for as much as they may: the longest piece of the loop's work; exit status 1 if one is too
    long, or keeps another's submit."""
    run_bench("stalls", lambda: run_in_foreground(measure_stalls(FOLDER / "stalls")))


@app.command()
def decisions(
    presets: Annotated[str, typer.Option(help="With commas; the first at all sizes, the others at 100,000.")] = (
        "balanced,fair,affinity,swimlanes"
    ),
) -> None:
    """The dispatch core alone: what a decision costs, by how many jobs wait."""
    first, *others = presets.split(",")
    cases = measure_decisions(first, SIZES)
    for preset in others:
        cases |= measure_decisions(preset, SIZES[1:2])
    run_bench("decisions", lambda: cases)


@app.command()
def flood() -> None:
    """One tenant floods: how long another one's jobs wait, and the replica's memory."""
    _run("flood", {f"{FLOOD_TIMES} times the capacity": (Crew(1, 1, FLOOD_SLOTS), measure_flood)})


@app.command()
def overload() -> None:
    """Several times what the system can do: what still gets done, how long the accepted wait, who is refused."""
    cases = {
        f"{OVERLOAD_TIMES} times the best, {_in_batches(size)}": (CREW, partial(measure_overload, batch=size))
        for size in (1, 100)
    }
    _run("overload", cases)


@app.command("slot-moves")
def slot_moves(
    *,
    schedules: Annotated[int, typer.Option(min=10, help="Of the tenant.")] = 100,
    slots: Slots = 128,
    moves: Annotated[int, typer.Option(min=1, help="How often its partition moves to another shard.")] = 4,
) -> None:
    """How long nothing of a tenant starts while its partition moves, and whether anything is missed."""
    run_bench("slot-moves", lambda: measure_slot_moves(schedules, slots, moves))


@app.command()
def all(only: Annotated[str, typer.Option(help="Some of them, with commas.")] = "") -> None:
    """Every benchmark but the soak, each a process of its own: what one leaves behind or breaks is not the next's."""
    failed = []
    for name in chosen(only):
        began = time.monotonic()
        status = subprocess.run([sys.executable, "-m", "tests.bench", name, *SUITE[name]], check=False).returncode
        typer.echo(f"{name}: {'done' if status == 0 else 'FAILED'}, {time.monotonic() - began:.0f} s", err=True)
        failed += [name] if status else []
    if failed:
        raise WorldError(f"without figures: {', '.join(failed)}")


def chosen(only: str) -> list[str]:
    """In the order of the suite; "" is all of it."""
    names = [name.strip() for name in only.split(",")] if only else list(SUITE)
    unknown = [name for name in names if name not in SUITE]
    if unknown:
        raise InvalidInput(("--only",), f"there is no benchmark {unknown[0]!r}", f"some of {', '.join(SUITE)}")
    return [name for name in SUITE if name in names]


def read_numbers(option: str, text: str) -> list[int]:
    """``text`` is whole numbers from 1 with commas between; else `InvalidInput`."""
    numbers = [int(part) for part in text.replace("_", "").split(",") if part.strip().isdecimal()]
    if len(numbers) != text.count(",") + 1 or min(numbers) < 1:
        raise InvalidInput((option,), f"{text[:64]!r}", "whole numbers from 1, with commas between")
    return numbers


def _in_batches(size: int) -> str:
    return "one by one" if size == 1 else f"batches of {size:,}"


def _run(name: str, cases: Mapping[str, tuple[Crew, Callable[[Stack], Awaitable[Figures]]]], runs: int = 1) -> None:
    """Each case by its label, on a stack of its own."""
    run_bench(name, lambda: {label: on_stack(name, crew, measure) for label, (crew, measure) in cases.items()}, runs)


def main() -> None:
    """Exit status: 2 the caller's fault, 1 the world's, 130 Ctrl-C; each of those is one line on standard error."""
    try:
        app(prog_name="python -m tests.bench")
    except KeyboardInterrupt:
        sys.exit(130)
    except (CallerError, WorldError) as error:
        sys.stderr.write(f"bench: {' '.join(str(error).split())}\n")
        sys.exit(2 if isinstance(error, CallerError) else 1)


if __name__ == "__main__":
    main()
