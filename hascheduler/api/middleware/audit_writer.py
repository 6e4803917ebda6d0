"""Stores the audit records, and bounds how much of the audit log one party may take.

A request without an identity leaves no record: it is counted, and a sample of such requests is in the log of the
process. A refused request is recorded up to a burst and then now and then; the caller's next record says how many were
left out. A change is always recorded, as far as the caller's share of the queue goes. The database keeps the newest
records, as many as the settings say; the writers delete older ones now and then.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from contextlib import suppress
from itertools import islice
from secrets import token_hex

import structlog

from hascheduler.errors import StoreUnavailable
from hascheduler.model.token import sessions_of
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import AuditStore, Clock, audit_id
from hascheduler.schema.audit import AuditRecord

log = structlog.get_logger(__name__)

QUEUE_MAX = 10_000
SHARE_MAX = QUEUE_MAX // 4
"""The most records of one party in the queue."""
GROUP_MAX = 1_000
RECORDS_MAX = 500_000
TRIM_EVERY = 1_000
"""After storing so many records, this process deletes the oldest ones beyond the limit."""
_GROUP_EVERY_S = 1.0
"""The first record of a group waits at most this long for others, and no longer than until there are `GROUP_MAX`: a
write to the database costs more than a request. The line in the log of the process waits for nothing."""
_RETRY_AFTER_S = 1.0
_FINAL_FLUSH_S = 3.0
_SAMPLE_BURST, _SAMPLE_EVERY_MS = 20, 10_000
_REFUSALS_BURST, _REFUSAL_EVERY_MS = 100, 10_000
_PARTIES_MAX = 1_000


class AuditWriter:
    """Owner of the records that are not stored yet. ``run`` stores them until it is cancelled.

    ``strangers`` says which requests without an identity leave a line in the log, ``refusals`` which refused ones of a
    party leave a record.
    """

    def __init__(self, store: AuditStore, clock: Clock, records_max: int = RECORDS_MAX) -> None:
        self._store = store
        self._clock = clock
        self._records_max = records_max
        self._untrimmed = 0
        self.strangers = Sampler(_SAMPLE_BURST, _SAMPLE_EVERY_MS)
        self.refusals = Samplers(_REFUSALS_BURST, _REFUSAL_EVERY_MS)
        self._waiting_of: Counter[str] = Counter()
        self._process = token_hex(4)
        self._count = 0
        self._waiting: deque[AuditRecord] = deque()
        self._arrived = asyncio.Event()
        self._is_group = asyncio.Event()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many records are in the log of the process only."""
        return self._dropped

    def next_id(self) -> str:
        self._count += 1
        return audit_id(self._clock.wall_ms(), self._count, self._process)

    def add(self, record: AuditRecord) -> bool:
        """Queue ``record``; whether there was room."""
        party, is_full = party_of(record), len(self._waiting) >= QUEUE_MAX
        if is_full or self._waiting_of[party] >= SHARE_MAX:
            self._dropped += 1
            if self._dropped.bit_count() == 1:  # the 1st, 2nd, 4th, 8th …
                reason = "the queue is full" if is_full else f"too many of {party} wait"
                log.warning("audit_records_dropped", dropped=self._dropped, reason=reason)
            return False
        self._waiting_of[party] += 1
        self._waiting.append(record)
        self._arrived.set()
        if len(self._waiting) >= GROUP_MAX:
            self._is_group.set()
        return True

    async def run(self) -> None:
        try:
            while True:
                await self._arrived.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_GROUP_EVERY_S):
                        await self._is_group.wait()
                self._arrived.clear()
                self._is_group.clear()
                try:
                    await self.flush()
                except StoreUnavailable as error:
                    log.warning("audit_not_written", waiting=len(self._waiting), error=str(error))
                    await asyncio.sleep(_RETRY_AFTER_S)
                    self._arrived.set()
        finally:
            await self._flush_finally()

    async def flush(self) -> None:
        """Store all queued records, and now and then delete those beyond the limit."""
        while self._waiting:
            group = list(islice(self._waiting, GROUP_MAX))
            await self._store.append(group)
            for _ in group:
                self._waiting_of[party_of(self._waiting.popleft())] -= 1
            self._waiting_of += Counter()  # forget who has none
            self._untrimmed += len(group)
        if self._untrimmed >= TRIM_EVERY:
            await self._store.trim(self._records_max)
            self._untrimmed = 0

    async def _flush_finally(self) -> None:
        try:
            async with asyncio.timeout(_FINAL_FLUSH_S):
                await self.flush()
        except (StoreUnavailable, TimeoutError):
            log.warning("audit_not_written", waiting=len(self._waiting), error="the process ends")


def party_of(record: AuditRecord) -> str:
    """The sessions of one token are one party: a login must not multiply its share."""
    return sessions_of(record.token_id or record.who)


class Sampler:
    """Takes ``burst`` at once, and then one each ``every_ms``; the others are counted."""

    def __init__(self, burst: int, every_ms: int) -> None:
        self._burst = burst
        self._every_ms = every_ms
        self._left = burst
        self._since_ms: int | None = None
        self._left_out = 0

    def take(self, now: MonoMs) -> int | None:
        """How many were left out before this one; None: this one is left out as well."""
        since_ms = now if self._since_ms is None else self._since_ms
        regained = (now - since_ms) // self._every_ms
        self._left = min(self._burst, self._left + regained)
        # A full sampler saves nothing up.
        self._since_ms = now if self._left == self._burst else since_ms + regained * self._every_ms
        if self._left == 0:
            self._left_out += 1
            return None
        self._left -= 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class Samplers:
    """Owner of a `Sampler` for each of the thousand parties that took last."""

    def __init__(self, burst: int, every_ms: int) -> None:
        self._burst = burst
        self._every_ms = every_ms
        self._of: OrderedDict[str, Sampler] = OrderedDict()

    def take(self, party: str, now: MonoMs) -> int | None:
        """As `Sampler.take`, of the party's own."""
        sampler = self._of.pop(party, None) or Sampler(self._burst, self._every_ms)
        self._of[party] = sampler
        if len(self._of) > _PARTIES_MAX:
            self._of.popitem(last=False)
        return sampler.take(now)
