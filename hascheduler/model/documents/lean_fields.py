"""Which collections a mirror has, and which of their fields: the stream and the snapshot project to those."""

from hascheduler.model.collection import Collection
from hascheduler.model.documents.calendar import CALENDAR_FIELDS
from hascheduler.model.documents.definition import DEFINITION_FIELDS
from hascheduler.model.documents.hold import HOLD_FIELDS
from hascheduler.model.documents.job import JOB_FIELDS
from hascheduler.model.documents.journal import JOURNAL_FIELDS
from hascheduler.model.documents.lane import LANE_FIELDS
from hascheduler.model.documents.lease import LEASE_FIELDS
from hascheduler.model.documents.pause import PAUSE_FIELDS
from hascheduler.model.documents.processor import PROCESSOR_FIELDS
from hascheduler.model.documents.replica import REPLICA_FIELDS
from hascheduler.model.documents.schedule import SCHEDULE_FIELDS
from hascheduler.model.documents.tenant import TENANT_FIELDS
from hascheduler.model.documents.token import TOKEN_FIELDS
from hascheduler.model.schema_version import SCHEMA_FIELDS

_UNMIRRORED = (
    Collection.VERDICTS, Collection.ACCOUNTS, Collection.AUDIT, Collection.BUCKETS, Collection.FAILOVERS,
    Collection.ROUTING, Collection.NAMES, Collection.IDENTITIES,
)  # fmt: skip
MIRRORED = tuple(collection for collection in Collection if collection not in _UNMIRRORED)
LEAN_FIELDS: dict[Collection, tuple[str, ...]] = {
    Collection.DEFINITIONS: DEFINITION_FIELDS,
    Collection.LANES: LANE_FIELDS,
    Collection.CALENDARS: CALENDAR_FIELDS,
    Collection.TENANTS: TENANT_FIELDS,
    Collection.TOKENS: TOKEN_FIELDS,
    Collection.PAUSES: PAUSE_FIELDS,
    Collection.HOLDS: HOLD_FIELDS,
    Collection.SCHEDULES: SCHEDULE_FIELDS,
    Collection.PROCESSORS: PROCESSOR_FIELDS,
    Collection.JOBS: JOB_FIELDS,
    Collection.LEASES: LEASE_FIELDS,
    Collection.JOURNAL: JOURNAL_FIELDS,
    Collection.REPLICAS: REPLICA_FIELDS,
    Collection.META: SCHEMA_FIELDS,
}
