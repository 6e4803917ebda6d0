"""The collections that a mirror holds, and the fields of each: the stream and the snapshot project to those."""

from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import JOB_FIELDS
from hascheduler.model.documents.leadership import HOLD_FIELDS, JOURNAL_FIELDS, LEASE_FIELDS
from hascheduler.model.documents.processor import PROCESSOR_FIELDS
from hascheduler.model.documents.schedule import SCHEDULE_FIELDS
from hascheduler.model.schema_version import SCHEMA_FIELDS
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.noun import Part, stored_fields
from hascheduler.schema.pause import StandingPause
from hascheduler.schema.replica import ReplicaStatus
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.token import Token

_UNMIRRORED = (
    Collection.VERDICTS, Collection.ACCOUNTS, Collection.AUDIT, Collection.BUCKETS, Collection.FAILOVERS,
    Collection.ROUTING, Collection.NAMES, Collection.IDENTITIES,
)  # fmt: skip
MIRRORED = tuple(collection for collection in Collection if collection not in _UNMIRRORED)


def _fields(part: type[Part]) -> tuple[str, ...]:
    return ("v", *(field for field in part.model_fields if field != part.id_field))


LEAN_FIELDS: dict[Collection, tuple[str, ...]] = {
    Collection.DEFINITIONS: stored_fields(Definition),
    Collection.LANES: stored_fields(Lane),
    Collection.CALENDARS: stored_fields(Calendar),
    Collection.TENANTS: stored_fields(Tenant),
    Collection.TOKENS: _fields(Token),
    Collection.PAUSES: _fields(StandingPause),
    Collection.HOLDS: HOLD_FIELDS,
    Collection.SCHEDULES: SCHEDULE_FIELDS,
    Collection.PROCESSORS: PROCESSOR_FIELDS,
    Collection.JOBS: JOB_FIELDS,
    Collection.LEASES: LEASE_FIELDS,
    Collection.JOURNAL: JOURNAL_FIELDS,
    Collection.REPLICAS: tuple(field.replace("last_check", "audited") for field in _fields(ReplicaStatus)),
    Collection.META: SCHEMA_FIELDS,
}
