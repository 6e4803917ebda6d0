"""Clusters in trouble, by seed: nothing that was promised is broken. ``make cluster-sim`` runs more of them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster_simulation.mutants import PLANTED
from tests.tiers import TIER, in_tier
from tests.unit.cluster_simulation.simulating import ENVIRONMENT, simulate

FIRST = str(in_tier(check=12, test=1))
"""Seed 0 has little trouble; 12 is a short story with three terms."""
SEEDS = in_tier(check=1, test=24, long=100)
"""``make cluster-sim SEEDS=10000`` for a night."""
TROUBLES = sorted({planted.faults for planted in PLANTED.values()})
_ROOT = Path(__file__).parents[3]


def tell(seed: str) -> subprocess.CompletedProcess[str]:
    """In an interpreter of its own: in two that begin as one does, too much would be the same."""
    command = [sys.executable, "-m", "tests.cluster_simulation", "--seed", seed]
    return subprocess.run(command, cwd=_ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)


@pytest.mark.timeout(1_200)
def test_no_promise_is_broken_whatever_goes_wrong() -> None:
    run = simulate("--first", FIRST, "--seeds", str(SEEDS))
    assert run.returncode == 0, run.stdout + run.stderr
    figures = re.search(r"(\d+) obligations, (\d+) effects, (\d+) terms", run.stdout)
    assert figures is not None, run.stdout
    obligations, effects, terms = map(int, figures.groups())
    # There was work, it ran, and there was trouble.
    assert obligations > 100 * SEEDS
    assert effects > 100 * SEEDS
    assert terms > 2 * SEEDS


@pytest.mark.slow
def test_a_seed_tells_the_same_story_again_and_another_one_another() -> None:
    first, again, other = map(tell, ("7", "7", "8"))
    assert first.stdout.count("\n") > 500
    assert first.stdout == again.stdout != other.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", TROUBLES if TIER == "long" else TROUBLES[::4])
def test_without_the_bug_the_same_troubles_do_no_harm(name: tuple[str, ...]) -> None:
    run = simulate("--seeds", str(in_tier(check=1, test=1, long=2)), "--faults", ",".join(name))
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(("options", "fault"), [([], "meteor"), (["--shards"], "drop_collection")])
def test_a_fault_that_is_none_is_told(options: list[str], fault: str) -> None:
    run = simulate(*options, "--faults", fault)
    assert run.returncode == 2
    assert f"unknown faults {fault}" in run.stderr
