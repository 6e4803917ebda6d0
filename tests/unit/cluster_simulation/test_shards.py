"""Several shards in trouble, by seed: each keeps its promises, and all together those about caps, moves and hosts."""

import re

import pytest

from tests.tiers import in_tier
from tests.unit.cluster_simulation.simulating import ENVIRONMENT, simulate
from tests.warm import warm

pytestmark = pytest.mark.slow
_MOVED_BY_ALL = f"""
from tests.cluster_simulation.shard_cast import ShardBugs
from tests.cluster_simulation.shards import run_shards
bugs = ShardBugs(moved_by_all=True)
found = [run_shards(seed, bugs=bugs).violations for seed in range({in_tier(check=1, test=2, long=5)})]
raise SystemExit(str(found) if any(found) else 0)
"""


# From a seed on whose story has much of all that is counted: how often each happens in a seed, at least.
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    ("story", "first", "seeds", "least"),
    [
        (
            "shards", 5, in_tier(check=1, test=2, long=20),
            {"obligations": 80, "effects": 80, "terms": 10, "times caps passed on": 2, "changes of the layout": 10},
        ),
        (
            "following", 3, in_tier(check=1, test=2, long=16),
            {"obligations": 80, "effects": 80, "terms": 8, "times a shard was begun with": 5, "times left": 0.5},
        ),
    ],
)  # fmt: skip
def test_no_promise_over_shards_is_broken_whatever_goes_wrong(
    story: str, first: int, seeds: int, least: dict[str, float]
) -> None:
    run = simulate(f"--{story}", "--first", f"{first}", "--seeds", f"{seeds}")
    assert run.returncode == 0, run.stdout + run.stderr
    for what, times in least.items():
        found = re.search(rf"(\d+) {what}", run.stdout)
        assert found is not None, run.stdout
        assert int(found[1]) > times * seeds, what


def test_replicas_that_all_move_partitions_at_once_do_no_harm() -> None:
    prepared = warm("tests.cluster_simulation.__main__", hash_seed=ENVIRONMENT["PYTHONHASHSEED"])
    run = prepared.run(_MOVED_BY_ALL, environment=ENVIRONMENT, patience_s=300)
    assert run.returncode == 0, run.stdout + run.stderr
