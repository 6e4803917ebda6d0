"""``python -m tests.cluster_simulation``: run seeds, say which of them went wrong, replay one with its transcript."""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from hascheduler.gc_tuning import collect_seldom
from tests.cluster_simulation.faults import FAULTS
from tests.cluster_simulation.following import FOLLOWING_TROUBLES, run_following
from tests.cluster_simulation.mutants import PLANTED, Planted
from tests.cluster_simulation.run import Result, run_seed
from tests.cluster_simulation.shard_mutants import PLANTED_IN_FOLLOWING, PLANTED_IN_SHARDS
from tests.cluster_simulation.shards import TROUBLES, run_shards


class _Story(NamedTuple):
    """How a seed is told, the faults that there are in it, and the bugs that are planted in it."""

    run: Callable[..., Result]
    faults: Collection[str]
    planted: Mapping[str, Planted]


_STORIES = {
    "": _Story(run_seed, FAULTS, PLANTED),
    "shards": _Story(run_shards, TROUBLES, PLANTED_IN_SHARDS),
    "following": _Story(run_following, FOLLOWING_TROUBLES, PLANTED_IN_FOLLOWING),
}
"""By their options; of one cluster without. The last that is asked for is told."""
_PLANTED = {name: planted for story in _STORIES.values() for name, planted in story.planted.items()}
_SEEDS_PER_PROCESS = 10
"""A run leaves its dead processes' tasks behind, on purpose; they go with the worker."""


def main() -> int:
    options = _options()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets of texts are gone through in the order of their hashes.
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.cluster_simulation", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    collect_seldom()
    faults = tuple(options.faults.split(",")) if options.faults else ()
    story = _story(options)
    known = _STORIES[story].faults
    unknown = sorted(set(faults) - set(known))
    if unknown:
        sys.stderr.write(f"unknown faults {', '.join(unknown)}; there are {', '.join(sorted(known))}\n")
        return 2
    if options.planted:
        return _run_planted(options.planted.split(",") if options.planted != "all" else list(_PLANTED), options.jobs)
    if options.seed is not None:
        result = _Run(faults, story, is_whole=True)(options.seed)
        sys.stdout.write("\n".join(result.transcript) + "\n")
        _tell(result)
        _tell_figures([result])
        return 1 if result.violations else 0
    run = _Run(faults, story)
    return _run_many(range(options.first, options.first + options.seeds), run, options.jobs)


def _run_many(seeds: range, run: "_Run", jobs: int) -> int:
    began = time.monotonic()
    failed: list[int] = []
    results: list[Result] = []
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=_SEEDS_PER_PROCESS) as pool:
        for done, result in enumerate(pool.imap_unordered(run, seeds), 1):
            results.append(result)
            if result.violations:
                failed.append(result.seed)
                _tell(result)
            if done % 25 == 0 or done == len(seeds):
                sys.stdout.write(
                    f"{done} of {len(seeds)} seeds, {len(failed)} failed, {time.monotonic() - began:.0f} s\n"
                )
                sys.stdout.flush()
    _tell_figures(results)
    if failed:
        sys.stdout.write(
            f"failed: {' '.join(map(str, sorted(failed)))}; "
            "replay one with: python -m tests.cluster_simulation --seed N\n"
        )
    return 1 if failed else 0


def _run_planted(names: list[str], jobs: int) -> int:
    """Each of them, until a checker goes red; one that stays green is a hole in the suite."""
    unnoticed = []
    for name in names:
        if name not in _PLANTED:
            sys.stderr.write(f"unknown bug {name}; there are {', '.join(_PLANTED)}\n")
            return 2
        planted = _PLANTED[name]
        with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=_SEEDS_PER_PROCESS) as pool:
            run = _Run(planted.faults, _story_of(name), name)
            runs = pool.imap(run, range(planted.first, planted.first + planted.seeds))
            red = next((result for result in runs if result.violations), None)
        if red is None:
            unnoticed.append(name)
        shown = "NOT NOTICED" if red is None else f"seed {red.seed}: {', '.join(red.violations)}"
        sys.stdout.write(f"{name:36} {shown}\n")
        sys.stdout.flush()
    return 1 if unnoticed else 0


class _Run:
    """One seed; its transcript goes unless the run ``is_whole``, as many of them are long."""

    def __init__(self, faults: tuple[str, ...], story: str, planted: str = "", *, is_whole: bool = False) -> None:
        self._faults = faults
        self._story = story
        self._planted = planted
        self._is_whole = is_whole

    def __call__(self, seed: int) -> Result:
        result = _STORIES[self._story].run(seed, self._faults, _PLANTED[self._planted].bugs if self._planted else None)
        if not self._is_whole:
            result.transcript = [result.digest]
        return result


def _story(options: argparse.Namespace) -> str:
    return next((story for story in reversed(_STORIES) if story and getattr(options, story)), "")


def _story_of(planted: str) -> str:
    """The one in which that bug is planted."""
    return next(name for name, story in _STORIES.items() if planted in story.planted)


def _tell(result: Result) -> None:
    for checker, found in result.violations.items():
        for text in found[:5]:
            sys.stdout.write(f"seed {result.seed}: {checker}: {text}\n")
        if len(found) > 5:
            sys.stdout.write(f"seed {result.seed}: {checker}: … and {len(found) - 5} more\n")


def _tell_figures(results: Sequence[Result]) -> None:
    figures = sum((result.figures for result in results), Counter[str]())
    sys.stdout.write(", ".join(f"{count} {what}" for what, count in figures.items()) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster_simulation", description="Simulate clusters in trouble, by seed."
    )
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="replay this one, with its transcript")
    parser.add_argument("--shards", action="store_true", help="several shards, and caps over all of them")
    parser.add_argument("--following", action="store_true", help="of the other shards two replicas host each")
    parser.add_argument("--faults", default="", help="only these, with commas")
    parser.add_argument("--planted", default="", help="run these planted bugs instead, with commas, or all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
