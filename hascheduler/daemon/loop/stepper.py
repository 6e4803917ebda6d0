"""Turn the core: take the waiting inputs, ask for a step, and hand its parts to the loops that act on them.

Before every step it checks that this replica may still decide. The renewal of the lease depends on its progress: a loop
that hangs, for whatever reason, loses the lease.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import exp

import structlog

from hascheduler.daemon.loop.batch_delay import BatchDelay
from hascheduler.daemon.loop.committer import Committer
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.loop.recorder import Recorder
from hascheduler.daemon.loop.replica_heartbeat import ReplicaHeartbeat
from hascheduler.daemon.outbound.publisher import Publisher
from hascheduler.dispatch.capacity.heartbeats import Heartbeats
from hascheduler.dispatch.decisions import Decision
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input, ProcessorLost, Resynced, TrustLost
from hascheduler.mirror.changes import ProcessorGone, ProcessorSeen
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.ports import Clock
from hascheduler.telemetry.metrics_replica import ReplicaMetrics

log = structlog.get_logger(__name__)

_LEADING_PAUSE_MAX_MS = 250
_FOLLOWING_PAUSE_MAX_MS = 1_000
"""A turn without work costs more than most others, as the CPU has to be woken for it."""


_LAG_MEMORY_MS = 1_000.0
_LAG_KNOWN_MS = 2_000


class DecisionLag:
    """Owner of the mean age of the oldest decision that has not come back, over about a second of turns."""

    def __init__(self) -> None:
        self._mean_ms = 0.0
        self._at_ms: MonoMs | None = None

    def observe(self, age_ms: int, now: MonoMs) -> None:
        weight = 1.0 if self._at_ms is None else 1 - exp(-max(now - self._at_ms, 1) / _LAG_MEMORY_MS)
        self._mean_ms += weight * (age_ms - self._mean_ms)
        self._at_ms = now

    def mean_ms(self, now: MonoMs) -> int | None:
        """Return the mean; None if no decision was outstanding for a while."""
        return None if self._at_ms is None or now - self._at_ms >= _LAG_KNOWN_MS else round(self._mean_ms)

    def clear(self) -> None:
        self._at_ms = None


@dataclass(kw_only=True)
class Stepper:
    """The loop that turns the core.

    ``active_committer`` returns the present term's committer, or None if this replica must not decide. ``seen`` gets
    the inputs of each step, right after it; ``decided`` gets the decisions right before they are submitted. ``rounds``
    counts the turns of the loop, even if the committer had no room; ``turned_at_ms`` is when it last took a step. The
    core has to decide by itself at ``next_step_at_ms``; None if only a new input makes it decide. ``seen_through_ms``
    returns the moment before which everything written is in the inbox, or was.
    """

    core: Dispatcher
    heartbeats: Heartbeats
    inbox: Inbox
    publisher: Publisher
    recorder: Recorder
    clock: Clock
    active_committer: Callable[[], Committer | None]
    own_heartbeat: ReplicaHeartbeat
    seen_through_ms: Callable[[], MonoMs | None]
    want: Callable[[Iterable[str]], None]
    seen: Callable[[Sequence[Input]], None]
    decided: Callable[[Sequence[Decision]], None]
    metrics: ReplicaMetrics
    batch_delay: BatchDelay
    rounds: int = field(default=0, init=False)
    next_step_at_ms: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.turned_at_ms = self.clock.mono_ms()
        self._decision_lag = DecisionLag()

    @property
    def decision_lag_ms(self) -> int | None:
        """Return how long this leader's decisions take to come back in its stream; None if it decides nothing."""
        return self._decision_lag.mean_ms(self.clock.mono_ms())

    async def run(self) -> None:
        while True:
            # If the core has more to do than fits one step, other loops must still run: this yields to them.
            await self.inbox.wait(self._pause_s())
            # There is no delay after a quiet time.
            delay_s = self.batch_delay.wait_s(self.clock.mono_ms())
            if delay_s:
                await asyncio.sleep(delay_s)
            committer = self.active_committer()
            room = await committer.ready() if committer is not None else True
            # The lease may have been lost while waiting for room, and a new term may have begun. Read the time first:
            # the committer vouches for the clock as it was then.
            now = self.clock.wall_ms()
            committer = self.active_committer()
            self.rounds += 1
            if room:
                self.turned_at_ms = self.clock.mono_ms()
                self._turn(committer, now)

    def _turn(self, committer: Committer | None, now: WallMs) -> None:
        inputs = self.inbox.take()
        self._watch_processors(inputs)
        if committer is None:
            inputs.append(TrustLost())
            self.recorder.follows()
        with self.metrics.step_seconds.time() if committer is not None else nullcontext():
            step = self.core.step(now, inputs)
        self.next_step_at_ms = step.wake_at_ms
        self.inbox.ends_can_wait = not self.core.awaits_ends
        self.seen(inputs)
        self.recorder.stepped(now, inputs, step.decisions)
        if step.refetch:
            self.want(step.refetch)
        if committer is None:
            self._decision_lag.clear()
            return
        promised_at_ms = self.core.state.ledger.oldest_at()
        if promised_at_ms is not None:
            self._decision_lag.observe(max(now - promised_at_ms, 0), self.clock.mono_ms())
        if step.settled:
            committer.account.settle(step.settled)
        if step.decisions:
            self.decided(step.decisions)
            committer.submit(step.decisions, majority=step.retried)
            self.batch_delay.passed(len(step.decisions), self.clock.mono_ms())
        if step.sends:
            self.publisher.offer(step.sends)

    def _watch_processors(self, inputs: list[Input]) -> None:
        now = self.clock.mono_ms()
        for seen in inputs:
            match seen:
                case ProcessorSeen(processor):
                    self.heartbeats.seen(processor, now)
                case ProcessorGone(processor_id):
                    self.heartbeats.gone(processor_id)
                case Resynced():
                    self.heartbeats.clear()
                case _:
                    pass
        lost = self.heartbeats.newly_lost(now, listening=self.own_heartbeat.fresh, seen_through=self.seen_through_ms())
        for processor_id, beat in lost:
            log.warning("processor_lost", processor=processor_id, beat=beat)
            inputs.append(ProcessorLost(processor_id, beat))

    def _pause_s(self) -> float:
        """Return the time until the core's next step, but never long: silence must be noticed, and progress shown."""
        longest_ms = _FOLLOWING_PAUSE_MAX_MS if self.active_committer() is None else _LEADING_PAUSE_MAX_MS
        if self.next_step_at_ms is None:
            return longest_ms / 1000
        return min(max(self.next_step_at_ms - self.clock.wall_ms(), 0), longest_ms) / 1000
