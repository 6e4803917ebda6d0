"""The demo's own schedules and jobs in a cluster that others use too.

Schedules have names of this run, and are deleted at its end, however it ends. Jobs are read by schedule, all pages.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from hascheduler.client import AsyncScheduler, Job, ListPage
from hascheduler.demo.kubernetes.kubectl import poll_until
from hascheduler.demo.replica_api import ReplicaApi
from hascheduler.errors import CallerError, WorldError
from hascheduler.model.job import LIVE, schedule_of
from hascheduler.model.values.instants import WallMs, parse_instant

_PAGE = 200
_AT_ONCE = 8
_PATIENCE_S = 30.0
_EVERY_S = 0.3
_NEVER = {"type": "once", "at": "2098-01-01T00:00:00Z"}


class DemoJobs:
    """Owner of what was read last."""

    def __init__(self, api: ReplicaApi) -> None:
        self._api = api
        self._read: dict[str, Mapping[str, Any]] = {}

    async def count_unended(self, ids: Collection[str]) -> int:
        """How many of those are not there yet, or live."""
        # What has ended stays so, and its schedule need not be read again.
        for schedule in _schedules(id for id in ids if not self._has_ended(id)):
            await self._read_schedule(schedule)
        return sum(not self._has_ended(id) for id in ids)

    async def read(self, ids: Collection[str], seen: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        """The jobs that are there. A list is without attempts: what one attempt achieved and was ``seen`` to achieve
        needs no closer look, and everything else gets one."""
        for schedule in _schedules(ids):
            await self._read_schedule(schedule)
        there = {id: self._read[id] for id in ids if id in self._read}
        plain = {id for id, job in there.items() if job["state"] == "succeeded" and job["attempt"] == 1 and id in seen}
        gate = asyncio.Semaphore(_AT_ONCE)

        async def fetched(id: str) -> tuple[str, Mapping[str, Any]]:
            async with gate:
                return id, (await self._api.ask(lambda scheduler: scheduler.get(id))).fields

        in_full = dict(await asyncio.gather(*(fetched(id) for id in there if id not in plain)))
        return {id: in_full[id] if id in in_full else _after_one_attempt(job) for id, job in there.items()}

    def _has_ended(self, id: str) -> bool:
        return id in self._read and self._read[id]["state"] not in LIVE

    async def _read_schedule(self, schedule: str) -> None:
        after: str | None = None
        while True:
            page = await self._api.ask(partial(_page, schedule, after))
            self._read.update({job.id: job.fields for job in page.items})
            after = page.next
            if after is None:
                return


async def _page(schedule: str, after: str | None, scheduler: AsyncScheduler) -> ListPage[Job]:
    return await scheduler.page(schedule=schedule, limit=_PAGE, after=after)


def _schedules(ids: Iterable[str]) -> list[str]:
    return sorted({schedule for id in ids if (schedule := schedule_of(id)) is not None})


def _after_one_attempt(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """As the job itself would be shown, where its first attempt was its last."""
    return {**job, "attempts": [{"number": 1, "outcome": "succeeded", "processor": None}]}


class DemoSchedules:
    """Owner of the names that were asked for, and of how far the cluster's clock is ahead of this machine's."""

    def __init__(self, api: ReplicaApi, say: Callable[[str], None]) -> None:
        self._api = api
        self._say = say
        self._asked_for: list[str] = []
        self._ahead_ms = 0

    def wall_ms(self) -> WallMs:
        """The cluster's clock, right to within half a request."""
        return WallMs(_here_ms() + self._ahead_ms)

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        # Noted before it is asked for: an answer that got lost leaves a schedule behind too.
        self._asked_for.append(body["name"])

        async def ask() -> tuple[int, Mapping[str, Any], int]:
            before_ms = _here_ms()
            return before_ms, await self._api.create(body), _here_ms()

        what = f"the schedule {body['name']} is made"
        before_ms, created, after_ms = await poll_until(ask, what, patience_s=_PATIENCE_S, every_s=_EVERY_S)
        self._ahead_ms = parse_instant(created["created_at"]) - (before_ms + after_ms) // 2
        return created

    async def read_clock(self, name: str) -> None:
        """Know the cluster's clock before anything depends on it: from a schedule that never fires."""
        await self.create({"name": name, "trigger": _NEVER, "job": {"definition": "log"}})

    async def delete_all(self) -> None:
        """What can't be deleted is named, with what would do it."""
        if self._asked_for:
            self._say(f"deleting the schedules of this run ({len(self._asked_for)})")
        try:
            while self._asked_for:
                name = self._asked_for[-1]
                await poll_until(
                    lambda: self._deleted(name),  # noqa: B023  # awaited within the turn
                    f"{name} is deleted",
                    patience_s=_PATIENCE_S,
                    every_s=_EVERY_S,
                )
                self._asked_for.pop()
        except (WorldError, CallerError) as error:
            self._say(
                f"left behind, to be deleted with `hascheduler schedule delete`: {', '.join(self._asked_for)} ({error})"
            )

    async def _deleted(self, name: str) -> bool:
        await self._api.ask(lambda scheduler: scheduler.schedules.delete(name))
        return True


def _here_ms() -> int:
    return time.time_ns() // 1_000_000
