"""Runs a benchmark so many times; shows, prints and keeps what it comes to."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from tests.bench.against import CODE
from tests.bench.figures import Figures, summarize
from tests.bench.results import Measured, add_results

_BUSY = 1.0

Measure = Callable[[], Mapping[str, Figures]]
"""One run: the figures of each case by its label."""


def run_bench(name: str, measure: Measure, runs: int = 1, *, quiet: bool = False) -> None:
    """All cases are run before any is run again, so that a machine that grows slower does so for all of them.

    A ``quiet`` one shows and prints nothing of what it has found: its caller does. What another release's code gives is
    not kept here: `tests.bench.against` keeps it.
    """
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
    cases = {
        label: Measured.of(summarize(each), command, len(each), round(load_1m, 2)) for label, each in found.items()
    }
    if not quiet:
        console.print(f"{name}: {command}", highlight=False, soft_wrap=True)
        console.print(tabulate(cases))
        sys.stdout.write(json.dumps({name: {label: case.figures for label, case in cases.items()}}) + "\n")
    if CODE not in os.environ:
        add_results(name, cases)


def tabulate(cases: Mapping[str, Measured]) -> Table:
    """A column a case; with several runs the least and the largest beside each median."""
    table = Table()
    table.add_column("figure")
    for label in cases:
        table.add_column(label, justify="right", overflow="fold")
    for figure in _names(list(cases.values())):
        table.add_row(figure, *(_cell(case, figure) for case in cases.values()))
    return table


def _names(cases: Sequence[Measured]) -> list[str]:
    return list(dict.fromkeys(name for case in cases for name in case.figures))


def _cell(case: Measured, name: str) -> str:
    value = case.figures.get(name, "")
    low, high = case.spread.get(name, (value, value))
    shown = f"{value:,}" if isinstance(value, int | float) else str(value)
    return f"{shown} ({low:,} to {high:,})" if case.runs > 1 and low != high else shown
