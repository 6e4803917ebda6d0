"""Leases, one document a name. Every write is one compare-and-set with a majority behind it.

An unreadable document counts as an absent one, and the candidate that creates the lease replaces it. So a document
written by hand needs no repair before there is a leader again.
"""

from collections.abc import Mapping
from typing import Any

from pymongo.errors import DuplicateKeyError

from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import encode_lease, readable_lease
from hascheduler.model.leadership import LeaseRecord
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults

# Shorter than the renew deadline: a leader must learn in time that it could not renew.
_LEASE_LIMIT_S = 3.0


class MongoLeaseStore:
    """`hascheduler.ports.LeaseStore`."""

    def __init__(self, database: Database) -> None:
        self._leases = database[Collection.LEASES.value].with_options(write_concern=MAJORITY)

    async def get(self, name: str) -> LeaseRecord | None:
        # A majority read: the version that a candidate compares must not be rolled back. It may lag; the write decides.
        with faults("read the lease", _LEASE_LIMIT_S):
            document = await self._leases.find_one({"_id": name})
        return None if document is None else readable_lease(document["_id"], document)

    async def create(self, record: LeaseRecord) -> bool:
        with faults("create the lease", _LEASE_LIMIT_S):
            try:
                await self._leases.insert_one(encode_lease(record))
            except DuplicateKeyError:
                found = await self._leases.find_one({"_id": record.name})
                if found is None or readable_lease(found["_id"], found) is not None:
                    return False
                answer = await self._leases.replace_one(_unchanged(found), encode_lease(record))
                return answer.matched_count == 1
        return True

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        version: dict[str, Any] = {
            "_id": expected.name,
            "holder": expected.holder,
            "term": expected.term,
            "renewals": expected.renewals,
        }
        with faults("write the lease", _LEASE_LIMIT_S):
            answer = await self._leases.replace_one(version, encode_lease(proposed))
        return answer.matched_count == 1


def _unchanged(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filter for a document that is no lease, as long as it stays unchanged."""
    query: dict[str, Any] = {name: {"$exists": False} for name in ("holder", "term", "renewals")}
    query |= {name: {"$eq": value} for name, value in found.items() if not (name.startswith("$") or "." in name)}
    return {**query, "_id": found["_id"]}
