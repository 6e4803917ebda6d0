"""Several shards in trouble, by seed: each keeps its promises, and all of them together the caps over them."""

import re

import pytest

from tests.tiers import in_tier
from tests.unit.cluster_simulation.simulating import ENVIRONMENT, simulate
from tests.warm import warm

pytestmark = pytest.mark.slow
SEEDS = in_tier(check=1, test=4, long=20)
"""From 5, a story with much of all that is counted."""
_MOVED_BY_ALL = f"""
from tests.cluster_simulation.shard_cast import ShardBugs
from tests.cluster_simulation.shards import run_shards
bugs = ShardBugs(moved_by_all=True)
found = [run_shards(seed, bugs=bugs).violations for seed in range({in_tier(check=1, test=2, long=5)})]
raise SystemExit(str(found) if any(found) else 0)
"""


@pytest.mark.timeout(1_200)
def test_no_cap_over_all_shards_is_exceeded_whatever_goes_wrong() -> None:
    run = simulate("--shards", "--first", "5", "--seeds", str(SEEDS))
    assert run.returncode == 0, run.stdout + run.stderr
    told = r"(\d+) obligations, (\d+) effects, (\d+) terms.*, (\d+) times caps passed on, (\d+) changes of the layout"
    figures = re.search(told, run.stdout)
    assert figures is not None, run.stdout
    obligations, effects, terms, turns, layouts = map(int, figures.groups())
    # There was work, it ran, there was trouble, caps were passed on and partitions moved.
    assert min(obligations, effects) > 80 * SEEDS
    assert terms > 10 * SEEDS
    assert turns > 2 * SEEDS
    assert layouts > 10 * SEEDS


def test_replicas_that_all_move_partitions_at_once_do_no_harm() -> None:
    prepared = warm("tests.cluster_simulation.__main__", hash_seed=ENVIRONMENT["PYTHONHASHSEED"])
    run = prepared.run(_MOVED_BY_ALL, environment=ENVIRONMENT, patience_s=300)
    assert run.returncode == 0, run.stdout + run.stderr
