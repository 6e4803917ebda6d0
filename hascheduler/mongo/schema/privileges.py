"""The rights that replicas and processors need in each database; `hascheduler bootstrap mongodb` grants them."""

from collections.abc import Mapping

from hascheduler.check.servers import Privileges
from hascheduler.model.collection import Collection
from hascheduler.mongo.schema.indexes import SUPERSEDED

_WRITE = frozenset({"find", "insert", "update", "remove"})
PRIVILEGES: Mapping[str, Privileges] = {
    "scheduler": {
        "": _WRITE | {"changeStream", "listCollections", "listIndexes", "createCollection", "createIndex"},
        **dict.fromkeys(SUPERSEDED, frozenset({"dropIndex"})),
    },
    "processor": {
        Collection.JOBS: frozenset({"find", "update", "changeStream"}),
        **dict.fromkeys(
            (Collection.DEFINITIONS, Collection.META, Collection.ROUTING, Collection.IDENTITIES), frozenset({"find"})
        ),
        Collection.PROCESSORS: _WRITE,
    },
}
