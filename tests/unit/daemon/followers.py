"""Replicas that follow one history, each in its own batches, as far as the comparison of mirrors is concerned.

Time passes one millisecond a turn, so that whatever was first has the lower time.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, cast

from hascheduler.daemon.loop.checks import DigestCheck
from hascheduler.daemon.loop.feeder import Feeder
from hascheduler.mirror.changes import Change, NounSeen, Operation
from hascheduler.mirror.mirror import Folded, Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.job import LIVE
from hascheduler.model.values.instants import MonoMs
from hascheduler.schema.noun import document_of
from hascheduler.schema.replica import ReplicaStatus
from tests.factories import make_replica
from tests.unit.daemon.doubles import HandClock
from tests.unit.mirror.test_convergence import History, Key, lean, present

JOBS, REPLICAS = Collection.JOBS, Collection.REPLICAS


class Follower:
    """``drops`` says which changes of the stream it never sees: a planted bug."""

    def __init__(
        self, name: str, history: History, clock: HandClock, *, drops: Callable[[Change], bool] = lambda _: False
    ) -> None:
        self.name = name
        self._history = history
        self._clock = clock
        self.drops = drops
        self.reasons: list[str] = []
        self.complete = False
        self._place = 0
        self._beat = 0
        self._sent: dict[int, MonoMs] = {}
        self.seen_through_ms: MonoMs | None = None
        self._barrier = 0
        self.mirror = Mirror()
        self.leader = "r1"
        self.digests = DigestCheck(name, "0.2.0", clock, cast(Feeder, self), lambda: self.leader)
        self.start()

    def start_over(self, reason: str) -> None:
        self.reasons.append(reason)

    def start(self) -> None:
        """From a snapshot, which the stream overlaps."""
        self.complete = False
        self.mirror = Mirror()
        self.digests.restarted()
        self._place = len(self._history.stream)
        for _ in range(self._history.random.randrange(4)):
            self._history.write()  # while it is read
        for key, fields in self._history.documents.items():
            if key[0] is not JOBS or fields["state"] in LIVE:
                self.mirror.fold([Change(key[0], Operation.PUT, key[1], lean(key, fields))])
        self._barrier = self._beat + 1

    def beat(self) -> None:
        self._beat += 1
        self._sent[self._beat] = self._clock.mono_ms()
        status = make_replica(self.name, beat=self._beat, version="0.2.0", marks=self.digests.published)
        stored = document_of(status)
        key = (REPLICAS, self.name)
        fields = {name: stored[name] for name in LEAN_FIELDS[REPLICAS] if name in stored}
        self._history.versions.append({**self._history.documents, key: fields})
        self._history.stream.append(Change(REPLICAS, Operation.PUT, self.name, fields))

    def follow(self, most: int, *, fetching: bool = True) -> None:
        """The next changes, up to ``most``; then what is wanted is read, as it is now."""
        stream = self._history.stream
        batch = [
            replace(change, position=f"{place:012d}")
            for place, change in enumerate(stream[self._place : self._place + most], self._place)
        ]
        self._place += len(batch)
        folded = self.mirror.fold([change for change in batch if not self.drops(change)])
        self._told(folded)
        if folded.wanted and fetching:
            documents: dict[Key, dict[str, Any]] = self._history.documents
            present_now = [present(key, documents) for key in folded.wanted]
            self._told(self.mirror.fold_fetched(folded.wanted, present_now))

    def catch_up(self) -> None:
        while self._place < len(self._history.stream):
            self.follow(100)

    def _told(self, folded: Folded) -> None:
        self.digests.folded(self.mirror, folded.marks)
        for fact in folded.facts:
            if isinstance(fact, NounSeen) and isinstance(fact.noun, ReplicaStatus):
                if fact.id == self.name:
                    self.seen_through_ms = self._sent[fact.noun.beat]
                    if not self.complete and fact.noun.beat >= self._barrier:
                        self.complete = True
                self.digests.seen(fact.noun)


class Cluster:
    def __init__(self, seed: int, replicas: int = 3) -> None:
        self.random = Random(seed)
        self.clock = HandClock()
        self.history = History(self.random)
        self.followers = [Follower(f"r{number}", self.history, self.clock) for number in range(1, replicas + 1)]

    def turn(self) -> None:
        """Something of everything that goes on in a busy cluster."""
        self.clock.now += 1
        fate = self.random.random()
        one = self.random.choice(self.followers)
        if fate < 0.5:
            self.history.write()
        elif fate < 0.7:
            one.beat()
        else:
            one.follow(self.random.randint(1, 12), fetching=self.random.random() < 0.8)

    def settle(self) -> None:
        """All have shown and seen a few marks of a history that stands still."""
        for _ in range(12):
            for one in self.followers:
                self.clock.now += 1
                one.beat()
            for one in self.followers:
                self.clock.now += 1
                one.catch_up()
