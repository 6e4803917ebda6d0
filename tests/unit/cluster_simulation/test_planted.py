"""Each planted bug is noticed: of one cluster, and of several shards: of caps, and of those who host them."""

import re

import pytest

from tests.cluster_simulation.mutants import PLANTED
from tests.cluster_simulation.shard_mutants import PLANTED_IN_FOLLOWING, PLANTED_IN_SHARDS
from tests.tiers import TIER
from tests.unit.cluster_simulation.simulating import simulate

ALL = (*PLANTED, *PLANTED_IN_SHARDS, *PLANTED_IN_FOLLOWING)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("name", ALL if TIER == "long" else ALL[::4])
def test_a_planted_bug_turns_a_checker_red(name: str) -> None:
    run = simulate("--planted", name, "--jobs", "1")  # else further seeds run until the first is noticed
    assert run.returncode == 0, f"not noticed: {run.stdout}{run.stderr}"
    assert re.search(rf"{name} +seed \d+: \w+", run.stdout), run.stdout
