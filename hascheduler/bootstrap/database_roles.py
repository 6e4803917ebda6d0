"""MongoDB's users and what each may do in the database; found by running everything under them.

===========  =====================================================================================================
user         may
===========  =====================================================================================================
scheduler    read, write and watch the whole database, and make its collections and indexes (so does its migration);
             never drop one or change its options, or touch another database
processor    read, change and watch jobs; read definitions and the schema version; register, show life, deregister
admin        everything, for people (it belongs to the database ``admin``)
===========  =====================================================================================================
"""

from collections.abc import Mapping
from typing import Any

from hascheduler.bootstrap.broker_definitions import PROCESSOR_USER, SCHEDULER_USER
from hascheduler.model.documents import Collection

ADMIN_USER = "admin"
_WRITE = ("find", "insert", "update", "remove")

# The empty name means every collection of the database, and the database itself.
PRIVILEGES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    SCHEDULER_USER: {
        "": (
            *_WRITE, "changeStream", "listCollections", "listIndexes", "createCollection", "createIndex",
        ),
    },
    PROCESSOR_USER: {
        Collection.JOBS: ("find", "update", "changeStream"),
        Collection.DEFINITIONS: ("find",),
        Collection.META: ("find",),
        Collection.PROCESSORS: _WRITE,
    },
}  # fmt: skip


def privileges(role: str, database: str) -> list[dict[str, Any]]:
    """As ``createRole`` takes them."""
    return [
        {"resource": {"db": database, "collection": str(collection)}, "actions": sorted(actions)}
        for collection, actions in PRIVILEGES[role].items()
    ]
