"""How virtual time passes: at the pace of the loops while anything happens, in leaps while nothing does.

A replica and a processor look around several times a second. To run all of that for a week would take minutes, so
where nothing runs and nothing has happened for a moment, time leaps to the next thing that is due: the loops then find
themselves late, as after a pause of the whole process, which they are built to survive.
"""

import asyncio
from datetime import UTC, datetime, timedelta

from hascheduler.model.collection import Collection
from hascheduler.model.job import TERMINAL
from hascheduler.model.values.instants import WallMs
from hascheduler.testing.cluster import LEAP_MAX_S, VirtualClock, VirtualCluster
from hascheduler.testing.virtual_loop import VirtualLoop

_QUIET_S = 0.6
"""Longer than any loop waits between two looks at what there is to do."""
_SETTLE_MAX_S = 5.0
_TURN_S = 0.05
_INSTANT_S = 1e-6


class PassingTime:
    """Owner of the instant up to which time was asked to pass."""

    def __init__(self, loop: VirtualLoop, clock: VirtualClock, cluster: VirtualCluster) -> None:
        self._loop = loop
        self._clock = clock
        self._cluster = cluster
        self._reached_ms = clock.wall_ms()

    def reached(self) -> datetime:
        """Where an advance goes on from: the end of the last one, and not the moment after it in which it settled."""
        now_ms = self._clock.wall_ms()
        if now_ms - self._reached_ms > _SETTLE_MAX_S * 1_000 + 1_000:
            self._reached_ms = now_ms
        return datetime.fromtimestamp(self._reached_ms / 1_000, UTC)

    async def advance_to(self, instant: datetime) -> None:
        """What is due at ``instant`` itself happens too; handlers that still sleep then go on sleeping."""
        until_s = self._loop.time() + (instant.timestamp() * 1_000 - self._clock.wall_ms()) / 1_000
        while (left_s := until_s - self._loop.time()) > _INSTANT_S:
            await self._pass(left_s)
        for _ in range(round(_SETTLE_MAX_S / _QUIET_S)):
            if await self._nothing_happens(_QUIET_S):
                break
        self._reached_ms = max(self._reached_ms, WallMs(round(instant.timestamp() * 1_000)))

    async def drain(self, within: timedelta, job_id: str | None = None) -> list[str]:
        """Pass time until all jobs have ended, or that one has; the ids of those that have not ``within`` the span."""
        until_s = self._loop.time() + within.total_seconds()
        while live := self._live(job_id):
            left_s = until_s - self._loop.time()
            if left_s <= _INSTANT_S:
                return live
            await self._pass(left_s)
        return []

    async def _pass(self, left_s: float) -> None:
        until_s = self._loop.time() + left_s
        if await self._nothing_happens(min(_QUIET_S, left_s)) and self._loop.may_leap:
            leap_s = min(self._until_due_s(), until_s - self._loop.time(), LEAP_MAX_S)
            if leap_s > 0:
                self._loop.leap(leap_s)
                await asyncio.sleep(0)

    async def _nothing_happens(self, for_s: float) -> bool:
        """Lets so much time pass, or less where something is written."""
        history = self._cluster.database.history
        seen = history.newest
        until_s = self._loop.time() + for_s
        while (left_s := until_s - self._loop.time()) > _INSTANT_S:
            await asyncio.sleep(min(_TURN_S, left_s))
            if history.newest != seen:
                return False
        return True

    def _until_due_s(self) -> float:
        handler_s = self._loop.next_handler_timer_s() - self._loop.time()
        step_ms = self._cluster.replica.next_step_at_ms
        return handler_s if step_ms is None else min(handler_s, (step_ms - self._clock.wall_ms()) / 1_000)

    def _live(self, job_id: str | None) -> list[str]:
        jobs = self._cluster.database.documents(Collection.JOBS)
        return [str(job["_id"]) for job in jobs if job["state"] not in TERMINAL and job_id in (None, job["_id"])]
