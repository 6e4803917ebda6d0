"""What became of the jobs, as the API tells: by schedule, all pages."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hascheduler.demo.replicas import Replicas
from hascheduler.model.job import LIVE, schedule_of

_PAGE = 200
_AT_ONCE = 8


class Jobs:
    """Owner of what was read last."""

    def __init__(self, api: Replicas) -> None:
        self._api = api
        self._read: dict[str, Mapping[str, Any]] = {}

    async def ended(self, ids: Collection[str]) -> bool:
        """Whether all those are there and none of them is live."""
        # What has ended stays so, and its schedule need not be read again.
        for schedule in _schedules(id for id in ids if not self._has_ended(id)):
            await self._read_schedule(schedule)
        return all(self._has_ended(id) for id in ids)

    async def read(self, ids: Collection[str], seen: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        """Those that are there. A list is without attempts: what one attempt achieved and was ``seen`` to achieve needs
        no closer look, and everything else gets one."""
        for schedule in _schedules(ids):
            await self._read_schedule(schedule)
        there = {id: self._read[id] for id in ids if id in self._read}
        plain = {id for id, job in there.items() if job["state"] == "succeeded" and job["attempt"] == 1 and id in seen}
        gate = asyncio.Semaphore(_AT_ONCE)

        async def closely(id: str) -> tuple[str, Mapping[str, Any]]:
            async with gate:
                return id, await self._api.get(f"/v1/jobs/{id}")

        looked = dict(await asyncio.gather(*(closely(id) for id in there if id not in plain)))
        return {id: looked[id] if id in looked else _at_first(job) for id, job in there.items()}

    def _has_ended(self, id: str) -> bool:
        return id in self._read and self._read[id]["state"] not in LIVE

    async def _read_schedule(self, schedule: str) -> None:
        after = ""
        while True:
            page = await self._api.get(f"/v1/jobs?schedule={schedule}&limit={_PAGE}{after}")
            self._read.update({job["id"]: job for job in page["items"]})
            if page["next"] is None:
                return
            after = f"&after={page['next']}"


def _schedules(ids: Iterable[str]) -> list[str]:
    return sorted({schedule for id in ids if (schedule := schedule_of(id)) is not None})


def _at_first(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """As the job itself would be shown, where its first attempt was its last."""
    return {**job, "attempts": [{"number": 1, "outcome": "succeeded", "processor": None}]}
