"""How many processors serve a database."""

from typing import Any

import structlog

from hascheduler.errors import WorldError
from hascheduler.model.collection import Collection
from hascheduler.model.processor import ANY_DEFINITION
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.work.store import REGISTRATION_KEPT_MS

log = structlog.get_logger(__name__)

_LIMIT_S = 1.0
_COUNTED_MAX = 1_000


async def count_servers(database: Database, definitions: frozenset[str], dead_after_ms: int) -> int | None:
    """Return how many processors take jobs there that run some of these definitions, at most a thousand.

    None: the database does not answer. A registration tells by when it expires when its last heartbeat was written.
    """
    last_beat = {"$add": ["$$NOW", REGISTRATION_KEPT_MS - dead_after_ms]}
    wanted: dict[str, Any] = {"draining": False, "$expr": {"$gt": ["$expire_at", last_beat]}}
    if ANY_DEFINITION not in definitions:
        wanted["definitions"] = {"$in": [ANY_DEFINITION, *sorted(definitions)]}
    try:
        with faults("count the processors", _LIMIT_S):
            return await database[Collection.PROCESSORS.value].count_documents(wanted, limit=_COUNTED_MAX)
    except WorldError as error:
        log.debug("servers_unknown", database=database.name, error=str(error))
        return None
