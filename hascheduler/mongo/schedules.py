"""Schedules as the API writes them: ``{_id: name, rev, trigger, job, payload, labels, cursor_ms, created_at_ms}``.

The trigger, the job's references and the times are what mirrors see; payload and labels stay here until a fire.
"""

from collections.abc import Sequence
from typing import Any

from pymongo import ASCENDING, ReturnDocument
from pymongo.errors import DuplicateKeyError

from hascheduler.model.documents import Collection, encode_template, encode_trigger
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.moves import NEXT_REV
from hascheduler.ports import NewSchedule, StoredDocument


class MongoScheduleStore:
    """`hascheduler.ports.ScheduleStore`."""

    def __init__(self, database: Database) -> None:
        self._schedules = database[Collection.SCHEDULES.value].with_options(write_concern=MAJORITY)

    async def create(self, schedule: NewSchedule) -> StoredDocument | None:
        document = {
            "_id": schedule.name,
            "rev": 1,
            **_written(schedule),
            "cursor_ms": schedule.now,
            "created_at_ms": schedule.now,
        }
        with faults("create the schedule"):
            try:
                await self._schedules.insert_one(document)
            except DuplicateKeyError:
                return None
        return document

    async def replace(self, schedule: NewSchedule, expected_rev: int | None = None) -> StoredDocument | None:
        written = _written(schedule)
        same_trigger = {"$eq": ["$trigger", {"$literal": written["trigger"]}]}
        which: dict[str, Any] = {"_id": schedule.name}
        if expected_rev is not None:
            which["rev"] = expected_rev
        with faults("replace the schedule"):
            return await self._schedules.find_one_and_update(
                which,
                [
                    {
                        "$set": {
                            # Literals, as payloads may hold texts that begin with a dollar sign.
                            **{name: {"$literal": value} for name, value in written.items()},
                            "cursor_ms": {
                                "$cond": [same_trigger, "$cursor_ms", {"$max": ["$cursor_ms", schedule.now]}]
                            },
                            "rev": NEXT_REV,
                        }
                    }
                ],
                return_document=ReturnDocument.AFTER,
            )

    async def get(self, name: str) -> StoredDocument | None:
        with faults("read the schedule"):
            return await self._schedules.find_one({"_id": name})

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        which = {} if after is None else {"_id": {"$gt": after}}
        with faults("list the schedules"):
            return await self._schedules.find(which).sort("_id", ASCENDING).limit(limit).to_list(None)

    async def delete(self, name: str) -> bool:
        with faults("delete the schedule"):
            answer = await self._schedules.delete_one({"_id": name})
        return answer.deleted_count == 1


def _written(schedule: NewSchedule) -> dict[str, Any]:
    return {
        "trigger": encode_trigger(schedule.trigger),
        "job": encode_template(schedule.template),
        "payload": schedule.payload,
        "labels": dict(schedule.labels),
    }
