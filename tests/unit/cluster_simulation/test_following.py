"""Shards that some replicas host each, in trouble, by seed."""

import re

import pytest

from tests.tiers import in_tier
from tests.unit.cluster_simulation.simulating import simulate

pytestmark = pytest.mark.slow
SEEDS = in_tier(check=1, test=4, long=16)


@pytest.mark.timeout(1_200)
def test_each_shard_is_hosted_by_its_candidates_whatever_goes_wrong() -> None:
    run = simulate("--following", "--first", "3", "--seeds", str(SEEDS))
    assert run.returncode == 0, run.stdout + run.stderr
    told = r"(\d+) obligations, (\d+) effects, (\d+) terms.*, (\d+) times a shard was begun with, (\d+) times left"
    figures = re.search(told, run.stdout)
    assert figures is not None, run.stdout
    obligations, effects, terms, begun, left = map(int, figures.groups())
    # There was work, it ran, there was trouble, and replicas came and went: four begin at the start.
    assert min(obligations, effects) > 80 * SEEDS
    assert terms > 8 * SEEDS
    assert begun > 5 * SEEDS
    assert left > SEEDS / 2
