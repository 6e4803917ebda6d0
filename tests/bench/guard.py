"""Whether a job costs more than it did: CPU of the same work under this code and under that of an earlier commit.

Both run in turn in the same minute, so a machine that is slower, or busy with something else, is so for both, and what
is judged is a ratio. Of each the cheapest round counts: what disturbs a round only adds to it. The work has no servers
(see `tests.bench.guarded_work`): it does not show what the driver, MongoDB and the broker spend, as
``python -m tests.bench cost`` does.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hascheduler.errors import WorldError
from tests.bench.stacks import FOLDER
from tests.earlier_code import unpack

REFERENCE = "9bcba57"
"""The commit that this code is compared with. A change that makes jobs cheaper for good moves it on."""
RATIO_MAX = 1.2
ROUNDS = 5
_TRIES = 3
"""Where it costs more, it does so in each; the rounds of all count."""
_ROUND_S = 120
_ROOT = Path(__file__).resolve().parents[2]
_WORK = Path(__file__).with_name("guarded_work.py")

Costs = Mapping[str, float]
"""CPU in ms by what was done."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """What each round cost."""

    now: Sequence[Costs]
    reference: Sequence[Costs]

    def ratios(self) -> dict[str, float]:
        """By what was done: the least that it cost now to the least that it cost at the reference."""
        return {what: round(_least(self.now, what) / _least(self.reference, what), 3) for what in self.reference[0]}

    @property
    def dearer(self) -> dict[str, float]:
        """The ratios that are too high."""
        return {what: ratio for what, ratio in self.ratios().items() if ratio > RATIO_MAX}


def measure_guard(console: Console, *, rounds: int = ROUNDS, reference: str = REFERENCE) -> Guarded:
    """The costs under both; measured again where this code's are too high."""
    now: list[Costs] = []
    before: list[Costs] = []
    released = _released(reference)
    for _ in range(_TRIES):
        for _ in range(rounds):
            before.append(_round(console, reference, released))
            now.append(_round(console, "this code", _ROOT))
        if not Guarded(now, before).dearer:
            break
    return Guarded(now, before)


def _least(rounds: Sequence[Costs], what: str) -> float:
    return min(costs[what] for costs in rounds)


def _released(commit: str) -> Path:
    """A folder with the code of that commit. `WorldError` where git does not have it."""
    folder = FOLDER.absolute() / "guard" / commit
    if not unpack(folder, commit):
        raise WorldError(f"git has no commit {commit} here; name another with --reference")
    return folder


def _round(console: Console, label: str, code: Path) -> Costs:
    environment = {**os.environ, "PYTHONPATH": str(code), "PYTHONSAFEPATH": "1"}
    ran = subprocess.run(
        [sys.executable, str(_WORK)], env=environment, capture_output=True, text=True, check=False, timeout=_ROUND_S
    )
    if ran.returncode:
        raise WorldError(f"the work failed on {label}: {ran.stderr[-512:]}")
    costs: Costs = json.loads(ran.stdout)
    shown = ", ".join(f"{what} {cost:.2f} ms" for what, cost in costs.items())
    console.print(f"{label:<10} {shown}", highlight=False)
    return costs
