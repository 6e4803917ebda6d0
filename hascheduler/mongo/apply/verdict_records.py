"""Write the records of nominal times that do not fire, and of fires whose jobs can't be stored.

A record always waits for a majority: no mirror has it, so its loss with a primary would go unnoticed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo.errors import BulkWriteError

from hascheduler.dispatch.decisions import Fire, RecordVerdict, Settlement, TimeOutcome
from hascheduler.model.collection import Collection
from hascheduler.model.documents.verdict import verdict_document, verdict_id
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.model.verdict import Verdict, VerdictRun, is_unstorable, stored_verdict
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import DUPLICATE_KEY, faults

_RUN = ["verdict", "last_ms", "schedule_created_at_ms"]
_VERDICT = ["verdict", "because_of", "schedule_created_at_ms"]


class VerdictRecords:
    """The part of the claim store that writes records; each expires after ``kept_ms``."""

    def __init__(self, database: Database, kept_ms: int) -> None:
        self._verdicts = database[Collection.VERDICTS.value].with_options(write_concern=MAJORITY)
        self._kept_ms = kept_ms

    async def record(self, decisions: Sequence[RecordVerdict], at_ms: WallMs) -> dict[TimeOutcome, Settlement]:
        """Record the decisions; DONE if the record is written, now or before."""
        runs: dict[TimeOutcome, VerdictRun] = {decision: decision.run for decision in decisions}
        return await self._record(runs, Settlement.DONE, at_ms)

    async def record_unstorable(self, fires: Sequence[Fire], at_ms: WallMs) -> dict[TimeOutcome, Settlement]:
        """Record the jobs of these fires as unstorable; REFUSED if the record is written, now or before."""
        runs: dict[TimeOutcome, VerdictRun] = {
            fire: VerdictRun(fire.schedule, Verdict.UNSTORABLE, fire.nominal_ms, fire.nominal_ms, 1) for fire in fires
        }
        return await self._record(runs, Settlement.REFUSED, at_ms)

    async def _record(
        self, runs: Mapping[TimeOutcome, VerdictRun], written: Settlement, at_ms: WallMs
    ) -> dict[TimeOutcome, Settlement]:
        decisions = list(runs)
        expire_at = to_datetime(at_ms + self._kept_ms)
        documents = [
            verdict_document(run, at_ms, outcome.basis.created_at_ms) | {"expire_at": expire_at}
            for outcome, run in runs.items()
        ]
        existing: list[dict[str, Any]] = []
        settled = dict.fromkeys(decisions, written)
        with faults("write the records"):
            try:
                await self._verdicts.insert_many(documents, ordered=False)
            except BulkWriteError as error:
                if error.details.get("writeConcernErrors"):
                    return dict.fromkeys(decisions, Settlement.UNKNOWN)
                for failure in error.details.get("writeErrors", ()):
                    if failure["code"] == DUPLICATE_KEY:
                        existing.append(documents[failure["index"]])
                    else:
                        settled[decisions[failure["index"]]] = Settlement.UNKNOWN
            await self._replace_stale({document["_id"]: document for document in existing})
        return settled

    async def _replace_stale(self, documents: Mapping[str, dict[str, Any]]) -> None:
        """Replace the records of an earlier schedule of that name, which no request can reach any more."""
        if not documents:
            return
        stored = await self._verdicts.find({"_id": {"$in": list(documents)}}, _RUN).to_list(None)
        for other in stored:
            created_at_ms = other.get("schedule_created_at_ms")
            document = documents[other["_id"]]
            if created_at_ms is not None and created_at_ms != document.get("schedule_created_at_ms", created_at_ms):
                await self._verdicts.replace_one(
                    {"_id": other["_id"], "schedule_created_at_ms": created_at_ms}, document
                )

    async def found(self, decisions: Sequence[RecordVerdict]) -> set[TimeOutcome]:
        """Return the decisions whose records exist."""
        if not decisions:
            return set()
        by_id = {verdict_id(decision.schedule, decision.run.first_ms): decision for decision in decisions}
        with faults("find the records"):
            documents = await self._verdicts.find({"_id": {"$in": list(by_id)}}, _RUN).to_list(None)
        # A record with the same first time may be another leader's, with another end.
        return {by_id[document["_id"]] for document in documents if _is(document, by_id[document["_id"]])}

    async def found_unstorable(self, fires: Sequence[Fire]) -> set[TimeOutcome]:
        """Return the fires with a record that their job could not be stored."""
        if not fires:
            return set()
        by_id = {verdict_id(fire.schedule, fire.nominal_ms): fire for fire in fires}
        with faults("find the records"):
            documents = await self._verdicts.find({"_id": {"$in": list(by_id)}}, _VERDICT).to_list(None)
        unstorable = [document for document in documents if is_unstorable(document)]
        return {by_id[each["_id"]] for each in unstorable if _is_of(each, by_id[each["_id"]])}


def _is_of(document: Mapping[str, Any], outcome: TimeOutcome) -> bool:
    created_at_ms = document.get("schedule_created_at_ms")
    return created_at_ms is None or outcome.basis.is_of(created_at_ms)


def _is(document: Mapping[str, Any], decision: RecordVerdict) -> bool:
    if not _is_of(document, decision):
        return False
    return (document.get("verdict"), document.get("last_ms")) == (stored_verdict(decision.run)[0], decision.run.last_ms)
