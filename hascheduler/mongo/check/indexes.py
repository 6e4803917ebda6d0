"""Check that the collections and their indexes exist, in the shape that `hascheduler.mongo.schema` defines."""

from collections.abc import Mapping, Sequence
from typing import Any

from hascheduler.check.finding import Finding, FindingKind
from hascheduler.errors import DatabaseUnfit
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.schema.indexes import INDEXES, index_name, require_compatible

Found = Mapping[str, Mapping[str, Any]]

_DOUBLED_SHOWN_MAX = 20
_DOUBLED_LIMIT_S = 60.0
_MAKE = "run hascheduler migrate to create it (each replica also does at its start)"


class PresentIndexes:
    """The existing indexes by collection; None if the collection does not exist."""

    def __init__(self, found: Mapping[str, Found | None]) -> None:
        self._found = found

    @classmethod
    async def of(cls, database: Database) -> "PresentIndexes":
        with faults("read the collections and indexes"):
            names = set(await database.list_collection_names())
            return cls(
                {
                    name: await database[name].index_information() if name in names else None
                    for name in map(str, Collection)
                }
            )

    def has(self, collection: Collection, index: str) -> bool:
        return index in (self._found[collection] or {})

    def check(self) -> list[Finding]:
        findings = []
        for collection in Collection:
            existing = self._found[collection]
            if existing is None:
                findings.append(Finding(FindingKind.INDEX, str(collection), "the collection is missing", _MAKE))
                continue
            for model in INDEXES.get(collection, ()):
                document = f"{collection}.{index_name(model)}"
                try:
                    require_compatible(collection, [model], existing)
                except DatabaseUnfit as error:
                    what, _, hint = str(error).partition("; ")
                    findings.append(Finding(FindingKind.INDEX, document, what, f"{hint}; then run hascheduler migrate"))
                else:
                    if index_name(model) not in existing:
                        findings.append(Finding(FindingKind.INDEX, document, "the index is missing", _MAKE))
        return findings

    @property
    def keys_are_unique(self) -> bool:
        """Return True if a unique index refuses a second job for an idempotency key."""
        return bool((self._found[Collection.JOBS] or {}).get("idempotency_key", {}).get("unique"))


async def duplicate_idempotency_keys(database: Database) -> Sequence[Finding]:
    """Return the idempotency keys that several jobs have.

    Ask only if the unique index is missing: this groups all jobs with keys.
    """
    pipeline: list[dict[str, Any]] = [
        {"$match": {"idempotency_key": {"$gt": ""}}},
        {
            "$group": {
                "_id": {"tenant": "$tenant", "key": "$idempotency_key"},
                "jobs": {"$sum": 1},
                "first": {"$min": "$_id"},
                "since_ms": {"$min": "$submitted_at_ms"},
            }
        },
        {"$match": {"jobs": {"$gt": 1}}},
        {"$limit": _DOUBLED_SHOWN_MAX},
    ]
    with faults("find duplicate idempotency keys", _DOUBLED_LIMIT_S):
        cursor = await database[Collection.JOBS.value].aggregate(pipeline, allowDiskUse=True)
        rows = await cursor.to_list(None)
    return [_doubled(row) for row in rows]


def _doubled(row: Mapping[str, Any]) -> Finding:
    tenant, key, since_ms = row["_id"].get("tenant"), row["_id"].get("key"), row["since_ms"]
    return Finding(
        FindingKind.IDEMPOTENCY_DOUBLED,
        f"jobs/{row['first']}",
        f"{row['jobs']} jobs have the idempotency key {str(key)[:100]!r} of {str(tenant)[:100]!r}",
        "check which of them ran, cancel the unwanted ones, then run hascheduler migrate to create the index",
        since_ms=since_ms if isinstance(since_ms, int) else None,
    )
