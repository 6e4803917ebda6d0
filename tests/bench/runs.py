"""Runs a benchmark so many times; shows, prints and keeps what it comes to."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from rich.console import Console
from rich.table import Table

from tests.bench.figures import Figures, summarize
from tests.bench.results import Measured, add_results

_BUSY = 1.0
_COLUMNS_MAX = 5

Measure = Callable[[], Mapping[str, Figures]]
"""One run: the figures of each case by its label."""


def run_bench(name: str, measure: Measure, runs: int = 1) -> None:
    """All cases are run before any is run again, so that a machine that grows slower does so for all of them."""
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
    console.print(f"{name}: {command}", highlight=False, soft_wrap=True)
    console.print(*tables(cases), sep="\n")
    sys.stdout.write(json.dumps({name: {label: case.figures for label, case in cases.items()}}) + "\n")
    add_results(name, cases)


def tables(cases: Mapping[str, Measured]) -> Iterator[Table]:
    """A column a case; where there are too many for a terminal, a row a case, and a table for each set of figures. With
    several runs the least and the largest stand beside each median."""
    if len(cases) <= _COLUMNS_MAX:
        names = dict.fromkeys(name for case in cases.values() for name in case.figures)
        yield _table("figure", names, cases, lambda name, label: _cell(cases[label], name))
        return
    alike: dict[tuple[str, ...], list[str]] = {}
    for label, case in cases.items():
        alike.setdefault(tuple(case.figures), []).append(label)
    for figures, labels in alike.items():
        yield _table("case", labels, figures, lambda label, name: _cell(cases[label], name))


def _table(head: str, rows: Iterable[str], columns: Iterable[str], cell: Callable[[str, str], str]) -> Table:
    table, columns = Table(), list(columns)
    table.add_column(head)
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    for row in rows:
        table.add_row(row, *(cell(row, column) for column in columns))
    return table


def _cell(case: Measured, name: str) -> str:
    value = case.figures.get(name, "")
    low, high = case.spread.get(name, (value, value))
    shown = f"{value:,}" if isinstance(value, int | float) else str(value)
    return f"{shown} ({low:,} to {high:,})" if case.runs > 1 and low != high else shown
