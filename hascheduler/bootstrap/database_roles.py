"""MongoDB's users and what each may do in the database; found by running everything under them.

===========  =====================================================================================================
user         may
===========  =====================================================================================================
scheduler    read, write and watch the whole database, and make its collections and indexes (so does its migration);
             never drop one or change its options, or touch another database
processor    read, change and watch jobs; read definitions and the schema version; register, show life, deregister
admin        everything, for people (it belongs to the database ``admin``)
===========  =====================================================================================================

A processor's user sees all jobs and can change each of them, since MongoDB knows no rights on single documents and a
view can neither be written nor watched. It reads definitions for how often a job that failed is tried again. Scripts
in the server (``$where``, ``$function``, ``mapReduce``) are off in every mongod that we configure: any right to read
would be a right to run them. Where handlers are not trusted, let them take their work over HTTP (``/v1/work``).
"""

from collections.abc import Mapping
from typing import Any

from hascheduler.bootstrap.broker_definitions import PROCESSOR_USER, SCHEDULER_USER
from hascheduler.model.collection import Collection

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
