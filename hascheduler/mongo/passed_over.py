"""Writes the records of nominal times that do not fire.

A record always waits for a majority: no mirror sees it, so nobody would notice if it was lost with a primary.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pymongo.errors import BulkWriteError

from hascheduler.dispatch.decisions import Conclusion, PassOver, Settlement
from hascheduler.model.documents import Collection, verdict_document, verdict_id
from hascheduler.model.instants import WallMs
from hascheduler.model.verdict import stored_verdict
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import DUPLICATE_KEY, faults

_RUN = ["verdict", "last_ms"]


class PassedOver:
    """Records live for ``kept_ms``."""

    def __init__(self, database: Database, kept_ms: int) -> None:
        self._verdicts = database[Collection.VERDICTS.value].with_options(write_concern=MAJORITY)
        self._kept_ms = kept_ms

    async def record(self, decisions: Sequence[PassOver], at_ms: WallMs) -> dict[Conclusion, Settlement]:
        """DONE where the record is there, now or before."""
        expire_at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms + self._kept_ms)
        documents = [verdict_document(decision.run, at_ms) | {"expire_at": expire_at} for decision in decisions]
        settled: dict[Conclusion, Settlement] = dict.fromkeys(decisions, Settlement.DONE)
        with faults("record what did not fire"):
            try:
                await self._verdicts.insert_many(documents, ordered=False)
            except BulkWriteError as error:
                if error.details.get("writeConcernErrors"):
                    return dict.fromkeys(decisions, Settlement.UNKNOWN)
                for failure in error.details.get("writeErrors", ()):
                    if failure["code"] != DUPLICATE_KEY:
                        settled[decisions[failure["index"]]] = Settlement.UNKNOWN
        return settled

    async def found(self, decisions: Sequence[PassOver]) -> set[Conclusion]:
        """Those whose records are there."""
        if not decisions:
            return set()
        by_id = {verdict_id(decision.schedule, decision.run.first_ms): decision for decision in decisions}
        with faults("look for records"):
            documents = await self._verdicts.find({"_id": {"$in": list(by_id)}}, _RUN).to_list(None)
        # One that begins at the same time may be another leader's, and end elsewhere.
        return {by_id[document["_id"]] for document in documents if _is(document, by_id[document["_id"]])}


def _is(document: Mapping[str, Any], decision: PassOver) -> bool:
    return (document.get("verdict"), document.get("last_ms")) == (stored_verdict(decision.run)[0], decision.run.last_ms)
