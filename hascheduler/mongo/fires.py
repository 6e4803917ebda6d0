"""Inserts the jobs of nominal times and advances the cursors of their schedules.

The insert of ``fire:<schedule>:<nominal>`` *is* the fire: a duplicate key means that it happened. The cursor only ever
grows, and a crash between the two is mended by applying the journal's entry again. A schedule that was made at or
after a nominal time is another one by the same name, and neither fires for it nor has its cursor moved.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import UpdateMany
from pymongo.errors import BulkWriteError

from hascheduler.dispatch.decisions import Dispatch, Fire, Settlement
from hascheduler.errors import HistoryLost, InvalidInput, StoreUnavailable
from hascheduler.model.documents import Collection, fired_job_document
from hascheduler.model.instants import WallMs
from hascheduler.mongo.connection import LOCAL_READ, MAJORITY, ONE, Database
from hascheduler.mongo.faults import faults, refuses_document
from hascheduler.mongo.moves import claimed_fields

_DUPLICATE_KEY = 11000
_TEMPLATE = {"job": True, "payload": True, "labels": True, "created_at_ms": True}


class Fires:
    """The part of the claims that concerns `Fire`."""

    def __init__(self, database: Database) -> None:
        self._schedules = database[Collection.SCHEDULES.value]
        # Local reads: it must see what it wrote itself a moment ago, majority or not.
        self._jobs = database[Collection.JOBS.value].with_options(read_concern=LOCAL_READ)

    async def insert(
        self, fires: Sequence[Fire], claims: Mapping[str, Dispatch], at_ms: WallMs, *, majority: bool
    ) -> tuple[list[Settlement], set[str]]:
        """One settlement a fire: DONE; LOST where its schedule is gone or can't be stored as a job; else UNKNOWN.

        A job whose first attempt is among ``claims`` (by job id) is inserted as dispatched, which saves a write and an
        event for every mirror; the ids of those that were are the second answer.
        """
        settled: dict[Fire, Settlement] = {}
        there: set[Fire] = set()
        try:
            # Read for each batch: a template kept here could be one that was edited since.
            schedules = await self._read_schedules({fire.schedule for fire in fires})
            documents = {}
            for fire in fires:
                schedule = schedules.get(fire.schedule)
                document = schedule and fired_job_document(fire.schedule, schedule, fire.nominal_ms)
                if document is not None:
                    claim = claims.get(fire.job_id)
                    documents[fire] = document if claim is None else {**document, **claimed_fields(claim, at_ms)}
            settled |= await self._inserted(documents, there, majority=majority)
            without_schedule = [fire for fire in fires if fire not in documents]
            if without_schedule:
                settled |= await self._found(without_schedule)
                there.update(without_schedule)
        except (StoreUnavailable, HistoryLost):
            pass  # whatever has no answer is UNKNOWN
        new = {
            fire.job_id for fire, settlement in settled.items() if settlement is Settlement.DONE and fire not in there
        }
        return [settled.get(fire, Settlement.UNKNOWN) for fire in fires], new & set(claims)

    async def advance(self, fires: Sequence[Fire], *, majority: bool) -> bool:
        """Move the cursors up to those nominal times; whether there was an answer."""
        try:
            await self._advance_cursors(fires, majority=majority)
        except (StoreUnavailable, HistoryLost):
            return False
        return True

    async def _read_schedules(self, names: set[str]) -> dict[str, dict[str, Any]]:
        with faults("read the schedules that fire"):
            documents = await self._schedules.find({"_id": {"$in": sorted(names)}}, _TEMPLATE).to_list(None)
        return {document["_id"]: document for document in documents}

    async def _inserted(
        self, documents: Mapping[Fire, dict[str, Any]], there: set[Fire], *, majority: bool
    ) -> dict[Fire, Settlement]:
        if not documents:
            return {}
        try:
            return await self._insert(documents, there, majority=majority)
        except InvalidInput:
            # The driver would not even send one of them; it must not keep the others from firing.
            if len(documents) == 1:
                return dict.fromkeys(documents, Settlement.LOST)
            in_order = list(documents.items())
            half = len(in_order) // 2
            first = await self._inserted(dict(in_order[:half]), there, majority=majority)
            return first | await self._inserted(dict(in_order[half:]), there, majority=majority)

    async def _insert(
        self, documents: Mapping[Fire, dict[str, Any]], there: set[Fire], *, majority: bool
    ) -> dict[Fire, Settlement]:
        """Insert; those that were there already go into ``there``."""
        jobs = self._jobs.with_options(write_concern=MAJORITY if majority else ONE)
        settled = dict.fromkeys(documents, Settlement.DONE)
        in_order = list(documents)
        with faults("insert fired jobs"):
            try:
                await jobs.insert_many([documents[fire] for fire in in_order], ordered=False)
            except BulkWriteError as error:
                if error.details.get("writeConcernErrors"):
                    return dict.fromkeys(documents, Settlement.UNKNOWN)
                for failure in error.details.get("writeErrors", ()):
                    if failure["code"] == _DUPLICATE_KEY:
                        there.add(in_order[failure["index"]])
                    else:
                        refused = refuses_document(failure["code"])
                        settled[in_order[failure["index"]]] = Settlement.LOST if refused else Settlement.UNKNOWN
        return settled

    async def _found(self, fires: Sequence[Fire]) -> dict[Fire, Settlement]:
        """A fire whose schedule has gone since is DONE if its job is there, so that a repeat gives the same answer."""
        ids = [fire.job_id for fire in fires]
        with faults("look for fired jobs"):
            documents = await self._jobs.find({"_id": {"$in": ids}}, {"_id": True}).to_list(None)
        found = {document["_id"] for document in documents}
        return {fire: Settlement.DONE if fire.job_id in found else Settlement.LOST for fire in fires}

    async def _advance_cursors(self, fires: Sequence[Fire], *, majority: bool) -> None:
        newest: dict[str, int] = {}
        for fire in fires:
            newest[fire.schedule] = max(fire.nominal_ms, newest.get(fire.schedule, 0))
        names_by_nominal: dict[int, list[str]] = defaultdict(list)
        for name, nominal_ms in newest.items():
            names_by_nominal[nominal_ms].append(name)
        if not names_by_nominal:
            return
        schedules = self._schedules.with_options(write_concern=MAJORITY if majority else ONE)
        with faults("advance the cursors"):
            await schedules.bulk_write(
                [
                    UpdateMany(
                        {
                            "_id": {"$in": names},
                            "cursor_ms": {"$lt": nominal_ms},
                            "created_at_ms": {"$lt": nominal_ms},
                        },
                        # Not an edit, so rev stays.
                        {"$set": {"cursor_ms": nominal_ms}},
                    )
                    for nominal_ms, names in names_by_nominal.items()
                ],
                ordered=False,
            )
