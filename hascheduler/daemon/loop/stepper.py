"""Turns the core: takes the inputs that wait, asks for a step, hands its parts to the loops that carry them out.

It checks, before every step, that this replica may still decide. Its progress is what the lease's renewal depends on:
a loop that hangs, for whatever reason, loses the lease.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import exp
from typing import Protocol

import structlog

from hascheduler.daemon.loop.batch_delay import BatchDelay
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.loop.recorder import Recorder
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
"""A turn that finds nothing to do costs more than most that do, as the processor has to be woken for it."""


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
        """None where nothing was under way for a while."""
        return None if self._at_ms is None or now - self._at_ms >= _LAG_KNOWN_MS else round(self._mean_ms)

    def clear(self) -> None:
        self._at_ms = None


class DecisionSink(Protocol):
    """Where a leader's decisions go, for as long as its term lasts."""

    async def ready(self) -> bool: ...

    def submit(self, decisions: tuple[Decision, ...], *, majority: bool) -> None: ...

    def settled(self, decisions: tuple[Decision, ...]) -> None: ...


class Hearing(Protocol):
    """How far what the stream delivers can be trusted to be all there is."""

    @property
    def listening(self) -> bool:
        """The stream is not silent: what is written comes by."""
        ...

    @property
    def heard_ms(self) -> MonoMs | None:
        """Whatever was written before then is in the inbox, or was."""
        ...


@dataclass(kw_only=True)
class Stepper:
    """``active_committer`` gives the present term's committer, or None when this replica must not decide.

    ``seen`` gets the inputs of each step, right after it; ``decided`` what is submitted, right before. ``rounds``
    counts how often the loop came round, also where the committer had no room; ``turned_at_ms`` is when it last took a
    step. At ``next_step_at_ms`` the core has something to decide of its own accord; None: only when it sees something
    new.
    """

    core: Dispatcher
    heartbeats: Heartbeats
    inbox: Inbox
    publisher: Publisher
    recorder: Recorder
    clock: Clock
    active_committer: Callable[[], DecisionSink | None]
    hearing: Hearing
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
        """How long what this leader decides takes to come back in its stream; None: it decides nothing."""
        return self._decision_lag.mean_ms(self.clock.mono_ms())

    async def run(self) -> None:
        while True:
            # A core with more to do than one step holds must not keep the other loops waiting: this gives way.
            await self.inbox.wait(self._pause_s())
            # Nothing is held back after a quiet time.
            delay_s = self.batch_delay.wait_s(self.clock.mono_ms())
            if delay_s:
                await asyncio.sleep(delay_s)
            committer = self.active_committer()
            room = await committer.ready() if committer is not None else True
            # The lease may have been lost while waiting for room, and a new term may have begun. The time is read
            # first: what the committer answers for is the clock as it was then.
            now = self.clock.wall_ms()
            committer = self.active_committer()
            self.rounds += 1
            if room:
                self.turned_at_ms = self.clock.mono_ms()
                self._turn(committer, now)

    def _turn(self, committer: DecisionSink | None, now: WallMs) -> None:
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
        promised_at_ms = self.core.oldest_promise_at_ms
        if promised_at_ms is not None:
            self._decision_lag.observe(max(now - promised_at_ms, 0), self.clock.mono_ms())
        if step.settled:
            committer.settled(step.settled)
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
        silent = self.heartbeats.newly_lost(now, listening=self.hearing.listening, heard=self.hearing.heard_ms)
        for processor_id, beat in silent:
            log.warning("processor_lost", processor=processor_id, beat=beat)
            inputs.append(ProcessorLost(processor_id, beat))

    def _pause_s(self) -> float:
        """Until the core's next appointment, but never long: silence must be noticed, and progress shown."""
        longest_ms = _FOLLOWING_PAUSE_MAX_MS if self.active_committer() is None else _LEADING_PAUSE_MAX_MS
        if self.next_step_at_ms is None:
            return longest_ms / 1000
        return min(max(self.next_step_at_ms - self.clock.wall_ms(), 0), longest_ms) / 1000
