"""Limits per key, and parts of caps: what all shards may run together is what a cap says, never more."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.dispatch.capacity import rate_limits
from hascheduler.dispatch.capacity.rate_limits import KeyRates, groups_of
from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, ReleaseHold, Settlement
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import Settled, Step, TermBegan, TrustLost
from hascheduler.dispatch.rules import Rules
from hascheduler.mirror.changes import JobGone, JobSeen, NounSeen, ScheduleSeen
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.partition import ALL_JOBS, Hold, definition_key, tier_key
from hascheduler.schema.definition import Definition, KeyLimit, RateLimit
from tests.tiers import examples
from tests.unit.dispatch.nouns import make_job, make_schedule, noun_seen, running, wall
from tests.unit.dispatch.scene import Scene, jobs, processors

KEY = "payload.customer"


def of(customer: str, id: str, **more: object) -> JobRef:
    return make_job(id, limit_keys=((KEY, customer),), **more)


def defined(max_concurrency: int | None = None, rate: RateLimit | None = None) -> NounSeen:
    return noun_seen(
        Definition(name="log", key_limits=(KeyLimit(key=KEY, max_concurrency=max_concurrency, rate_limit=rate),))
    )


def started(step: Step) -> list[str]:
    return [each.job_id for each in step.decisions if isinstance(each, Dispatch)]


def test_why_says_who_runs_and_when_the_next_may_go() -> None:
    scene = Scene(defined(1, RateLimit(count=1, per_ms=60_000)), *processors("p", slots=9))
    scene.at(0, *jobs(of("acme", "a"), of("acme", "b")))
    found = scene.why("b", 10)
    running, rate = found.blocks
    assert {running.rule, rate.rule} == {BlockReason.KEY}
    assert running.because == "the limit of 'log' with payload.customer='acme' is reached: 1 of 1 jobs running ('a')"
    assert running.numbers == {"key": KEY, "value": "acme", "running": 1, "cap": 1, "holders": ["a"]}
    assert rate.because == "'log' with payload.customer='acme' is limited to 1 per 60 s"
    assert rate.until_ms == wall(60_000)
    nothing = Scene(defined(1), *processors("p", slots=9))
    nothing.at(0, *jobs(of("", "a"), of("", "b")))
    found = nothing.why("b", 0)
    assert "'log' with no value for payload.customer is reached" in found.blocks[0].because


def test_a_fire_carries_the_keys_and_its_job_waits_until_its_values_are_read() -> None:
    scene = Scene(
        defined(1),
        ScheduleSeen(make_schedule("s")),
        *processors("p"),
        JobSeen(running("a", "p", limit_keys=((KEY, "acme"),))),
    )
    step = scene.at(1_000)
    [fire] = step.decisions
    assert isinstance(fire, Fire)
    assert fire.keyed_by == (KEY,)
    found = scene.why(fire.job_id, 1_000)
    assert [block.rule for block in found.blocks] == [BlockReason.KEY]
    shown = make_job(
        fire.job_id, limit_keys=((KEY, "other"),), schedule_created_at_ms=wall(0), submitted_at_ms=wall(1_000)
    )
    assert started(scene.at(1_001, JobSeen(shown))) == [fire.job_id]


@pytest.mark.parametrize(("read", "goes"), [("acme", False), ("other", True)])
def test_after_a_takeover_a_job_that_is_not_read_yet_counts_for_every_value(read: str, goes: bool) -> None:
    schedule = make_schedule("s")
    fire = Fire("s", wall(1_000), schedule.basis_at(wall(0)), keyed_by=(KEY,))
    scene = Scene(defined(1), ScheduleSeen(schedule), *processors("p", slots=9), *jobs(of("acme", "b")), leading=False)
    first = scene.at(1_100, TermBegan(2, (fire, Dispatch(fire.job_id, 1, "p"))))
    assert fire.job_id in first.refetch
    assert started(first) == []
    found = scene.why("b", 1_100)
    assert [block.rule for block in found.blocks] == [BlockReason.KEY]
    shown = running(fire.job_id, "p", limit_keys=((KEY, read),), schedule_created_at_ms=wall(0))
    assert started(scene.at(1_200, JobSeen(shown))) == (["b"] if goes else [])


def test_full_buckets_are_forgotten_and_others_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "BUCKETS_MAX", 2_000)
    rules = Rules()
    rules.definitions["log"] = Definition(
        name="log", key_limits=(KeyLimit(key=KEY, rate_limit=RateLimit(count=1, per_ms=1_000)),)
    )
    rates = KeyRates(rules)
    for n in range(20_000):
        rates.spend(of(f"c{n}", f"j{n}"), n * 10)
        rates.advance(n * 10)
        assert len(rates._buckets) <= 2_000
    lifted = []
    for n in range(20_000):
        rates.spend(of(f"d{n}", f"j{n}"), 10**9)
        lifted += rates.advance(10**9)
    assert len(rates._buckets) <= 2_000 + 1_024 + 1
    assert len(rates._dry_until_ms) == len(rates._buckets)
    [newest] = groups_of(of("d19999", "j"))
    assert rates.dry_until(newest) == 10**9 + 1_000
    assert len(lifted) + len(rates._buckets) >= 20_000  # what is forgotten may go again, and is told


CAP = definition_key("log")
SINGLE = Definition(name="log", max_concurrency=1)
HELD, LIFTED = Hold(CAP, 2, is_held=True), Hold(CAP, 3, is_held=False)
SHARD: dict[str, Any] = {"part": (1, 4)}


def started_at_once(
    shard: int, of: int, definition: Definition, *, policy: PolicyConfig | None = None
) -> tuple[Scene, int]:
    """A shard with work and slots enough, and how many jobs it starts at once."""
    parts: dict[str, Any] = {"part": (shard, of), "policy": policy or PolicyConfig()}
    scene = Scene(noun_seen(definition), *processors("p", slots=100), **parts)
    step = scene.at(1, *jobs(*(make_job(f"j{n:03d}", sequence=n) for n in range(100))))
    return scene, sum(isinstance(decision, Dispatch) for decision in step.decisions)


@given(st.integers(1, 10**9), st.integers(1, 64))
def test_parts_are_whole_and_add_up_to_the_cap(cap: int, shards: int) -> None:
    parts = [Rules((index, shards)).part_of(CAP, cap) for index in range(shards)]
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
        assert sum(started_at_once(index, shards, definition, policy=policy)[1] for index in range(shards)) == cap


def test_why_a_job_waits_tells_this_shards_part() -> None:
    for definition, rule in (
        (Definition(name="log", max_concurrency=9), BlockReason.DEFINITION),
        (Definition(name="log", tier=9), BlockReason.TIER),
        (Definition(name="log", rate_limit=RateLimit(count=9, per_ms=60_000)), BlockReason.RATE),
    ):
        scene, count = started_at_once(1, 4, definition)
        assert count == 2
        explanation = scene.why("j099", 2)
        (block,) = [block for block in explanation.blocks if block.rule is rule]
        limited = "2 per 60 s" if rule is BlockReason.RATE else "2 of 2 jobs running"
        assert block.because.endswith(f"{limited} (this shard's part of 9)")


def scene_of(definition: Definition, *more: Any, **limits: Any) -> Scene:
    scene = Scene(noun_seen(definition), *more, *processors("p", slots=100), **{**SHARD, **limits})
    scene.at(1, *jobs(*(make_job(f"j{n:03d}", sequence=n) for n in range(40))))
    return scene


def running_now(scene: Scene) -> int:
    return scene.core.occupied("p")


def ended(scene: Scene, at: int, count: int) -> tuple[Decision, ...]:
    gone = [JobGone(id, JobState.SUCCEEDED) for id in scene.core.state.pool.occupants("p")[:count]]
    return scene.at(at, *gone).decisions


def released(decisions: tuple[Decision, ...]) -> list[Decision]:
    return [each for each in decisions if isinstance(each, ReleaseHold)]


def test_a_small_cap_is_whole_in_the_shard_whose_hold_is_lifted() -> None:
    for definition, key, limits in (
        (Definition(name="log", max_concurrency=3), CAP, {}),
        (Definition(name="log", tier=3), tier_key(3), {}),
        (Definition(name="log"), ALL_JOBS, {"policy": PolicyConfig(max_concurrency=3)}),
    ):
        scene = scene_of(definition, **limits)
        assert running_now(scene) == 0, "the first shard has it"
        scene.at(2, noun_seen(Hold(key, 2, is_held=False)))
        assert running_now(scene) == 3
        scene.at(3, noun_seen(Hold(key, 3, is_held=True)))
        assert not [each for each in ended(scene, 4, 3) if isinstance(each, Dispatch)]
        assert running_now(scene) == 0
        scene.at(5, noun_seen(Hold(key, 4, is_held=False)))
        assert running_now(scene) == 3
        first = scene_of(definition, **limits, part=(0, 4))
        assert running_now(first) == 3
        assert running_now(scene_of(definition, noun_seen(Hold(key, 3, is_held=True)), **limits, part=(0, 4))) == 0


def test_why_a_job_waits_tells_that_another_shard_has_the_cap() -> None:
    explanation = scene_of(SINGLE).why("j000", 2)
    assert [(block.because, block.unblocked_by) for block in explanation.blocks] == [
        ("the limit of 'log' is reached: 0 of 0 jobs running (another shard has all 1 now)", "when its turn comes")
    ]
    explanation = scene_of(SINGLE, noun_seen(LIFTED)).why("j001", 2)
    assert [block.because for block in explanation.blocks] == ["the limit of 'log' is reached: 1 of 1 jobs running"]


def test_a_release_is_settled_when_the_stream_shows_it_or_a_later_hold() -> None:
    for shown in (
        noun_seen(Hold(CAP, 2, is_held=True, released=2)),
        noun_seen(LIFTED),
        NounSeen(Collection.HOLDS, CAP),
    ):
        scene = scene_of(SINGLE)
        release = ReleaseHold(CAP, 2)
        assert release in scene.at(2, noun_seen(HELD)).decisions
        assert release not in scene.at(3, Settled(release, Settlement.DONE)).settled
        assert release in scene.at(4, shown).settled


def test_a_successor_releases_what_its_predecessor_did_not() -> None:
    scene = scene_of(SINGLE)
    scene.at(2, noun_seen(HELD))
    scene.at(3, TrustLost())
    assert scene.at(4, TermBegan(3)).decisions[0] == ReleaseHold(CAP, 2)
    scene.at(5, TrustLost())
    assert released(scene.at(6, TermBegan(5, (ReleaseHold(CAP, 2),))).decisions) == [], "it is being applied again"


def test_a_core_is_short_of_the_small_caps_that_alone_hold_its_jobs_back() -> None:
    both = {"policy": PolicyConfig(max_concurrency=2)}
    for definition, limits, short in (
        (SINGLE, {}, {CAP}),
        (Definition(name="log", tier=3), {}, {tier_key(3)}),
        (Definition(name="log"), both, {ALL_JOBS}),
        (SINGLE, both, {CAP, ALL_JOBS}),
        (Definition(name="log", max_concurrency=8), {}, set()),
        (Definition(name="log", max_concurrency=8), both, {ALL_JOBS}),
        (Definition(name="log", rate_limit=RateLimit(count=8, per_ms=60_000)), {}, set()),
        (Definition(name="log", max_concurrency=800), {}, set()),
    ):
        scene = scene_of(definition, **limits)
        assert scene.core.short_of(wall(1)) == short
    scene = scene_of(SINGLE, noun_seen(LIFTED))
    assert running_now(scene) == 1
    assert scene.core.short_of(wall(1)) == {CAP}, "jobs wait where the cap is, too"
    tiers_too = Definition(name="log", max_concurrency=1, tier=4)
    scene = scene_of(tiers_too, noun_seen(LIFTED))
    assert scene.core.short_of(wall(1)) == frozenset(), "its part of the tier is used up as well"
