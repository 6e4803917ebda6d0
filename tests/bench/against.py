"""How much better than a release before: the same benchmarks on its code and on this code, in turn, in one session.

The measuring code is this one's in both cases; only the replicas and processors are of the release (`code_settings`),
taken from git. Machines differ by twice and more, so what is told is a ratio of medians; the goals are ratios too.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hascheduler.errors import InvalidInput, WorldError
from tests.bench.figures import Figures, summarize
from tests.bench.results import Measured, Results, add_results
from tests.earlier_code import unpack

CODE = "BENCH_CODE"
"""The environment variable that names a folder with the packages that replicas and processors run; unset: these."""
COMMITS: Mapping[str, Sequence[str]] = {"0.2.0": ("v0.2.0", "f684198")}
"""By release: its tag, and where tags were not fetched the commit that it names."""
RELEASE = "0.2.0"
ROUNDS = 3
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of one case of a benchmark. ``goal`` is the ratio to aim at, now to then: at most it, or, where more
    is better, at least it; None: no slower than before."""

    bench: str
    case: str
    figure: str
    what: str
    goal: float | None = None
    more_is_better: bool = False


RUN: Mapping[str, Sequence[str]] = {
    "cost": ("--no-parts", "--loads", "50,200,1000/500"),
    "latency": ("--rates", "50,200"),
    "throughput": ("--replicas", "3", "--processors", "4"),
    "fires": ("--schedules", "1000"),
    "storm": (),
    "failover": ("--kills", "20", "--terminations", "0"),
    "idle": (),
    "schedules": ("--counts", "1000000", "--changes", "20"),
    "pending": ("--count", "300000"),
}
"""What is run of each benchmark, with its arguments."""

COMPARED = (
    Compared("cost", "50 jobs/s", "cpu_ms_per_job", "CPU of a job at 50/s, ms", 0.45),
    Compared("cost", "200 jobs/s", "cpu_ms_per_job", "CPU of a job at 200/s, ms", 0.5),
    Compared("cost", "1,000 jobs/s in batches of 500", "cpu_ms_per_job", "CPU of a job in batches, ms", 0.6),
    Compared("cost", "50 jobs/s", "mongodb_ops_per_job", "operations of MongoDB a job at 50/s"),
    Compared("latency", "50 jobs/s", "start_p50_ms", "submit to start at 50/s, p50, ms", 0.7),
    Compared("latency", "50 jobs/s", "start_p99_ms", "submit to start at 50/s, p99, ms", 0.7),
    Compared("latency", "200 jobs/s", "start_p50_ms", "submit to start at 200/s, p50, ms", 0.4),
    Compared("latency", "200 jobs/s", "start_p99_ms", "submit to start at 200/s, p99, ms", 0.4),
    Compared(
        "throughput", "3 replicas, 4 processors, one by one", "jobs_per_s", "jobs a second, one by one", None, True
    ),
    Compared(
        "throughput", "3 replicas, 4 processors, batches of 500", "jobs_per_s", "jobs a second, in batches", None, True
    ),
    Compared("fires", "1,000 schedules", "lag_p99_ms", "1,000 fires a second, lag p99, ms", 0.5),
    Compared("storm", "10,000 at once", "last_started_ms", "10,000 at once, the last start, ms", 0.6),
    Compared("failover", "SIGKILL", "dispatch_p50_ms", "SIGKILL to the next dispatch, p50, ms", 1.0),
    Compared("failover", "SIGKILL", "dispatch_p99_ms", "SIGKILL to the next dispatch, p99, ms", 1.0),
    Compared("failover", "SIGSTOP", "dispatch_max_ms", "SIGSTOP to the next dispatch, ms", 0.26),
    Compared("idle", "leader", "cpu_percent", "a leader with nothing to do, % of a core", 0.63),
    Compared("idle", "leader", "resident_mb", "a leader with nothing to do, MB", 0.87),
    Compared("schedules", "1,000,000 schedules", "ready_s", "1,000,000 schedules: ready, s", 0.5),
    Compared("schedules", "1,000,000 schedules", "resident_mb", "1,000,000 schedules, MB", 0.69),
    # With 1,000,000 that release is never ready on a slow machine.
    Compared("pending", "300,000 pending", "ready_s", "300,000 pending jobs: ready, s", 0.5),
    Compared("pending", "300,000 pending", "resident_mb", "300,000 pending jobs, MB", 0.63),
)


def code_settings() -> dict[str, str]:
    """The environment of processes that run the code that `CODE` names; empty where they run this tree's."""
    code = os.environ.get(CODE)
    # The handlers of the benchmarks are found in this tree, which has packages of the same names: it comes second, and
    # the folder in which a process starts, which is this tree too, is not looked at before both.
    return {"PYTHONPATH": os.pathsep.join((code, str(_ROOT))), "PYTHONSAFEPATH": "1"} if code else {}


def results_of(release: str, folder: Path) -> Path:
    """Where the results of that release are kept, beside this code's; ``this`` is this code in the same session."""
    return folder / f"results-{release}.json"


def read_benches(only: str) -> list[str]:
    """In the order of `RUN`; "" is all of it. `InvalidInput` for a name that is not compared."""
    names = [name.strip() for name in only.split(",")] if only else list(RUN)
    unknown = [name for name in names if name not in RUN]
    if unknown:
        raise InvalidInput(("--only",), f"{unknown[0]!r} is not compared", f"some of {', '.join(RUN)}")
    return [name for name in RUN if name in names]


def released(release: str, folder: Path) -> Path:
    """A folder with that release's packages. `WorldError` where git does not have it."""
    code = folder.absolute() / "releases" / release
    if not unpack(code, *COMMITS[release]):
        raise WorldError(f"git has neither of {' and '.join(COMMITS[release])} here")
    return code


def compare(names: Sequence[str], release: str, rounds: int, folder: Path, console: Console) -> None:
    """Run those benchmarks, and keep what they come to beside the results of this code alone."""
    code = released(release, folder)
    for name in names:
        found: dict[str, list[Mapping[str, Figures]]] = {release: [], "this": []}
        for number in range(1, rounds + 1):
            for label, environment in ((release, {CODE: str(code)}), ("this", {})):
                console.print(f"{name}, round {number} of {rounds}: {label}")
                found[label].append(_run(name, environment))
        for label, runs in found.items():
            add_results(name, dict(_cases(name, runs)), results_of(label, folder))


def _run(name: str, environment: Mapping[str, str]) -> Mapping[str, Figures]:
    command = [sys.executable, "-m", "tests.bench", name, *RUN[name]]
    ran = subprocess.run(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=False, cwd=_ROOT
    )
    if ran.returncode:
        raise WorldError(f"{name} failed, status {ran.returncode}")
    found: Mapping[str, Figures] = json.loads(ran.stdout.splitlines()[-1])[name]
    return found


def _cases(name: str, runs: Sequence[Mapping[str, Figures]]) -> Iterator[tuple[str, Measured]]:
    command, load_1m = f"python -m tests.bench {' '.join((name, *RUN[name]))}", round(os.getloadavg()[0], 2)
    for label in runs[0]:
        yield label, Measured.of(summarize([run[label] for run in runs]), command, len(runs), load_1m)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``before`` and ``now`` are medians of ``rounds`` rounds each."""

    compared: Compared
    before: float
    now: float
    rounds: int

    @property
    def ratio(self) -> float:
        return round(self.now / self.before, 2) if self.before else 0.0

    @property
    def at_goal(self) -> float | None:
        """What the figure would be if the goal were just reached; three digits, or all of a whole number's."""
        if self.compared.goal is None:
            return None
        figure = self.compared.goal * self.before
        return round(figure) if figure >= 100 else float(f"{figure:.3g}")

    @property
    def goal(self) -> str:
        if self.compared.goal is None:
            return ""
        return f"{'≥' if self.compared.more_is_better else '≤'} {self.compared.goal:g}"

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        return self.compared.what, f"{self.before:,}", f"{self.now:,}", f"{self.ratio:g}", self.goal


def comparisons(before: Results, now: Results) -> list[Comparison]:
    """Those that both have, in the order of `COMPARED`."""
    found = []
    for each in COMPARED:
        both = [results.benches.get(each.bench, {}).get(each.case) for results in (before, now)]
        then, today = (None if case is None else case.figures.get(each.figure) for case in both)
        if then is not None and today is not None and both[1] is not None:
            found.append(Comparison(each, then, today, both[1].runs))
    return found


def tabulate_comparisons(found: Sequence[Comparison], release: str) -> Table:
    table = Table("figure")
    for title in (release, "this code", "ratio", "goal"):
        table.add_column(title, justify="right")
    for each in found:
        table.add_row(*each.cells)
    return table


def comparison_lines(found: Sequence[Comparison], release: str, machine: Mapping[str, Any]) -> list[str]:
    """In Markdown; nothing where nothing was compared."""
    if not found:
        return []
    rounds = sorted({each.rounds for each in found})
    how_often = f"{rounds[0]}" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
    return [
        f"## Beside release {release}",
        "",
        f"Both in turn in one session on {machine['cores']} cores with Python {machine['python']}; rounds of"
        f" each: {how_often}, and their medians; `python -m tests.bench against`. A ratio is now to then.",
        "",
        f"| figure | {release} | this code | ratio | goal |",
        "|---|---:|---:|---:|---:|",
        *(f"| {' | '.join(each.cells)} |" for each in found),
    ]
