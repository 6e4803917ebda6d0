"""Reads what a sampled process has written, from one end of its files to the next: a phase of it."""

import json
import os
import re
import shutil
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.bench.ledger.parts import Frame, Share, share_of
from tests.bench.sampled.sitecustomize import FOLDER, HEAD, TURNS

_ROOT = Path(__file__).parents[3]
_COMPILED = _ROOT / "build" / "compiled"
_FRAME = re.compile(r'  File "(?P<path>.*)", line \S+ in (?P<function>.*)')


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a process's files ended at one instant."""

    at: float
    stacks_bytes: int


@dataclass(frozen=True, slots=True)
class Phase:
    """``turns`` of the event loop; ``cost_s`` is what the sampling itself took, in CPU."""

    shares: Counter[Share]
    turns: float
    cost_s: float


def sampling(folder: Path) -> dict[str, str]:
    """The environment of processes that are to be sampled, from their start. ``folder`` is emptied for their files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = [str(_ROOT / "tests" / "bench" / "sampled"), os.environ.get("PYTHONPATH", "")]
    return {FOLDER: str(folder.absolute()), "PYTHONPATH": os.pathsep.join(filter(None, paths))}


class SampledProcess:
    """The files of one process."""

    def __init__(self, folder: Path, pid: int) -> None:
        self._stacks, self._turns, self._price = (folder / f"{pid}.{suffix}" for suffix in ("stacks", "turns", "price"))

    def mark(self) -> Mark:
        return Mark(time.monotonic(), self._stacks.stat().st_size)

    def between(self, begin: Mark, end: Mark) -> Phase:
        """What was added. A stack that is cut by either end counts at most once."""
        with self._stacks.open("rb") as file:
            file.seek(begin.stacks_bytes)
            text = file.read(end.stacks_bytes - begin.stacks_bytes).decode(errors="replace")
        stacks = list(read_stacks(text))
        price = json.loads(self._price.read_text())
        cost_us = len(stacks) * price["sample_us"] + sum(map(len, stacks)) * price["frame_us"]
        return Phase(Counter(map(share_of, stacks)), self._turned(begin.at, end.at), cost_us / 1e6)

    def _turned(self, begin: float, end: float) -> float:
        """As fast as between the first and the last count in that span; 0 where there are less than two."""
        if not self._turns.exists():
            return 0.0
        read = self._turns.read_bytes()
        counts = list(TURNS.iter_unpack(read[: len(read) // TURNS.size * TURNS.size]))
        inside = [(at, turns) for at, turns in counts if begin <= at <= end]
        if len(inside) < 2:
            return 0.0
        (first_at, first), (last_at, last) = inside[0], inside[-1]
        return float((last - first) / (last_at - first_at) * (end - begin))


def read_stacks(text: str) -> Iterator[list[Frame]]:
    """As a sampled process writes them, the innermost frame first. What stands before the first head is left out."""
    _, *stacks = text.split(HEAD)
    for stack in stacks:
        yield [
            Frame(module_of(found["path"]), found["function"])
            for line in stack.splitlines()
            if (found := _FRAME.fullmatch(line))
        ]


@cache
def module_of(path: str) -> str:
    """Of this tree, of what is installed, and of the standard library; else "" (generated code, for one)."""
    file = Path(path)
    folders = sysconfig.get_paths()
    # The narrower folder first: installed packages lie below the standard library, compiled ones within this tree.
    installed = (folders["purelib"], folders["platlib"], folders["stdlib"])
    for folder in (*installed, _COMPILED, _ROOT):
        if file.is_relative_to(folder):
            names = file.relative_to(folder).with_suffix("").parts
            return ".".join(names[:-1] if names[-1] == "__init__" else names)
    return ""
