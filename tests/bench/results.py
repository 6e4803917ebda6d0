"""What the runs of a benchmark come to: a table, a line of JSON, and a file with the latest figures of each case."""

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from hascheduler.embedded.servers import find_mongod, find_rabbitmq
from hascheduler.errors import InvalidInput

Figures = Mapping[str, Any]
"""By name, units last: numbers and texts."""
Measure = Callable[[], Mapping[str, Figures]]
"""One run: the figures of each case by its label."""

RESULTS = Path(".run/bench/results.json")
WORST = frozenset({"missed", "doubled", "lost", "failed", "unstarted", "unfinished"})
"""Of these the worst run counts, not the median: what went wrong once is not outvoted by the other runs."""
_BUSY = 1.0
_ELSEWHERE = "one that the environment names"


@dataclass(frozen=True, slots=True)
class Measured:
    """One case. ``figures`` are medians over the runs, ``spread`` their least and largest; ``load_1m`` is how busy the
    machine was at the start."""

    date: str
    command: str
    runs: int
    load_1m: float
    figures: dict[str, Any]
    spread: dict[str, Sequence[float]]

    @classmethod
    def of(cls, runs: Sequence[Figures], command: str, load_1m: float) -> "Measured":
        """Texts are the last run's."""
        figures: dict[str, Any] = {}
        spread: dict[str, Sequence[float]] = {}
        for name, last in runs[-1].items():
            figures[name] = last
            if isinstance(last, int | float):
                values = [run[name] for run in runs if name in run]
                figures[name] = max(values) if name in WORST else round(median(values), 3)
                spread[name] = (min(values), max(values))
        return cls(datetime.now(UTC).strftime("%Y-%m-%d"), command, len(runs), round(load_1m, 2), figures, spread)

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
    cases = {label: Measured.of(each, command, load_1m) for label, each in found.items()}
    console.print(f"{name}: {command}", highlight=False, soft_wrap=True)
    console.print(table(cases))
    sys.stdout.write(json.dumps({name: {label: case.figures for label, case in cases.items()}}) + "\n")
    add_results(name, cases)


def table(cases: Mapping[str, Measured]) -> Table:
    """A row for each figure of each case."""
    drawn = Table("case", "figure", "value")
    for label, case in cases.items():
        for number, name in enumerate(case.figures):
            drawn.add_row("" if number else label, name, case.shown(name))
        drawn.add_section()
    return drawn


def add_results(bench: str, cases: Mapping[str, Measured], path: Path = RESULTS) -> None:
    """In place of older ones of the same cases; those of another machine go."""
    machine = describe_machine()
    known = read_results(path) if path.exists() else {}
    benches = known.get("benches", {}) if known.get("machine") == machine else {}
    benches[bench] = benches.get(bench, {}) | {label: asdict(case) for label, case in cases.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({"machine": machine, "benches": benches}, indent=1) + "\n")
    os.replace(beside, path)


def read_results(path: Path = RESULTS) -> dict[str, Any]:
    """Raise `InvalidInput` if there is no such file, or it holds something else."""
    try:
        read: dict[str, Any] = json.loads(path.read_text())
        for cases in read["benches"].values():
            for case in cases.values():
                Measured(**case)
    except FileNotFoundError:
        raise InvalidInput((str(path),), "there is no such file", "what `make bench` writes") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput((str(path),), f"no results: {error}", "what `make bench` writes") from None
    return read


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
    told = subprocess.run([find_mongod(), "--version"], capture_output=True, text=True, check=True).stdout
    return told.splitlines()[0].removeprefix("db version v")


def _rabbitmq() -> str:
    """Debian's package has its version in the name of a folder."""
    if os.environ.get("HASCHEDULER_AMQP_URL"):
        return _ELSEWHERE
    server = find_rabbitmq()
    folders = [] if server is None else sorted(Path(server).parents[1].glob("lib/rabbitmq_server-*"))
    return folders[-1].name.rpartition("-")[2] if folders else "unknown"


REPORTED: Mapping[str, tuple[str, ...]] = {
    "throughput": ("{jobs_per_s} jobs/s, {lost} lost, {doubled} doubled",),
    "latency": ("submit to start p50 {start_p50_ms}, p99 {start_p99_ms} ms",),
    "fires": ("{missed} missed, {doubled} doubled of {expected}; lag p50 {lag_p50_ms}, p99 {lag_p99_ms} ms",),
    "storm": ("{missed} missed, {doubled} doubled; the last after {last_started_ms} ms; {pairs_by_policy_percent} % of"
              " pairs in the order of the policy",),
    "failover": ("next dispatch after p50 {dispatch_p50_ms}, p99 {dispatch_p99_ms}, at most {dispatch_max_ms} ms of"
                 " {kills}",),
    "schedules": ("ready in {ready_s} s, {resident_mb} MB resident, {idle_cpu_percent} % of a core",),
    "pending": ("ready in {ready_s} s, {resident_mb} MB resident; {started_per_s} jobs/s, {decision_us} µs a decision;"
                " longest stall {stall_loading_ms} ms loading, {stall_dispatching_ms} ms dispatching",),
    "finished": ("get p99 {get_p99_ms}, the slowest list p99 {slowest_list_p99_ms} ms",),
    "cost": ("{cpu_ms_per_job} ms of CPU a job, {mongodb_ops_per_job} operations of MongoDB",),
    "idle": ("{cpu_percent} % of a core, {resident_mb} MB resident",),
    "flood": ("another tenant's wait p50 {quiet_flooded_p50_ms}, p99 {quiet_flooded_p99_ms} ms (alone"
              " {quiet_alone_p50_ms} and {quiet_alone_p99_ms})",),
    "overload": ("{goodput_ratio} of the best ({goodput_per_s} of {best_per_s} and {best_after_per_s} jobs/s),"
                 " {goodput_ratio_of_cpu} of what the CPU allows that the clients leave; wait p99 {wait_p99_ms} ms",),
    "slot-moves": ("nothing starts for p50 {pause_p50_ms}, at most {pause_max_ms} ms ({undisturbed_ms} without a move);"
                   " moved in p50 {moved_p50_ms} ms; {missed} missed, {doubled} doubled",),
    "shards-memory": ("{memory_mb} MB of {hosted} hosted shards; {idle_cpu_percent} % of a core",),
    "shards": (
        "CPU of a job {cpu_ratio}; replicas {replica_cpu_ratio}, processors {processor_cpu_ratio}",
        "{cpu_ms_per_job} ms of CPU a job",
        "next dispatch after p50 {dispatch_p50_ms}, p99 {dispatch_p99_ms}, at most {dispatch_max_ms} ms; handed back in"
        " p50 {returned_p50_ms}, p99 {returned_p99_ms} ms; fires of other shards p99 {others_before_p99_ms} ms before,"
        " {others_after_p99_ms} after",
    ),
    "stalls": ("longest piece {piece_cpu_ms} ms of CPU, another's submit {submit_ms} ms",),
    "decisions": ("{decision_us} µs a decision; adding a job {add_us} µs, {bytes_per_job} bytes",),
    "soak": ("{lost} lost, {doubled} doubled of {expected}, {kills} leaders killed; p99 of fires {fires_p99_ms},"
             " of jobs {jobs_p99_ms} ms, growing by {jobs_p99_slope_ms_per_minute} ms a minute",),
}  # fmt: skip
"""What is reported of each benchmark; of several texts the first whose figures a case has."""


def report(path: Path = RESULTS) -> Iterator[str]:
    """Yield the lines of a table in Markdown of what was measured last."""
    read = read_results(path)
    yield ", ".join(f"{name} {value}" for name, value in read["machine"].items())
    yield ""
    yield from ("| benchmark | case | figures | date | command |", "|---|---|---|---|---|")
    for bench, texts in REPORTED.items():
        for label, case in read["benches"].get(bench, {}).items():
            measured = Measured(**case)
            shown = {name: measured.shown(name) for name in measured.figures}
            text = next((text.format(**shown) for text in texts if _has_all(text, shown)), "")
            if text:
                yield f"| {bench} | {label} | {text} | {measured.date} | `{measured.command}` |"


def _has_all(text: str, figures: Mapping[str, str]) -> bool:
    try:
        text.format(**figures)
    except KeyError:
        return False
    return True
