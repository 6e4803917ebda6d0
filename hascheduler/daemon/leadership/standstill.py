"""Detect a stalled leader, or this replica's own stalled loop, and act on it.

**A standby** feeds `LeaderSuspicion` with the leader's signs in its stream. In doubt it asks both witnesses: it writes
beats of its own, which must come back, and connects to the leader's process, which must greet. If the stream is alive
and silent about the leader, and the process does not answer, it challenges the lease as it last saw it
(`hascheduler.election.suspicion`, which also covers wrong guesses).

**A leader** whose dispatch loop makes no progress, while everything else in its process does, ends its term and
releases the lease, so that another need not wait for it. This counts turns of the event loop rather than time: a
process without CPU, or one that was stopped itself, does not accuse its loop.

`StandstillWatch` owns the suspicion and the finding that the loop hangs. With ``standstill_after_ms`` 0 it does
nothing.
"""

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

import structlog

from hascheduler.daemon.config import ReplicaConfig
from hascheduler.daemon.leadership.leader import Leader
from hascheduler.daemon.leadership.liveness import GreetsInTime
from hascheduler.election.suspicion import Comeback, LeaderSuspicion
from hascheduler.lifecycle import in_time
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import Clock
from hascheduler.telemetry.metrics_replica import ReplicaMetrics

log = structlog.get_logger(__name__)

_QUESTIONS = 8
"""How many connections a threshold has time for, one after the other."""
_HANG_MIN_MS = 2_000
"""The dispatch loop may wait a second for room in the journal, while the database is slow."""
_HANG_CHECKS = 4
"""Checks are further apart than the loop ever pauses while it leads; a follower's loop turns once a second or more."""


@dataclass
class StandstillWatch:
    """The watch over the leader and this replica's dispatch loop; owner of the suspicion.

    ``beat_now`` makes this replica write a beat at once; ``rounds`` counts the turns of its dispatch loop.
    """

    config: ReplicaConfig
    leader: Leader
    clock: Clock
    _: KW_ONLY
    greets_in_time: GreetsInTime
    beat_now: Callable[[], int]
    rounds: Callable[[], int]
    metrics: ReplicaMetrics
    own_loop_hangs: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        config = self.config
        self.suspicion = LeaderSuspicion(config.replica_id, config.standstill_after_ms, config.retry_period_ms)
        self._lease: LeaseRecord | None = None
        self._suspected_term = 0
        self._changed = asyncio.Event()

    # Input from the stream

    def lease_seen(self, lease: LeaseRecord | None) -> None:
        known, self._lease = self._lease, lease
        self.suspicion.lease_seen(lease, self.clock.mono_ms())
        if (known.holder if known else "") != (lease.holder if lease else ""):
            self._changed.set()

    def sign_seen(self, replica_id: str) -> None:
        """Take a beat or a journal entry of that replica."""
        now = self.clock.mono_ms()
        comeback = self.suspicion.sign_seen(replica_id, now)
        if comeback is not None:
            resting_ms = self.suspicion.resting_ms(now)
            log.info(
                "leader_suspicion_resolved",
                suspicion=comeback.value,
                sign_of=replica_id,
                no_suspicion_for_ms=resting_ms,
            )
            self.metrics.suspicions.labels("wrong" if comeback is Comeback.WRONG else "right").inc()

    def stream_seen(self, seen_through_ms: MonoMs | None) -> None:
        """Note how far the stream is known to have brought everything."""
        self.suspicion.stream_seen(seen_through_ms, self.clock.mono_ms())
        self._judge()

    # The loops

    async def run(self) -> None:
        if self.config.standstill_after_ms <= 0:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_leader(), name="standstill-leader")
            tasks.create_task(self._watch_own_loop(), name="standstill-own-loop")

    async def _watch_leader(self) -> None:
        retry_s = self.config.retry_period_ms / 1_000
        while True:
            self._changed.clear()
            lease, now = self._lease, self.clock.mono_ms()
            if lease is None or self.leader.in_term or not self.suspicion.is_watching(now):
                await self._wait(retry_s)
                continue
            doubtful_in_ms = self.suspicion.doubtful_in_ms(now)
            if not self.suspicion.has_greeted:
                await self._ask(lease, retry_s)
                await self._wait(retry_s)
            elif doubtful_in_ms is None or doubtful_in_ms > 0:
                await self._wait(retry_s if doubtful_in_ms is None else doubtful_in_ms / 1_000)
            else:
                self.beat_now()
                question_s = self.suspicion.threshold_ms(now) / 1_000 / _QUESTIONS
                asked_ms = self.clock.mono_ms()
                await self._ask(lease, question_s)
                self._judge()
                # Send the beat that proves the whole threshold when it is over, not up to a question later.
                rest_s = question_s - (self.clock.mono_ms() - asked_ms) / 1_000
                suspicious_in_s = self.suspicion.suspicious_in_ms(self.clock.mono_ms()) / 1_000
                await self._wait(min(rest_s, suspicious_in_s) if suspicious_in_s > 0 else rest_s)

    async def _ask(self, lease: LeaseRecord, limit_s: float) -> None:
        greeted = await self.greets_in_time(lease.holder, lease.endpoint, limit_s)
        if self._lease is None or self._lease.holder != lease.holder:
            return  # the answer is about an earlier leader
        if greeted:
            self.suspicion.greeted()
        else:
            self.suspicion.unanswered()

    def _judge(self) -> None:
        now, lease = self.clock.mono_ms(), self._lease
        if lease is None or self.leader.in_term or not self.suspicion.is_stalled(now):
            return
        if lease.term != self._suspected_term:
            self._suspected_term = lease.term
            log.warning(
                "leader_stalled",
                holder=lease.holder,
                term=lease.term,
                silent_ms=self.suspicion.silent_ms(now),
                threshold_ms=self.suspicion.threshold_ms(now),
            )
            self.metrics.suspicions.labels("suspected").inc()
        self.leader.holder_stalled(lease.holder)

    async def _watch_own_loop(self) -> None:
        check_s = max(self.config.standstill_after_ms, _HANG_MIN_MS) / 1_000 / _HANG_CHECKS
        seen, unchanged = self.rounds(), 0
        while True:
            await asyncio.sleep(check_s)
            rounds = self.rounds()
            unchanged = 0 if rounds != seen else unchanged + 1
            seen = rounds
            if unchanged == _HANG_CHECKS:
                log.error("dispatch_loop_stalled", leading=self.leader.in_term)
            self.own_loop_hangs = unchanged >= _HANG_CHECKS
            if self.own_loop_hangs:
                self.leader.loop_hangs()

    async def _wait(self, limit_s: float) -> None:
        await in_time(self._changed.wait(), max(limit_s, 0.005))
