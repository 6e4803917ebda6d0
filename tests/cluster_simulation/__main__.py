"""``python -m tests.cluster_simulation``: run seeds, say which of them went wrong, replay one with its transcript."""

import argparse
import multiprocessing
import os
import sys
import time

from hascheduler.gc_tuning import collect_seldom
from tests.cluster_simulation.faults import FAULTS
from tests.cluster_simulation.mutants import PLANTED
from tests.cluster_simulation.run import Result, run_seed

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
    unknown = sorted(set(faults) - set(FAULTS))
    if unknown:
        sys.stderr.write(f"unknown faults {', '.join(unknown)}; there are {', '.join(sorted(FAULTS))}\n")
        return 2
    if options.planted:
        return _run_planted(options.planted.split(",") if options.planted != "all" else list(PLANTED), options.jobs)
    if options.seed is not None:
        result = run_seed(options.seed, faults)
        sys.stdout.write("\n".join(result.transcript) + "\n")
        _tell(result)
        _tell_figures(result.obligations, result.effects, result.terms, result.needless)
        return 1 if result.violations else 0
    return _run_many(range(options.first, options.first + options.seeds), faults, options.jobs)


def _run_many(seeds: range, faults: tuple[str, ...], jobs: int) -> int:
    began = time.monotonic()
    failed: list[int] = []
    obligations = terms = effects = needless = 0
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=_SEEDS_PER_PROCESS) as pool:
        for done, result in enumerate(pool.imap_unordered(_Run(faults), seeds), 1):
            obligations += result.obligations
            terms += result.terms
            effects += result.effects
            needless += result.needless
            if result.violations:
                failed.append(result.seed)
                _tell(result)
            if done % 25 == 0 or done == len(seeds):
                sys.stdout.write(
                    f"{done} of {len(seeds)} seeds, {len(failed)} failed, {time.monotonic() - began:.0f} s\n"
                )
                sys.stdout.flush()
    _tell_figures(obligations, effects, terms, needless)
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
        if name not in PLANTED:
            sys.stderr.write(f"unknown bug {name}; there are {', '.join(PLANTED)}\n")
            return 2
        planted = PLANTED[name]
        with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=_SEEDS_PER_PROCESS) as pool:
            runs = pool.imap(_Run(planted.faults, name), range(planted.first, planted.first + planted.seeds))
            red = next((result for result in runs if result.violations), None)
        if red is None:
            unnoticed.append(name)
        shown = "NOT NOTICED" if red is None else f"seed {red.seed}: {', '.join(red.violations)}"
        sys.stdout.write(f"{name:36} {shown}\n")
        sys.stdout.flush()
    return 1 if unnoticed else 0


class _Run:
    def __init__(self, faults: tuple[str, ...], planted: str = "") -> None:
        self._faults = faults
        self._planted = planted

    def __call__(self, seed: int) -> Result:
        result = run_seed(seed, self._faults, PLANTED[self._planted].bugs if self._planted else None)
        result.transcript = [result.digest]
        return result


def _tell(result: Result) -> None:
    for checker, found in result.violations.items():
        for text in found[:5]:
            sys.stdout.write(f"seed {result.seed}: {checker}: {text}\n")
        if len(found) > 5:
            sys.stdout.write(f"seed {result.seed}: {checker}: … and {len(found) - 5} more\n")


def _tell_figures(obligations: int, effects: int, terms: int, needless: int) -> None:
    sys.stdout.write(
        f"{obligations} obligations, {effects} effects, {terms} terms, {needless} leaders followed needlessly\n"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster_simulation", description="Simulate clusters in trouble, by seed."
    )
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="replay this one, with its transcript")
    parser.add_argument("--faults", default="", help="only these, with commas")
    parser.add_argument("--planted", default="", help="run these planted bugs instead, with commas, or all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
