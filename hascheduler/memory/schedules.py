"""Schedules as the API writes them."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hascheduler.memory.connection import MemoryConnection
from hascheduler.memory.storable import stored_form
from hascheduler.model.documents import Collection, encode_template, encode_trigger
from hascheduler.ports import NewSchedule, StoredDocument


class MemoryScheduleStore:
    """`hascheduler.ports.ScheduleStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def create(self, schedule: NewSchedule) -> StoredDocument | None:
        async with self._connection.exchange("schedules.create") as database:
            document = stored_form(
                {
                    "_id": schedule.name,
                    "rev": 1,
                    **_written(schedule),
                    "cursor_ms": schedule.now,
                    "created_at_ms": schedule.now,
                }
            )
            return document if database.insert(Collection.SCHEDULES, document) else None

    async def replace(self, schedule: NewSchedule, expected_rev: int | None = None) -> StoredDocument | None:
        async with self._connection.exchange("schedules.replace") as database:
            stored = database.find(Collection.SCHEDULES, schedule.name)
            if stored is None or expected_rev not in (None, stored["rev"]):
                return None
            written = _written(schedule)
            if written["trigger"] != stored["trigger"]:
                written["cursor_ms"] = max(stored["cursor_ms"], schedule.now)
            written["rev"] = stored["rev"] + 1
            return deepcopy(database.update(Collection.SCHEDULES, stored, written))

    async def get(self, name: str) -> StoredDocument | None:
        async with self._connection.exchange("schedules.get") as database:
            return deepcopy(database.find(Collection.SCHEDULES, name))

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        async with self._connection.exchange("schedules.list") as database:
            return deepcopy(database.page(Collection.SCHEDULES, after, limit))

    async def delete(self, name: str) -> bool:
        async with self._connection.exchange("schedules.delete") as database:
            return database.delete(Collection.SCHEDULES, name)


def _written(schedule: NewSchedule) -> dict[str, Any]:
    return {
        "trigger": encode_trigger(schedule.trigger),
        "job": encode_template(schedule.template),
        "payload": schedule.payload,
        "labels": dict(schedule.labels),
    }
