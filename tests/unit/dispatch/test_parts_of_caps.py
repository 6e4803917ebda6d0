"""Parts of caps: what the cores of several shards may run together is what the cap says, never more."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.decisions import Decision, Dispatch, ReleaseHold, Settlement
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import Settled, TermBegan, TrustLost
from hascheduler.dispatch.rules import Rules
from hascheduler.mirror.changes import DefinitionSeen, HoldGone, HoldSeen, JobGone
from hascheduler.model.job import JobState
from hascheduler.model.partition import ALL_JOBS, Hold, definition_key, tier_key
from hascheduler.schema.definition import Definition, RateLimit
from tests.tiers import examples
from tests.unit.dispatch.nouns import make_job, wall
from tests.unit.dispatch.scene import Scene, jobs, processors

KEY = definition_key("log")
SINGLE = Definition(name="log", max_concurrency=1)
HELD, LIFTED = Hold(KEY, 2, is_held=True), Hold(KEY, 3, is_held=False)
SHARD: dict[str, Any] = {"part": (1, 4)}


def started(shard: int, of: int, definition: Definition, *, policy: PolicyConfig | None = None) -> tuple[Scene, int]:
    """A shard with work and slots enough, and how many jobs it starts at once."""
    parts: dict[str, Any] = {"part": (shard, of), "policy": policy or PolicyConfig()}
    scene = Scene(DefinitionSeen(definition), *processors("p", slots=100), **parts)
    step = scene.at(1, *jobs(*(make_job(f"j{n:03d}", sequence=n) for n in range(100))))
    return scene, sum(isinstance(decision, Dispatch) for decision in step.decisions)


@given(st.integers(1, 10**9), st.integers(1, 64))
def test_parts_are_whole_and_add_up_to_the_cap(cap: int, shards: int) -> None:
    parts = [Rules((index, shards)).part_of(KEY, cap) for index in range(shards)]
    assert sum(parts) == cap
    assert max(parts) - min(parts) <= 1 or cap < shards


@given(st.integers(1, 8), st.integers(0, 30))
@settings(max_examples=examples(40))
def test_all_shards_together_start_what_each_cap_allows(shards: int, more: int) -> None:
    cap = shards + more
    for definition, policy in (
        (Definition(name="log", max_concurrency=cap), None),
        (Definition(name="log", rate_limit=RateLimit(count=cap, per_ms=60_000)), None),
        (Definition(name="log", tier=cap), None),
        (Definition(name="log"), PolicyConfig(max_concurrency=cap)),
    ):
        assert sum(started(index, shards, definition, policy=policy)[1] for index in range(shards)) == cap


def test_one_shard_has_all_of_it() -> None:
    assert started(0, 1, Definition(name="log", max_concurrency=7))[1] == 7


def test_why_a_job_waits_tells_this_shards_part() -> None:
    for definition, rule in (
        (Definition(name="log", max_concurrency=9), BlockReason.DEFINITION),
        (Definition(name="log", tier=9), BlockReason.TIER),
        (Definition(name="log", rate_limit=RateLimit(count=9, per_ms=60_000)), BlockReason.RATE),
    ):
        scene, count = started(1, 4, definition)
        assert count == 2
        explanation = scene.why("j099", 2)
        (block,) = [block for block in explanation.blocks if block.rule is rule]
        assert block.because.startswith(("2 of at most 2 ", "'log' is limited to 2 in 60 s"))
        assert block.because.endswith(", which is this shard's part of 9")


# Caps that one shard has at a time


def scene_of(definition: Definition, *more: Any, **limits: Any) -> Scene:
    scene = Scene(DefinitionSeen(definition), *more, *processors("p", slots=100), **{**SHARD, **limits})
    scene.at(1, *jobs(*(make_job(f"j{n:03d}", sequence=n) for n in range(40))))
    return scene


def running(scene: Scene) -> int:
    return scene.core.occupied("p")


def ended(scene: Scene, at: int, count: int) -> tuple[Decision, ...]:
    gone = [JobGone(id, JobState.SUCCEEDED) for id in scene.core.occupants("p")[:count]]
    return scene.at(at, *gone).decisions


def released(decisions: tuple[Decision, ...]) -> list[Decision]:
    return [each for each in decisions if isinstance(each, ReleaseHold)]


def test_a_small_cap_is_whole_in_the_shard_whose_hold_is_lifted() -> None:
    for definition, key, limits in (
        (Definition(name="log", max_concurrency=3), KEY, {}),
        (Definition(name="log", tier=3), tier_key(3), {}),
        (Definition(name="log"), ALL_JOBS, {"policy": PolicyConfig(max_concurrency=3)}),
    ):
        scene = scene_of(definition, **limits)
        assert running(scene) == 0, "the first shard has it"
        scene.at(2, HoldSeen(Hold(key, 2, is_held=False)))
        assert running(scene) == 3
        scene.at(3, HoldSeen(Hold(key, 3, is_held=True)))
        assert not [each for each in ended(scene, 4, 3) if isinstance(each, Dispatch)]
        assert running(scene) == 0
        scene.at(5, HoldSeen(Hold(key, 4, is_held=False)))
        assert running(scene) == 3
        first = scene_of(definition, **limits, part=(0, 4))
        assert running(first) == 3
        assert running(scene_of(definition, HoldSeen(Hold(key, 3, is_held=True)), **limits, part=(0, 4))) == 0


def test_a_hold_that_is_gone_leaves_the_cap_to_the_first_shard() -> None:
    for part, runs in (((1, 4), 0), ((0, 4), 1)):
        scene = scene_of(SINGLE, HoldSeen(LIFTED), part=part)
        ended(scene, 2, 1)
        ended(scene, 3, 1)
        scene.at(4, HoldGone(KEY))
        ended(scene, 5, 1)
        assert running(scene) == runs


def test_why_a_job_waits_tells_that_another_shard_has_the_cap() -> None:
    explanation = scene_of(SINGLE).why("j000", 2)
    assert [(block.because, block.unblocked_by) for block in explanation.blocks] == [
        ("0 of at most 0 jobs of 'log' run, as another shard has all 1 for now", "when its turn comes")
    ]
    explanation = scene_of(SINGLE, HoldSeen(LIFTED)).why("j001", 2)
    assert [block.because for block in explanation.blocks] == ["1 of at most 1 jobs of 'log' run"]


def test_a_hold_means_nothing_where_each_shard_has_a_part_of_the_cap() -> None:
    for definition in (Definition(name="log", max_concurrency=8), Definition(name="log", max_concurrency=4)):
        even = running(scene_of(definition))
        assert even == running(scene_of(definition, HoldSeen(HELD))) == running(scene_of(definition, HoldSeen(LIFTED)))
    assert running(scene_of(Definition(name="log", max_concurrency=7), HoldSeen(HELD), part=(0, 1))) == 7


def test_a_cap_that_an_edit_makes_small_is_one_shards_by_the_hold_that_is_known() -> None:
    scene = scene_of(Definition(name="log", max_concurrency=8), HoldSeen(LIFTED))
    assert running(scene) == 2
    scene.at(2, DefinitionSeen(Definition(name="log", max_concurrency=3)))
    assert running(scene) == 3


def test_a_hold_is_released_once_nothing_that_the_cap_limits_runs_or_is_promised() -> None:
    scene = scene_of(Definition(name="log", max_concurrency=2), HoldSeen(Hold(KEY, 1, is_held=False)))
    assert running(scene) == 2
    assert scene.at(2, HoldSeen(HELD)).decisions == ()
    assert ended(scene, 3, 1) == ()
    assert ended(scene, 4, 1) == (ReleaseHold(KEY, 2),)
    assert scene.at(5).decisions == (), "it is promised already"


def test_a_lifted_or_released_hold_needs_no_release() -> None:
    scene = scene_of(SINGLE)
    for hold in (Hold(KEY, 3, is_held=True, released=3), Hold(KEY, 4, is_held=False)):
        assert released(scene.at(hold.rev, HoldSeen(hold)).decisions) == []


def test_a_release_is_settled_when_the_stream_shows_it_or_a_later_hold() -> None:
    for shown in (HoldSeen(Hold(KEY, 2, is_held=True, released=2)), HoldSeen(LIFTED), HoldGone(KEY)):
        scene = scene_of(SINGLE)
        release = ReleaseHold(KEY, 2)
        assert release in scene.at(2, HoldSeen(HELD)).decisions
        assert release not in scene.at(3, Settled(release, Settlement.DONE)).settled
        assert release in scene.at(4, shown).settled


def test_a_release_that_was_overtaken_is_decided_again_for_the_hold_of_by_then() -> None:
    scene = scene_of(SINGLE)
    scene.at(2, HoldSeen(HELD))
    later = HoldSeen(Hold(KEY, 3, is_held=True))
    step = scene.at(3, Settled(ReleaseHold(KEY, 2), Settlement.LOST), later)
    assert step.decisions == (ReleaseHold(KEY, 3),)
    assert ReleaseHold(KEY, 2) in step.settled


def test_a_successor_releases_what_its_predecessor_did_not() -> None:
    scene = scene_of(SINGLE)
    scene.at(2, HoldSeen(HELD))
    scene.at(3, TrustLost())
    assert scene.at(4, TermBegan(3)).decisions[0] == ReleaseHold(KEY, 2)
    scene.at(5, TrustLost())
    assert released(scene.at(6, TermBegan(5, (ReleaseHold(KEY, 2),))).decisions) == [], "it is being applied again"


def test_a_follower_releases_nothing() -> None:
    scene = Scene(HoldSeen(HELD), leading=False, **SHARD)
    assert scene.at(1).decisions == ()


def test_a_core_made_of_what_another_knows_has_its_holds() -> None:
    scene = scene_of(SINGLE, HoldSeen(LIFTED))
    other = Scene(*scene.core.state_snapshot(wall(2)), leading=False, **SHARD)
    assert other.core.occupied("p") == 1
    assert ended(other, 3, 1) == (Dispatch("j001", 1, "p"),)


# What holds back


def test_a_core_is_short_of_the_small_caps_that_alone_hold_its_jobs_back() -> None:
    both = {"policy": PolicyConfig(max_concurrency=2)}
    for definition, limits, short in (
        (SINGLE, {}, {KEY}),
        (Definition(name="log", tier=3), {}, {tier_key(3)}),
        (Definition(name="log"), both, {ALL_JOBS}),
        (SINGLE, both, {KEY, ALL_JOBS}),
        (Definition(name="log", max_concurrency=8), {}, set()),
        (Definition(name="log", max_concurrency=8), both, {ALL_JOBS}),
        (Definition(name="log", rate_limit=RateLimit(count=8, per_ms=60_000)), {}, set()),
        (Definition(name="log", max_concurrency=800), {}, set()),
    ):
        scene = scene_of(definition, **limits)
        assert scene.core.short_of(wall(1)) == short
    scene = scene_of(SINGLE, HoldSeen(LIFTED))
    assert running(scene) == 1
    assert scene.core.short_of(wall(1)) == {KEY}, "jobs wait where the cap is, too"
    tiers_too = Definition(name="log", max_concurrency=1, tier=4)
    scene = scene_of(tiers_too, HoldSeen(LIFTED))
    assert scene.core.short_of(wall(1)) == frozenset(), "its part of the tier is used up as well"


def test_a_core_without_a_free_slot_is_short_of_no_cap() -> None:
    scene = Scene(DefinitionSeen(SINGLE), HoldSeen(LIFTED), *processors("p", slots=1), **SHARD)
    scene.at(1, *jobs(*(make_job(f"j{n}", sequence=n) for n in range(9))))
    assert running(scene) == 1
    assert scene.core.short_of(wall(1)) == frozenset()


# Rates


def test_of_a_rate_below_the_number_of_shards_each_has_one() -> None:
    slow = Definition(name="log", rate_limit=RateLimit(count=2, per_ms=60_000))
    assert [started(index, 4, slow)[1] for index in range(4)] == [1, 1, 1, 1], "it was stored before there were four"


def test_a_bucket_fills_at_this_shards_part_of_the_rate() -> None:
    scene = scene_of(Definition(name="log", rate_limit=RateLimit(count=8, per_ms=60_000)))
    assert running(scene) == 2
    scene.at(30_000)
    assert running(scene) == 2
    scene.at(30_001)
    assert running(scene) == 3
