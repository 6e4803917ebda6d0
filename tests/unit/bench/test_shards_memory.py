"""The benchmark of a replica's memory: the modelled replicas leave the real one what it would host among so many."""

from hascheduler.election.preferences import candidates_of
from tests.bench.shards_memory import CANDIDATES, REPLICAS, MemoryPlan, modelled_replicas


def test_the_real_replica_is_a_candidate_of_some_shards_beside_the_modelled_ones() -> None:
    shards = MemoryPlan(64, 0, 1).names
    replicas = modelled_replicas()
    assert len(replicas) == REPLICAS - 1
    candidates = candidates_of(shards, ["bench", *(status.name for status in replicas)], CANDIDATES)
    assert 0 < sum("bench" in names for names in candidates.values()) < 20
