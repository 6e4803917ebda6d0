"""Check that this replica can answer and lead: its mirror is complete and fresh, its clock trusted, its release fit.

A release is fit if it can still read the database, as the mirror shows; see `hascheduler.model.schema_version`.
"""

from dataclasses import dataclass

from hascheduler.daemon.leadership.trusted_clock import TrustedClock
from hascheduler.daemon.loop.feeder import Feeder
from hascheduler.daemon.loop.replica_heartbeat import ReplicaHeartbeat
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.schema_version import SCHEMA_ID, UNSTATED_VERSION, SchemaVersion, why_unreadable


@dataclass(frozen=True)
class Readiness:
    """A view of the mirror, the heartbeat and the clock; each answer is of this moment."""

    feeder: Feeder
    heartbeat: ReplicaHeartbeat
    clock: TrustedClock

    def unready_reason(self) -> str:
        """Return why this replica should get no requests, and must not lead; "" if it may."""
        if not self.feeder.complete:
            return "the mirror is incomplete"
        if not self.heartbeat.fresh:
            return "the change stream has been silent for too long"
        return self.clock.wrong_because or outgrown_because(self.feeder.mirror)

    def can_lead(self) -> bool:
        return not self.unready_reason()


def stored_version(mirror: Mirror) -> int:
    """Return the database's version; 1 if it states none."""
    schema: SchemaVersion | None = mirror.nouns(Collection.META).get(SCHEMA_ID)
    return UNSTATED_VERSION if schema is None else schema.version


def outgrown_because(mirror: Mirror) -> str:
    """Return why this release can no longer work on the database, nor lead; "" if it can."""
    unreadable = mirror.quarantine.get((Collection.META, SCHEMA_ID))
    if unreadable:
        return f"the schema version in {Collection.META} can't be read: {unreadable}"
    return why_unreadable(stored_version(mirror))
