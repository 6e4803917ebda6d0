"""Shards that some replicas host each, in trouble, by seed; and what many of them do."""

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


@pytest.mark.timeout(1_200)
def test_several_shards_do_nearly_as_many_times_as_much_as_one() -> None:
    shards = in_tier(check=2, test=2, long=4)
    run = simulate("--grow", f"{shards}", "--replicas", "4", "--jobs", "1")
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.findall(r"(\d+) doubled", run.stdout) == ["0", "0"]
    figures = re.search(rf"([\d.]+) times as many jobs, of {shards}", run.stdout)
    assert figures is not None, run.stdout
    assert 0.9 * shards <= float(figures[1]) <= 1.03 * shards
