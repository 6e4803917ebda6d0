"""Keep a digest of a mirror's documents and the counts of live ones, as documents come and go.

Equal sets of documents have equal digests, in whatever order they were built. Each (collection, id, revision) is hashed
to 64 bits and the hashes are added modulo 2**64 (Clarke et al., Incremental Multiset Hash Functions, 2003). Replicas of
neighbouring releases compare their digests: the formula must not change.

The counts are of live jobs by state and by definition, lane and tenant, and of paused schedules. Counting a million
jobs for each request would block everything else.
"""

from collections import Counter
from hashlib import blake2b
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.job import JobRef, JobState
from hascheduler.schema.schedule import ScheduleRef

UNHASHED_MAX = 5_000


class Digest:
    """Owner of the sum of all members' hashes, and of members not hashed yet: most are gone before it is read."""

    __slots__ = ("_sum", "_unhashed")

    def __init__(self) -> None:
        self._sum = 0
        self._unhashed: dict[tuple[str, int], int] = {}  # how often each is to be added; less than 0: subtracted

    def replace(self, member: str, before: int | None, after: int | None) -> None:
        """Replace the revision ``before`` of ``member`` by ``after``; None if it was, or is, not a member."""
        if before == after:
            return
        if before is not None:
            self._count((member, before), -1)
        if after is not None:
            self._count((member, after), 1)
        if len(self._unhashed) > UNHASHED_MAX:
            self._add_up()

    def __str__(self) -> str:
        self._add_up()
        return f"{self._sum:016x}"

    def _count(self, versioned: tuple[str, int], more: int) -> None:
        count = self._unhashed.pop(versioned, 0) + more
        if count:
            self._unhashed[versioned] = count

    def _add_up(self) -> None:
        for (member, revision), count in self._unhashed.items():
            text = f"{member}/{revision}".encode("utf-8", "surrogatepass")
            self._sum += count * int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
        self._sum %= 1 << 64
        self._unhashed.clear()


UNCOUNTED_MAX = 1_000
_JOBS, _SCHEDULES = Collection.JOBS, Collection.SCHEDULES

Table = dict[str, Counter[str]]
_Place = tuple[JobState, str, str, str]
"""A state, a definition, a lane and a tenant."""


class LiveCounts:
    """Owner of the counts. Names without a live job are not in the tables."""

    def __init__(self) -> None:
        self.jobs: Counter[str] = Counter()
        """The live jobs by state."""
        self.of_definition: Table = {}
        """The live jobs by definition, then by state."""
        self.of_lane: Table = {}
        self.of_tenant: Table = {}
        self._uncounted: Counter[_Place] = Counter()
        """What the tables lack. A job that came and went between two reads is never added."""
        self.schedules_paused = 0

    def added_up(self) -> "LiveCounts":
        """Return the counts themselves, to be read before the next change."""
        self._add_up()
        return self

    def replaced(self, collection: Collection, before: Any | None, after: Any | None) -> None:
        """Count that the document was ``before`` and is ``after`` now; None if it did, or does, not exist."""
        if collection is _JOBS:
            if before is not None:
                self._count(before, -1)
            if after is not None:
                self._count(after, 1)
        elif collection is _SCHEDULES:
            self.schedules_paused += _is_paused(after) - _is_paused(before)

    def _count(self, job: JobRef, more: int) -> None:
        self._uncounted[job.state, job.definition, job.lane, job.tenant] += more
        if len(self._uncounted) > UNCOUNTED_MAX:
            self._add_up()

    def _add_up(self) -> None:
        for (state, definition, lane, tenant), more in self._uncounted.items():
            if more:
                _add(self.jobs, state.value, more)
                for table, name in ((self.of_definition, definition), (self.of_lane, lane), (self.of_tenant, tenant)):
                    row = table.setdefault(name, Counter())
                    _add(row, state.value, more)
                    if not row:
                        del table[name]
        self._uncounted.clear()


def _add(row: Counter[str], state: str, more: int) -> None:
    row[state] += more
    if not row[state]:
        del row[state]


def _is_paused(schedule: ScheduleRef | None) -> bool:
    return schedule is not None and schedule.paused_at_ms is not None
