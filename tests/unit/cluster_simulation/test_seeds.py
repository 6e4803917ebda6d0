"""Clusters in trouble, by seed: nothing that was promised is broken.

Each run is a process of its own, as a simulation takes logging, chance and the event loop for itself. ``make
cluster-sim`` runs more of them.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster_simulation.mutants import PLANTED
from tests.tiers import TIER, in_tier, spread
from tests.unit.cluster_simulation.simulating import ENVIRONMENT, simulate

SHORT = (("history_lost",),)
"""After each edit, of the faults that bring a planted bug to light: those whose stories are the shortest."""
SEEDS = in_tier(check=1, test=50, long=60)
"""From 1, as seed 0 has little trouble; after each edit it is the story that is told twice. ``make cluster-sim
SEEDS=10000`` for a night."""
SAME = str(in_tier(check=12, test=7))
"""12 is a short story with three terms."""
OTHER_SEEDS = spread(["8"], check=0)
"""What each tells is another story than the first."""
_ROOT = Path(__file__).parents[3]


def tell(seed: str) -> subprocess.CompletedProcess[str]:
    """In an interpreter of its own: in two that begin as one does, too much would be the same."""
    command = [sys.executable, "-m", "tests.cluster_simulation", "--seed", seed]
    return subprocess.run(command, cwd=_ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def story() -> subprocess.CompletedProcess[str]:
    return tell(SAME)


@pytest.mark.timeout(1_200)
def test_no_promise_is_broken_whatever_goes_wrong(story: subprocess.CompletedProcess[str]) -> None:
    run = story if SEEDS == 1 else simulate("--first", "1", "--seeds", str(SEEDS))
    assert run.returncode == 0, run.stdout + run.stderr
    figures = re.search(r"(\d+) obligations, (\d+) effects, (\d+) terms", run.stdout)
    assert figures is not None, run.stdout
    obligations, effects, terms = map(int, figures.groups())
    # There was work, it ran, and there was trouble.
    assert obligations > 100 * SEEDS
    assert effects > 100 * SEEDS
    assert terms > 2 * SEEDS


def test_a_seed_tells_the_same_story_again(story: subprocess.CompletedProcess[str]) -> None:
    assert story.stdout.count("\n") > 500
    assert story.stdout == tell(SAME).stdout
    for other in OTHER_SEEDS:
        assert story.stdout != tell(other).stdout


@pytest.mark.parametrize("name", sorted({planted.faults for planted in PLANTED.values()}) if TIER != "check" else SHORT)
def test_without_the_bug_the_same_troubles_do_no_harm(name: tuple[str, ...]) -> None:
    run = simulate("--seeds", str(in_tier(check=1, test=1, long=2)), "--faults", ",".join(name))
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_fault_that_is_none_is_told() -> None:
    run = simulate("--faults", "meteor")
    assert run.returncode == 2
    assert "unknown faults meteor" in run.stderr
