"""The benchmark of a replica's memory: the modelled replicas leave the real one what it would follow among so many."""

from hascheduler.election.preferences import candidates_of
from tests.bench.shards_memory import CANDIDATES, REPLICAS, MemoryPlan, modelled_replicas


def test_each_shard_has_its_candidates_among_the_modelled_replicas_and_the_real_one() -> None:
    shards = MemoryPlan(64, 0, 1).names
    replicas = modelled_replicas(shards)
    assert len(replicas) == REPLICAS - 1
    candidates = candidates_of(shards, ["bench", *(status.name for status in replicas)], CANDIDATES)
    for shard in shards[1:]:
        told = {status.name for status in replicas if status.followed and shard in status.followed}
        assert told == set(candidates[shard]) - {"bench"}
    assert 0 < sum("bench" in names for names in candidates.values()) < 20
