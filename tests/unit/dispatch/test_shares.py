"""Shares of caps: what the cores of several shards may run together is what the cap says, never more."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.rules import Rules
from hascheduler.mirror.changes import DefinitionSeen
from hascheduler.model.definition import Definition, RateLimit
from tests.tiers import examples
from tests.unit.dispatch.nouns import make_job, wall
from tests.unit.dispatch.scene import Scene, jobs, processors


def started(shard: int, of: int, definition: Definition, *, policy: PolicyConfig | None = None) -> tuple[Scene, int]:
    """A shard with work and slots enough, and how many jobs it starts at once."""
    shares: dict[str, Any] = {"shard_index": shard, "shard_count": of, "policy": policy or PolicyConfig()}
    scene = Scene(DefinitionSeen(definition), *processors("p", slots=100), **shares)
    step = scene.at(1, *jobs(*(make_job(f"j{n:03d}", sequence=n) for n in range(100))))
    return scene, sum(isinstance(decision, Dispatch) for decision in step.decisions)


@given(st.integers(1, 10**9), st.integers(1, 64))
def test_shares_are_whole_and_add_up_to_the_cap(cap: int, shards: int) -> None:
    shares = [Rules(index, shards).share_of(cap) for index in range(shards)]
    assert sum(shares) == cap
    assert max(shares) - min(shares) <= 1


@given(st.integers(1, 8), st.integers(0, 30))
@settings(max_examples=examples(40))
def test_all_shards_together_start_what_each_cap_allows(shards: int, more: int) -> None:
    cap = shards + more
    for definition, policy in (
        (Definition("log", max_concurrency=cap), None),
        (Definition("log", rate_limit=RateLimit(cap, 60_000)), None),
        (Definition("log", tier=cap), None),
        (Definition("log"), PolicyConfig(max_concurrency=cap)),
    ):
        assert sum(started(index, shards, definition, policy=policy)[1] for index in range(shards)) == cap


def test_one_shard_has_all_of_it() -> None:
    assert started(0, 1, Definition("log", max_concurrency=7))[1] == 7


def test_why_a_job_waits_tells_this_shards_share() -> None:
    for definition, rule in (
        (Definition("log", max_concurrency=9), BlockReason.DEFINITION),
        (Definition("log", tier=9), BlockReason.TIER),
    ):
        scene, count = started(1, 4, definition)
        assert count == 2
        explanation = scene.core.explain("j099", wall(2))
        assert explanation is not None
        (block,) = [block for block in explanation.blocks if block.rule is rule]
        assert block.because.startswith("2 of at most 2 ")
        assert block.because.endswith(", which is this shard's share between 4")
