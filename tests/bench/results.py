"""What the runs of a benchmark come to: a table, and a line of JSON."""

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from hascheduler.embedded.servers import find_mongod, find_rabbitmq

Figures = Mapping[str, Any]
"""By name, units last: numbers and texts."""
Measure = Callable[[], Mapping[str, Figures]]
"""One run: the figures of each case by its label."""

WORST = frozenset({"missed", "doubled", "lost", "failed", "unstarted", "unfinished"})
"""Of these the worst run counts, not the median: what went wrong once is not outvoted by the other runs."""
_BUSY = 1.0
_ELSEWHERE = "one that the environment names"


@dataclass(frozen=True, slots=True)
class Measured:
    """One case. ``figures`` are medians over the runs, ``spread`` their least and largest."""

    figures: dict[str, Any]
    spread: dict[str, Sequence[float]]

    @classmethod
    def of(cls, runs: Sequence[Figures]) -> "Measured":
        """Texts are the last run's."""
        figures: dict[str, Any] = {}
        spread: dict[str, Sequence[float]] = {}
        for name, last in runs[-1].items():
            figures[name] = last
            if isinstance(last, int | float):
                values = [run[name] for run in runs if name in run]
                figures[name] = max(values) if name in WORST else round(median(values), 3)
                spread[name] = (min(values), max(values))
        return cls(figures, spread)

    def shown(self, name: str) -> str:
        """The median, and the least and the largest of several runs if they differ."""
        value = self.figures[name]
        text = f"{value:,}" if isinstance(value, int | float) else str(value)
        low, high = self.spread.get(name, (0, 0))
        return f"{text} ({low:,} to {high:,})" if low != high else text


def run_bench(name: str, measure: Measure, runs: int = 1) -> None:
    """All cases are run before any is run again, so a machine that slows down does so for all of them."""
    console, load_1m = Console(stderr=True), os.getloadavg()[0]
    if load_1m > _BUSY:
        console.print(f"[yellow]the machine is busy (load {load_1m:.1f}): these are not its best figures")
    found: dict[str, list[Figures]] = {}
    for number in range(1, runs + 1):
        if runs > 1:
            console.print(f"{name}, run {number} of {runs}")
        for label, figures in measure().items():
            found.setdefault(label, []).append(figures)
    command = f"python -m tests.bench {shlex.join(sys.argv[1:])}"
    cases = {label: Measured.of(each) for label, each in found.items()}
    machine = ", ".join(f"{part} {value}" for part, value in describe_machine().items())
    console.print(f"{name}: {command}\n{machine}", highlight=False, soft_wrap=True)
    console.print(table(cases))
    sys.stdout.write(json.dumps({name: {label: case.figures for label, case in cases.items()}}) + "\n")


def table(cases: Mapping[str, Measured]) -> Table:
    """A row for each figure of each case."""
    drawn = Table("case", "figure", "value")
    for label, case in cases.items():
        for number, name in enumerate(case.figures):
            drawn.add_row("" if number else label, name, case.shown(name))
        drawn.add_section()
    return drawn


def describe_machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "mongodb": _mongodb(),
        "rabbitmq": _rabbitmq(),
    }


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _mongodb() -> str:
    if os.environ.get("HASCHEDULER_MONGODB_URI"):
        return _ELSEWHERE
    done = subprocess.run([find_mongod(), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0].removeprefix("db version v")


def _rabbitmq() -> str:
    """Debian's package has its version in the name of a folder."""
    if os.environ.get("HASCHEDULER_AMQP_URL"):
        return _ELSEWHERE
    server = find_rabbitmq()
    folders = [] if server is None else sorted(Path(server).parents[1].glob("lib/rabbitmq_server-*"))
    return folders[-1].name.rpartition("-")[2] if folders else "unknown"
