"""A rate limit over several shards in trouble, by seed: its units move, and no more starts than of one bucket."""

import re

import pytest

from tests.tiers import in_tier
from tests.unit.cluster_simulation.simulating import simulate

SEEDS = in_tier(check=1, test=4, long=12)


@pytest.mark.timeout(1_200)
def test_no_rate_over_all_shards_is_exceeded_whatever_goes_wrong() -> None:
    run = simulate("--rates", "--seeds", str(SEEDS))
    assert run.returncode == 0, run.stdout + run.stderr
    told = r"(\d+) terms.*, (\d+) times shares moved, .*, (\d+) dispatches at a limited rate"
    figures = re.search(told, run.stdout)
    assert figures is not None, run.stdout
    terms, units, rated = map(int, figures.groups())
    # There was trouble, units moved, and the limit was what held jobs back: two a second may start.
    assert terms > 10 * SEEDS
    assert units > 5 * SEEDS
    assert rated > 40 * SEEDS
