"""The history of the jobs of one database from the server's own record, its oplog, in its order."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from pymongo import ASCENDING

from hascheduler.mongo.connection import Client


async def versions_of_jobs(client: Client, database: str) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
    """Each version of each job, by id, in the order of the writes. Majority-committed ones are all of them here: the
    server is the only member of its set."""
    present: dict[str, dict[str, Any]] = {}
    cursor = client["local"]["oplog.rs"].find({"ns": f"{database}.jobs"}).sort("$natural", ASCENDING)
    async for entry in cursor:
        match entry["op"]:
            case "i":
                present[entry["o"]["_id"]] = dict(entry["o"])
                yield entry["o"]["_id"], present[entry["o"]["_id"]]
            case "u":
                id = entry["o2"]["_id"]
                present[id] = _changed(present[id], entry["o"])
                yield id, present[id]


def _changed(before: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """An entry holds a whole document, or the fields that it sets and takes away."""
    difference = written.get("diff")
    if difference is None:
        return dict(written)
    after = {name: value for name, value in before.items() if name not in difference.get("d", {})}
    return {**after, **difference.get("u", {}), **difference.get("i", {})}
