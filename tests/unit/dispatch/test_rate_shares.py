"""Shares of rates: over several shards no more starts in any span than one bucket of the whole rate allows.

A token comes every 7,500 ms for a share of 8 in 60 s, and every 30,000 ms for one of 2.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from hascheduler.dispatch.capacity.rate_limits import TokenBucket
from hascheduler.dispatch.decisions import Decision, Dispatch, ReleaseShare
from hascheduler.dispatch.inputs import TermBegan
from hascheduler.mirror.changes import DefinitionSeen, JobGone, ShareGone, ShareSeen
from hascheduler.model.definition import Definition, RateLimit
from hascheduler.model.job import JobState
from hascheduler.model.share import Share, SharedCap, rate_key
from hascheduler.sharding.shares import Use, next_cap
from tests.checkers.rates_kept import rates_kept
from tests.tiers import examples
from tests.unit.dispatch.nouns import dispatched, make_job, wall
from tests.unit.dispatch.scene import Scene, jobs, processors

SHARD: dict[str, Any] = {"shard_index": 1, "shard_count": 4}
"""Its even share of 8 is 2."""
RATE = rate_key("log")
PACED = Definition("log", rate_limit=RateLimit(8, 60_000))


def scene_at_rest(*more: Any) -> Scene:
    return Scene(*more, DefinitionSeen(PACED), *processors("p", slots=100), **SHARD)


def scene_of(definition: Definition, *more: Any) -> Scene:
    scene = Scene(*more, DefinitionSeen(definition), *processors("p", slots=100), **SHARD)
    scene.at(1, *many_jobs(40))
    return scene


def many_jobs(count: int, first: int = 0) -> list[Any]:
    return jobs(*(make_job(f"j{number:05}", sequence=number) for number in range(first, first + count)))


def running(scene: Scene) -> int:
    return scene.core.occupied("p")


def starts(decisions: tuple[Decision, ...]) -> int:
    return sum(isinstance(decision, Dispatch) for decision in decisions)


def test_a_bucket_gets_no_tokens_for_a_larger_share_and_fills_faster_from_then_on() -> None:
    scene = scene_of(PACED)
    assert running(scene) == 2
    assert starts(scene.at(2, ShareSeen(Share(RATE, 2, 8))).decisions) == 0
    scene.at(7_501)
    assert running(scene) == 2
    assert scene.at(7_502).wake_at_ms is not None
    assert running(scene) == 3


def test_a_full_bucket_of_a_larger_share_has_no_more_tokens_than_before() -> None:
    scene = scene_at_rest()
    scene.at(1, ShareSeen(Share(RATE, 2, 8)))
    assert starts(scene.at(2, *many_jobs(9)).decisions) == 2


def test_of_a_lower_share_the_bucket_keeps_what_fits_and_it_is_released_at_once() -> None:
    scene = scene_at_rest(ShareSeen(Share(RATE, 1, 6)))
    assert starts(scene.at(1, *many_jobs(2)).decisions) == 2
    assert scene.at(2, ShareSeen(Share(RATE, 7, 3, lowered=True))).decisions == (ReleaseShare(RATE, 7),)
    assert starts(scene.at(3, *many_jobs(7, first=2)).decisions) == 3
    assert starts(scene.at(4, ShareSeen(Share(RATE, 8, 6))).decisions) == 0, "what was dropped does not come back"


def test_a_lower_share_leaves_the_tokens_that_fit() -> None:
    scene = scene_at_rest(ShareSeen(Share(RATE, 1, 6)))
    assert starts(scene.at(1, *many_jobs(4)).decisions) == 4
    scene.at(2, ShareSeen(Share(RATE, 7, 3, lowered=True)))
    assert starts(scene.at(3, *many_jobs(7, first=4)).decisions) == 2


def test_a_bucket_that_was_cut_fills_to_its_new_share_alone() -> None:
    scene = scene_at_rest(ShareSeen(Share(RATE, 1, 6)))
    scene.at(2, ShareSeen(Share(RATE, 7, 3, lowered=True)))
    assert starts(scene.at(600_000, *many_jobs(9)).decisions) == 3


def test_another_rate_over_all_begins_full_and_another_cap_of_the_definition_changes_nothing() -> None:
    scene = scene_of(PACED, ShareSeen(Share(RATE, 1, 3)))
    assert running(scene) == 3
    capped = Definition("log", rev=2, max_concurrency=400, rate_limit=PACED.rate_limit)
    assert starts(scene.at(2, DefinitionSeen(capped)).decisions) == 0
    assert starts(scene.at(3, DefinitionSeen(Definition("log", rev=3, rate_limit=RateLimit(8, 90_000)))).decisions) == 3


def test_a_share_is_never_more_than_the_whole_and_even_again_once_it_is_gone() -> None:
    scene = scene_of(PACED, ShareSeen(Share(RATE, 1, 30)))
    assert running(scene) == 8
    scene.at(2, ShareGone(RATE))
    scene.at(29_997)
    assert running(scene) == 8
    scene.at(29_998)
    assert running(scene) == 9


def test_of_a_rate_that_is_nothing_here_no_job_starts_and_why_says_so() -> None:
    scene = scene_of(PACED, ShareSeen(Share(RATE, 1, 0)))
    assert running(scene) == 0
    assert scene.at(10**9).wake_at_ms is None
    explanation = scene.core.explain("j00000", wall(10**9))
    assert explanation is not None
    (block,) = explanation.blocks
    assert block.because == "'log' is limited to 0 in 60 s, which is this shard's share between 4"
    assert block.until_ms is None
    scene.at(10**9 + 1, ShareSeen(Share(RATE, 2, 1)))
    scene.at(10**9 + 60_000)
    assert running(scene) == 0
    scene.at(10**9 + 60_001)
    assert running(scene) == 1


def test_a_count_below_the_number_of_shards_starves_none_of_them() -> None:
    assert running(scene_of(Definition("log", rate_limit=RateLimit(1, 60_000)))) == 1


def test_a_core_tells_how_many_tokens_were_taken_within_the_time_in_which_a_bucket_fills() -> None:
    scene = scene_of(PACED, ShareSeen(Share(RATE, 1, 8)))
    over_ms = 60_000 - wall(0) % 60_000
    for at_ms, taken in ((1, 8), (over_ms, 8), (over_ms + 30_000, 4), (over_ms + 59_999, 1)):
        assert scene.core.tokens_taken(wall(at_ms)) == {"log": taken}
    assert scene.core.tokens_taken(wall(over_ms + 60_000)) == {}


def test_what_was_taken_does_not_change_with_the_share() -> None:
    scene = scene_of(PACED, ShareSeen(Share(RATE, 1, 5)))
    scene.at(2, ShareSeen(Share(RATE, 2, 1, lowered=True)))
    assert scene.core.tokens_taken(wall(3)) == {"log": 5}


def test_a_follower_takes_the_tokens_of_what_the_stream_shows() -> None:
    facts = [ShareSeen(Share(RATE, 1, 3)), DefinitionSeen(PACED), *processors("p", slots=100)]
    scene = Scene(*facts, leading=False, **SHARD)
    scene.at(2, *jobs(*(dispatched(f"k{number}", "p", dispatched_at_ms=wall(1)) for number in range(2))))
    scene.at(2, *many_jobs(9))
    assert scene.core.tokens_taken(wall(2)) == {"log": 2}
    assert starts(scene.at(3, TermBegan(1)).decisions) == 1


# Over all shards


@dataclass
class Shard:
    """A core, and the shares on their way to it: each arrives when it arrives."""

    scene: Scene
    released: int = 0
    submitted: int = 0
    arriving: list[Share] = field(default_factory=list)


class Rate:
    """One rate, its shards, and the home that moves its units. ``is_patient`` False: it grants before the release."""

    LIMIT = RateLimit(9, 3_000)

    def __init__(self, seed: int, *, is_patient: bool = True) -> None:
        self._chance = Random(seed)
        self._is_patient = is_patient
        facts = (DefinitionSeen(Definition("log", rate_limit=self.LIMIT)), *processors("p", slots=9_999))
        self._shards = [Shard(Scene(*facts, shard_index=index, shard_count=3)) for index in range(3)]
        self._cap = SharedCap.even(RATE, self.LIMIT.count, 3)
        self.started_s: list[float] = []
        self.moves = 0

    def run(self) -> "Rate":
        at_ms = 1
        while at_ms < 60_000:
            at_ms += self._chance.choice((1, 7, 40, 333, 1_500))
            shard = self._chance.choice(self._shards)
            match self._chance.randrange(4):
                case 0:
                    count = self._chance.choice((1, 3, 12))
                    self._step(shard, at_ms, *many_jobs(count, first=shard.submitted))
                    shard.submitted += count
                case 1:
                    self._move(at_ms)
                case _:
                    self._step(shard, at_ms, *map(ShareSeen, shard.arriving[:1]))
                    del shard.arriving[:1]
        return self

    def _step(self, shard: Shard, at_ms: int, *seen: Any) -> None:
        shown: list[Any] = []
        for decision in shard.scene.at(at_ms, *seen).decisions:
            if isinstance(decision, Dispatch):
                self.started_s.append(at_ms / 1_000)
                shown.append(JobGone(decision.job_id, JobState.SUCCEEDED))
            elif isinstance(decision, ReleaseShare):
                shard.released = decision.rev
                (lowered,) = (each.share for each in seen if isinstance(each, ShareSeen))
                shown.append(ShareSeen(replace(lowered, released=lowered.rev)))
        if shown:
            self._step(shard, at_ms, *shown)

    def _move(self, at_ms: int) -> None:
        """A shard that is short gets what is free; how much is in use elsewhere chance says."""
        is_short = [RATE in shard.scene.core.short_of(wall(at_ms)) for shard in self._shards]
        uses = [Use(9, 9) if short else Use(self._chance.choice((0, 1, 9)), 0) for short in is_short]
        released = [shard.released if self._is_patient else self._cap.rev for shard in self._shards]
        cap = next_cap(self._cap, self.LIMIT.count, uses, released, least=1)
        self.moves += cap is not self._cap
        for shard, before, share in zip(self._shards, self._cap.shares(), cap.shares(), strict=True):
            if share.rev > before.rev:
                shard.arriving.append(share)
        self._cap = cap


_PLANTED_SEEDS = 100
"""Until one of them shows what is planted."""


def exceeding(seeds: int, *, is_patient: bool = True) -> Iterator[int]:
    """Those of so many seeds in which more started than one bucket allows."""
    rates = ((seed, Rate(seed, is_patient=is_patient).run()) for seed in range(seeds))
    return (seed for seed, rate in rates if rates_kept(rate.started_s, Rate.LIMIT))


def test_no_span_has_more_starts_than_one_bucket_allows_whenever_shares_move() -> None:
    assert not list(exceeding(examples(120)))
    some = Rate(3).run()
    assert len(some.started_s) > 50
    assert some.moves > 5


def test_a_grant_before_the_release_would_exceed_the_rate() -> None:
    assert any(True for _ in exceeding(_PLANTED_SEEDS, is_patient=False))


@pytest.mark.skipif("TESTS_COMPILED" in os.environ, reason="a part of the compiled core can't be exchanged")
def test_a_bucket_that_is_filled_for_its_larger_share_would_exceed_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    def filled(self: TokenBucket, limit: RateLimit, now: int) -> None:
        self.limit, self.level = limit, limit.count * limit.per_ms

    monkeypatch.setattr(TokenBucket, "resize", filled)
    assert any(True for _ in exceeding(_PLANTED_SEEDS))
