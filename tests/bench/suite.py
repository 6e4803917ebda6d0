"""All benchmarks one after the other, each a process of its own: what one leaves behind or breaks is not the next's."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from hascheduler.errors import InvalidInput

SUITE: Mapping[str, Sequence[str]] = {
    "throughput": ("--runs", "3"),
    "latency": (),
    "fires": (),
    "storm": (),
    "failover": (),
    "cost": (),
    "idle": (),
    "flood": (),
    "overload": (),
    "shards": ("--runs", "3"),
    "slot-moves": (),
    "shards-memory": (),
    "schedules": (),
    "pending": (),
    "stalls": (),
    "finished": (),
    "decisions": (),
}
"""By name, with what is given to each: the whole takes some three quarters of an hour on two cores."""


def chosen(only: str) -> list[str]:
    """In the order of the suite; "" is all of it."""
    names = [name.strip() for name in only.split(",")] if only else list(SUITE)
    unknown = [name for name in names if name not in SUITE]
    if unknown:
        raise InvalidInput(("--only",), f"there is no benchmark {unknown[0]!r}", f"some of {', '.join(SUITE)}")
    return [name for name in SUITE if name in names]


def run_suite(names: Sequence[str]) -> list[str]:
    """The names of those that failed; what each says goes to standard error, its JSON to standard output where that is
    no terminal."""
    failed: list[str] = []
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=len(names))
        for name in names:
            progress.update(bar, description=name)
            began = time.monotonic()
            status = _run(name, progress.console)
            said = f"{name}: {'done' if status == 0 else f'FAILED, status {status}'}, {time.monotonic() - began:.0f} s"
            progress.console.print(Text(said, style="green" if status == 0 else "bold red"))
            if status:
                failed.append(name)
            progress.advance(bar)
    return failed


def _run(name: str, console: Console) -> int:
    command = [sys.executable, "-m", "tests.bench", name, *SUITE[name]]
    environment = {**os.environ, "COLUMNS": str(console.width)}
    stdout = subprocess.DEVNULL if sys.stdout.isatty() else None
    with subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        for line in process.stderr:
            console.print(Text.from_ansi(line.rstrip("\n")))
    return process.returncode
