"""How slots go round shards, against leaders that fill at once whatever is offered."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import pytest

from hascheduler.shards.offers import TURN_MS, ShardLoad, SlotOffers

TICK_MS = 50
LOOK_MS = 1_000
PATIENCE_MS = 3_000
ENDLESS = 10**9


@dataclass
class Attempt:
    shard: int
    came_ms: int
    takes_ms: int


@dataclass
class Play:
    """One process. ``waiting`` are the jobs of each shard, ``takes_ms`` how long one takes there."""

    slots: int
    waiting: dict[int, int]
    takes_ms: Sequence[int]
    now_ms: int = 0
    offered: dict[int, int] = field(default_factory=dict)
    queue: deque[Attempt] = field(default_factory=deque)
    running: list[tuple[int, Attempt]] = field(default_factory=list)
    """With when it ends."""
    done: Counter[int] = field(default_factory=Counter)
    given_back: Counter[int] = field(default_factory=Counter)
    most_waited_ms: dict[int, int] = field(default_factory=Counter)
    changes: int = 0

    def __post_init__(self) -> None:
        self.offers = SlotOffers(self.slots)
        self.offered = dict.fromkeys(self.waiting, max(self.slots // min(len(self.waiting), 2), 1))
        self._most: Counter[int] = Counter()
        self._freed = 0
        self._served_at_ms: dict[int, int] = {}

    def run(self, seconds: float) -> None:
        until_ms = self.now_ms + round(seconds * 1_000)
        while self.now_ms < until_ms:
            self._tick()
            self.now_ms += TICK_MS
            if self.now_ms % LOOK_MS == 0:
                self._look()

    @property
    def held(self) -> Counter[int]:
        return Counter(each.shard for each in [*self.queue, *(attempt for _, attempt in self.running)])

    def _tick(self) -> None:
        for end in [each for each in self.running if each[0] <= self.now_ms]:
            self.running.remove(end)
            self._freed += 1
            self.done[end[1].shard] += 1
        for late in [each for each in self.queue if self.now_ms - each.came_ms >= PATIENCE_MS]:
            self.queue.remove(late)
            self.given_back[late.shard] += 1
            self.waiting[late.shard] += 1
        held = self.held
        for shard, offered in self.offered.items():
            for _ in range(min(offered - held[shard], self.waiting[shard])):
                self.waiting[shard] -= 1
                self.queue.append(Attempt(shard, self.now_ms, self.takes_ms[shard]))
        self._most |= self.held
        while self.queue and len(self.running) < self.slots:
            attempt = self.queue.popleft()
            waited_ms = self.now_ms - self._served_at_ms.get(attempt.shard, 0)
            self._served_at_ms[attempt.shard] = self.now_ms
            self.most_waited_ms[attempt.shard] = max(self.most_waited_ms[attempt.shard], waited_ms)
            self.running.append((self.now_ms + attempt.takes_ms, attempt))

    def _look(self) -> None:
        held = self.held
        loads = {shard: ShardLoad(self.offered[shard], held[shard], self._most[shard]) for shard in self.offered}
        offers = self.offers.next(self.now_ms, loads, freed=self._freed)
        assert offers.keys() == loads.keys()
        assert min(offers.values()) >= 0
        self.changes += sum(offers[shard] != self.offered[shard] for shard in offers)
        self.offered, self._most, self._freed = offers, held, 0


def played(slots: int, waiting: Mapping[int, int], takes_ms: Sequence[int], seconds: float) -> Play:
    play = Play(slots, dict(waiting), takes_ms)
    play.run(seconds)
    return play


@pytest.mark.parametrize(
    ("slots", "shards", "takes_ms"),
    list(product([1, 2, 4, 7], [2, 3, 8], [50, 400, 1_000, 2_500, 5_000, 30_000])),
)
def test_no_shard_with_endless_work_goes_without(slots: int, shards: int, takes_ms: int) -> None:
    turns = max(shards - slots, 1) + 1
    limit_ms = turns * 2 * (TURN_MS + takes_ms) + 10_000
    play = played(slots, dict.fromkeys(range(shards), ENDLESS), [takes_ms] * shards, 4 * limit_ms / 1_000)
    assert max(play.most_waited_ms.values()) <= limit_ms, play.most_waited_ms
    assert len(play.done) == shards
    used = play.done.total() * takes_ms / (slots * play.now_ms)
    assert used > 0.8, used


@pytest.mark.parametrize(
    ("slots", "shards", "takes_ms"), list(product([1, 2, 4, 7], [2, 3, 8], [50, 400, 1_000, 2_500, 30_000]))
)
def test_one_shard_with_endless_work_gets_nearly_all_slots(slots: int, shards: int, takes_ms: int) -> None:
    play = played(slots, dict.fromkeys(range(shards), 0) | {0: ENDLESS}, [takes_ms] * shards, 600)
    used = play.done[0] * takes_ms / (slots * play.now_ms)
    assert used > (0.7 if slots == 1 else 0.85), used
    assert not play.given_back


@pytest.mark.parametrize("slots", [1, 2, 8])
@pytest.mark.parametrize("takes_ms", [50, 1_000, 5_000])
def test_while_one_shard_has_endless_work_a_job_in_another_waits_for_a_few_seconds(slots: int, takes_ms: int) -> None:
    play = played(slots, dict.fromkeys(range(8), 0) | {0: ENDLESS}, [takes_ms] * 8, 60)
    for shard in range(1, 8):
        play.waiting[shard] += 1
        began_ms = play.now_ms
        while not play.done[shard]:
            play.run(0.05)
        assert play.now_ms - began_ms <= 2 * TURN_MS + 3 * takes_ms, shard


def test_nothing_changes_while_nothing_runs() -> None:
    play = played(4, dict.fromkeys(range(8), 0), [1_000] * 8, 100)
    assert play.changes == 0


def test_a_slot_that_one_shard_does_not_need_any_more_goes_to_the_other() -> None:
    play = played(4, {0: 100, 1: ENDLESS}, [1_000, 1_000], 100)
    before = play.done[1]
    play.run(20)
    assert play.done[1] - before >= 4 * 19
