"""All that was measured on this machine, in one file: the latest of each case of each benchmark."""

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hascheduler.errors import InvalidInput
from tests.bench.figures import Summary
from tests.bench.machine import describe_machine

RESULTS = Path(".run/bench/results.json")


@dataclass(frozen=True, slots=True)
class Measured:
    """One case of a benchmark. ``load_1m`` is how busy the machine was when it began."""

    date: str
    command: str
    runs: int
    load_1m: float
    figures: dict[str, Any]
    spread: dict[str, tuple[float, float]]
    samples: dict[str, list[int]]

    @classmethod
    def of(cls, summary: Summary, command: str, runs: int, load_1m: float) -> "Measured":
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        return cls(date, command, runs, load_1m, summary.figures, summary.spread, summary.samples)


@dataclass(frozen=True, slots=True)
class Results:
    """``benches`` has the cases of each benchmark by their labels."""

    machine: dict[str, Any]
    benches: dict[str, dict[str, Measured]]


def add_results(bench: str, cases: dict[str, Measured], path: Path = RESULTS) -> None:
    """In place of older ones of the same cases; those of another machine go."""
    machine = describe_machine()
    known = read_results(path) if path.exists() else Results(machine, {})
    benches = dict(known.benches) if known.machine == machine else {}
    benches[bench] = benches.get(bench, {}) | cases
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({"machine": machine, "benches": benches}, default=_fields, indent=1) + "\n")
    os.replace(beside, path)


def read_results(path: Path = RESULTS) -> Results:
    """`InvalidInput` where there is no such file, or it is none of these."""
    try:
        read = json.loads(path.read_text())
        benches = {
            bench: {label: Measured(**measured) for label, measured in cases.items()}
            for bench, cases in read["benches"].items()
        }
        return Results(read["machine"], benches)
    except FileNotFoundError:
        raise InvalidInput((str(path),), "there is no such file", "what `make bench` writes") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput((str(path),), f"no results: {error}", "what `make bench` writes") from None


def _fields(measured: Measured) -> dict[str, Any]:
    return {name: getattr(measured, name) for name in Measured.__slots__}
