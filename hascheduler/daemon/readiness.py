"""Whether this release can still read the database, as its mirror tells; see `hascheduler.model.schema_version`."""

from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.schema_version import SCHEMA_ID, UNSTATED_VERSION, SchemaVersion, why_unreadable


def stored_version(mirror: Mirror) -> int:
    """The database's version; 1 where it says nothing."""
    schema: SchemaVersion | None = mirror.nouns(Collection.META).get(SCHEMA_ID)
    return UNSTATED_VERSION if schema is None else schema.version


def outgrown_because(mirror: Mirror) -> str:
    """Why this release can't work on the database any more, nor lead; "" where it can."""
    unreadable = mirror.quarantine.get((Collection.META, SCHEMA_ID))
    if unreadable:
        return f"the schema version in {Collection.META} can't be read: {unreadable}"
    return why_unreadable(stored_version(mirror))
