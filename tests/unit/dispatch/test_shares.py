"""Shares of caps: what the cores of several shards may run together is what the cap says, never more."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.decisions import Decision, Dispatch, ReleaseShare, Settlement
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import Settled, TermBegan, TrustLost
from hascheduler.mirror.changes import DefinitionSeen, JobGone, ShareGone, ShareSeen
from hascheduler.model.definition import Definition, RateLimit
from hascheduler.model.job import JobState
from hascheduler.model.share import ALL_JOBS, Share, definition_key, even_share, rate_key, tier_key
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
    shares = [even_share(cap, index, shards) for index in range(shards)]
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
        (Definition("log", rate_limit=RateLimit(9, 60_000)), BlockReason.RATE),
    ):
        scene, count = started(1, 4, definition)
        assert count == 2
        explanation = scene.core.explain("j099", wall(2))
        assert explanation is not None
        (block,) = [block for block in explanation.blocks if block.rule is rule]
        assert block.because.startswith(("2 of at most 2 ", "'log' is limited to 2 in 60 s"))
        assert block.because.endswith(", which is this shard's share between 4")


# Shares that move

KEY = definition_key("log")
CAPPED = Definition("log", max_concurrency=8)
SHARD: dict[str, Any] = {"shard_index": 1, "shard_count": 4}
"""Its even share of 8 is 2."""


def scene_of(definition: Definition, *more: Any, **limits: Any) -> Scene:
    scene = Scene(DefinitionSeen(definition), *more, *processors("p", slots=100), **SHARD, **limits)
    scene.at(1, *jobs(*(make_job(f"j{n:03d}", sequence=n) for n in range(40))))
    return scene


def running(scene: Scene) -> int:
    return scene.core.occupied("p")


def ended(scene: Scene, at: int, count: int) -> tuple[Decision, ...]:
    gone = [JobGone(id, JobState.SUCCEEDED) for id in scene.core.occupants("p")[:count]]
    return scene.at(at, *gone).decisions


def test_a_share_of_its_own_holds_in_the_place_of_the_even_one() -> None:
    for definition, key, limits in (
        (Definition("log", max_concurrency=8), KEY, {}),
        (Definition("log", tier=8), tier_key(8), {}),
        (Definition("log"), ALL_JOBS, {"policy": PolicyConfig(max_concurrency=8)}),
    ):
        scene = scene_of(definition, **limits)
        assert running(scene) == 2
        scene.at(2, ShareSeen(Share(key, 2, 5)))
        assert running(scene) == 5
        scene.at(3, ShareSeen(Share(key, 3, 30)))
        assert running(scene) == 8, "never more than the cap itself, which may have been lowered since"
        scene.at(4, ShareSeen(Share(key, 4, 0, lowered=True)))
        assert not [each for each in ended(scene, 5, 8) if isinstance(each, Dispatch)]
        assert running(scene) == 0
        scene.at(6, ShareGone(key))
        assert running(scene) == 2


def test_of_a_share_that_is_nothing_no_job_starts() -> None:
    scene = scene_of(Definition("log", max_concurrency=1))
    assert running(scene) == 0
    explanation = scene.core.explain("j000", wall(2))
    assert explanation is not None
    assert [block.because for block in explanation.blocks] == [
        "0 of at most 0 jobs of 'log' run, which is this shard's share between 4"
    ]


def test_a_share_that_was_lowered_is_released_once_no_more_than_it_runs() -> None:
    scene = scene_of(CAPPED, ShareSeen(Share(KEY, 1, 5)))
    assert running(scene) == 5
    assert scene.at(2, ShareSeen(Share(KEY, 7, 3, lowered=True))).decisions == ()
    assert ended(scene, 3, 1) == ()
    assert ended(scene, 4, 1) == (ReleaseShare(KEY, 7),)
    assert ended(scene, 5, 1) == (Dispatch("j005", 1, "p"),), "it is promised already"


def test_a_share_that_is_used_less_is_released_at_once_and_in_one_entry_with_what_starts() -> None:
    scene = scene_of(CAPPED, ShareSeen(Share(KEY, 1, 0)))
    step = scene.at(2, ShareSeen(Share(KEY, 2, 1, lowered=True)))
    assert step.decisions == (ReleaseShare(KEY, 2), Dispatch("j000", 1, "p"))


def test_a_share_that_grew_or_was_released_before_needs_no_release() -> None:
    scene = scene_of(CAPPED)
    for share in (Share(KEY, 3, 4), Share(KEY, 4, 4, lowered=True, released=4)):
        step = scene.at(share.rev, ShareSeen(share))
        assert not [each for each in step.decisions if isinstance(each, ReleaseShare)]


def test_a_release_is_settled_when_the_stream_shows_it_or_a_later_share() -> None:
    for shown in (
        ShareSeen(Share(KEY, 2, 1, lowered=True, released=2)),
        ShareSeen(Share(KEY, 3, 5)),
        ShareGone(KEY),
    ):
        scene = scene_of(CAPPED, ShareSeen(Share(KEY, 1, 0)))
        release = ReleaseShare(KEY, 2)
        assert release in scene.at(2, ShareSeen(Share(KEY, 2, 1, lowered=True))).decisions
        assert release not in scene.at(3, Settled(release, Settlement.DONE)).settled
        assert release in scene.at(4, shown).settled


def test_a_release_that_was_overtaken_is_decided_again_for_what_the_share_is_by_then() -> None:
    scene = scene_of(CAPPED, ShareSeen(Share(KEY, 1, 0)))
    scene.at(2, ShareSeen(Share(KEY, 2, 1, lowered=True)))
    step = scene.at(3, Settled(ReleaseShare(KEY, 2), Settlement.LOST), ShareSeen(Share(KEY, 3, 1, lowered=True)))
    assert step.decisions == (ReleaseShare(KEY, 3),)
    assert ReleaseShare(KEY, 2) in step.settled


def test_a_successor_releases_what_its_predecessor_did_not() -> None:
    scene = scene_of(CAPPED, ShareSeen(Share(KEY, 1, 0)))
    scene.at(2, ShareSeen(Share(KEY, 2, 1, lowered=True)))
    scene.at(3, TrustLost())
    assert scene.at(4, TermBegan(3)).decisions[0] == ReleaseShare(KEY, 2)
    scene.at(5, TrustLost())
    assert not [
        each for each in scene.at(6, TermBegan(5, (ReleaseShare(KEY, 2),))).decisions if isinstance(each, ReleaseShare)
    ], "it is being applied again"


def test_a_follower_releases_nothing() -> None:
    scene = Scene(ShareSeen(Share(KEY, 2, 1, lowered=True)), leading=False, **SHARD)
    assert scene.at(1).decisions == ()


def test_a_core_made_of_what_another_knows_has_its_shares() -> None:
    scene = scene_of(CAPPED, ShareSeen(Share(KEY, 1, 5)))
    other = Scene(*scene.core.state_snapshot(wall(2)), leading=False, **SHARD)
    assert other.core.occupied("p") == 5
    assert not [each for each in other.at(3).decisions if isinstance(each, Dispatch)]


def test_without_other_shards_there_are_no_shares() -> None:
    scene = Scene(
        DefinitionSeen(Definition("log", max_concurrency=7)), ShareSeen(Share(KEY, 1, 1)), *processors("p", slots=9)
    )
    scene.at(1, *jobs(*(make_job(f"j{n}", sequence=n) for n in range(9))))
    assert running(scene) == 7


def test_a_core_is_short_of_the_caps_that_alone_hold_its_jobs_back() -> None:
    both = {"policy": PolicyConfig(max_concurrency=8)}
    for definition, limits, short in (
        (CAPPED, {}, {KEY}),
        (Definition("log", tier=8), {}, {tier_key(8)}),
        (Definition("log"), both, {ALL_JOBS}),
        (CAPPED, both, {KEY, ALL_JOBS}),
        (Definition("log", rate_limit=RateLimit(8, 60_000)), {}, {rate_key("log")}),
        (Definition("log", max_concurrency=8, rate_limit=RateLimit(4, 60_000)), {}, {rate_key("log")}),
        (Definition("log", max_concurrency=8, rate_limit=RateLimit(8, 60_000)), {}, {KEY, rate_key("log")}),
        (Definition("log", rate_limit=RateLimit(800, 60_000)), {}, set()),
        (Definition("log", max_concurrency=800), {}, set()),
    ):
        scene = scene_of(definition, **limits)
        assert scene.core.short_of(wall(1)) == short


def test_a_core_without_a_free_slot_is_short_of_no_cap() -> None:
    scene = Scene(DefinitionSeen(CAPPED), *processors("p", slots=2), **SHARD)
    scene.at(1, *jobs(*(make_job(f"j{n}", sequence=n) for n in range(9))))
    assert running(scene) == 2
    assert scene.core.short_of(wall(1)) == frozenset()
