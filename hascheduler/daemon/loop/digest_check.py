"""Do the replicas' mirrors agree? Their digests are compared at points of the stream that all of them pass.

::

    stream   ──┬────────────┬──────────────┬──► a beat of some replica, which all of them fold: a *mark*
    mirror     digest       digest         digest         noted there, and published with the next own beat
    others     …            …              …              as they come by: equal at every mark, or one is wrong

A digest is compared only where the mirror holds what the stream has delivered up to there and nothing later: a document
that was read beside the stream is ahead of it until the stream has passed the moment of the reading, which the return
of an own beat shows that was sent after it. So an alarm is never made by the way a mirror was filled.

A replica that is alone against a majority that agrees is wrong, and reads everything again: a mirror is only a copy,
the database is the truth, and that is what it would do after lost history. Of two it is the one that does not lead, as
nothing waits for it; should the leader be wrong, they still differ afterwards, and that is for people. It is done once
in `_AGAIN_MS` at most: where something makes mirrors differ for good, reading again and again helps nothing.

Replicas of another version are not compared with: what they mirror may be something else.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

import structlog

from hascheduler.daemon.config import ReplicaConfig
from hascheduler.mirror.mirror import Mark, Mirror
from hascheduler.model.replica import ReplicaStatus
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import Clock

log = structlog.get_logger(__name__)

PUBLISHED = 8
"""More than there are marks between two beats of one replica."""
_NOTED = 512
_SHOWN_FOR_MS = 60_000
"""A difference is shown for so long after it was last seen: it may be mended at once, and is to be noticed."""
_AGAIN_MS = 600_000

Digests = OrderedDict[str, str]


class Feed(Protocol):
    """What fills the mirror, how far the mirror may be trusted, and how to have it read again."""

    @property
    def complete(self) -> bool: ...

    @property
    def heard_ms(self) -> MonoMs | None: ...

    def start_over(self, reason: str) -> None: ...


class DigestCheck:
    """Owner of the digests of this mirror and of the others'."""

    def __init__(
        self,
        config: ReplicaConfig,
        version: str,
        clock: Clock,
        *,
        feed: Feed,
        leading: Callable[[], bool],
    ) -> None:
        self._replica_id = config.replica_id
        self._version = version
        self._clock = clock
        self._feed = feed
        self._leading = leading
        self._own: Digests = OrderedDict()
        self._others: dict[str, Digests] = {}
        self._there: set[str] = set()
        self._differed: dict[str, MonoMs] = {}
        self._ahead: int | None = None
        self._ahead_at = clock.mono_ms()
        self._passed: int | None = None
        self._started_over_at: MonoMs | None = None

    @property
    def published(self) -> tuple[tuple[str, str], ...]:
        """The newest marks, for the others."""
        return tuple(list(self._own.items())[-PUBLISHED:])

    @property
    def differing(self) -> Collection[str]:
        """The ids of those whose mirrors differ from this one, or did a moment ago."""
        since_ms = self._clock.mono_ms() - _SHOWN_FOR_MS
        return [id for id, at_ms in self._differed.items() if at_ms > since_ms]

    def folded(self, mirror: Mirror, marks: Iterable[Mark]) -> None:
        """The mirror has folded some more of the stream; each batch comes here."""
        for mark in marks:
            if self._is_exact(mark):
                _note(self._own, mark.point, mark.digest, _NOTED)
                self._compare(mark.point)
        if not self._feed.complete or mirror.ahead != self._ahead:
            self._ahead, self._ahead_at, self._passed = mirror.ahead, self._clock.mono_ms(), None
            return
        heard_ms = self._feed.heard_ms
        if heard_ms is not None and heard_ms > self._ahead_at:
            self._passed = mirror.ahead

    def seen(self, status: ReplicaStatus) -> None:
        """What another replica publishes."""
        if status.id == self._replica_id:
            return
        self._there.add(status.id)
        if status.version != self._version:
            return
        if not status.marks:
            # It has started over: what it published before is of another mirror.
            self._others.pop(status.id, None)
            return
        digests = self._others.setdefault(status.id, OrderedDict())
        for point, digest in status.marks:
            if point not in digests:
                _note(digests, point, digest, _NOTED)
                self._compare(point)

    def gone(self, replica_id: str) -> None:
        self._others.pop(replica_id, None)
        self._there.discard(replica_id)

    def restarted(self) -> None:
        """The mirror is a new one."""
        self._own.clear()
        self._there.clear()
        self._passed = None

    def _is_exact(self, mark: Mark) -> bool:
        return mark.is_settled and mark.ahead == self._passed

    def _compare(self, point: str) -> None:
        own = self._own.get(point)
        if own is None:
            return
        said = {id: digests[point] for id, digests in self._others.items() if point in digests}
        different = {id: digest for id, digest in said.items() if digest != own}
        already = set(self.differing)
        now = self._clock.mono_ms()
        for id, digest in different.items():
            self._differed[id] = now
            if id not in already:
                log.error("mirrors_differ", other=id, at=point, digest=own, other_digest=digest)
        if different and self._is_wrong(said, own):
            self._read_again(point, now)

    def _is_wrong(self, said: dict[str, str], own: str) -> bool:
        if len(self._there) == 1:
            return not self._leading()
        agreeing = max(Counter(said.values()).values())
        is_majority = 2 * agreeing > len(self._there) + 1
        return agreeing > 1 and is_majority and own not in said.values()

    def _read_again(self, point: str, now: MonoMs) -> None:
        if self._started_over_at is not None and now - self._started_over_at < _AGAIN_MS:
            return
        self._started_over_at = now
        self._feed.start_over(f"its mirror differs from those of the others at {point}")


def _note(digests: Digests, point: str, digest: str, most: int) -> None:
    digests[point] = digest
    while len(digests) > most:
        digests.popitem(last=False)
