"""All that the pure side and the daemon ask of the world. Adapters implement these; the daemon knows nothing else.

Faults: every method may raise `StoreUnavailable` (stores, journal, stream) or `BrokerUnavailable` (transport) when
there was no answer in time; whether a write was carried out is then unknown, and each write here may be repeated.
Expected outcomes are return values. No method waits for ever: adapters set time limits on every call.
"""

from hascheduler.ports.access import (
    AuditFilter,
    AuditRecord,
    AuditStore,
    TokenStore,
    audit_id,
    encode_audit_record,
)
from hascheduler.ports.admission import Admission, BucketStore
from hascheduler.ports.events import (
    Closing,
    EventExchange,
    EventFeed,
    EventFilter,
    Follower,
    Lagging,
    Missed,
    Told,
)
from hascheduler.ports.failovers import FAILOVERS_MAX, FailoverStore
from hascheduler.ports.gauges import Gauges
from hascheduler.ports.jobs import (
    CancelAnswer,
    CancelledSome,
    JobFilter,
    JobStore,
    KnownJob,
    ReprioritizeAnswer,
    RetryAnswer,
    Submission,
    SubmitAnswer,
)
from hascheduler.ports.leadership import (
    AccountStore,
    ClaimStore,
    Clock,
    Journal,
    JournalEntry,
    LeaseStore,
    ReplicaBoard,
)
from hascheduler.ports.messages import Confirm, Deliveries, Delivery, Transport
from hascheduler.ports.nouns import NounStore, ScheduleStore, StoredDocument, VerdictRecord, VerdictStore
from hascheduler.ports.stream import Batch, ChangeSource, ChangeStream
from hascheduler.ports.traces import JobTraces, TracedJob
from hascheduler.ports.view import Bell, Cluster, ClusterView, Recording
from hascheduler.ports.work import (
    FinishAnswer,
    Outcome,
    Progress,
    Standing,
    StartedJob,
    WorkStore,
    encode_progress,
)

__all__ = [
    "FAILOVERS_MAX",
    "AccountStore",
    "Admission",
    "AuditFilter",
    "AuditRecord",
    "AuditStore",
    "Batch",
    "Bell",
    "BucketStore",
    "CancelAnswer",
    "CancelledSome",
    "ChangeSource",
    "ChangeStream",
    "ClaimStore",
    "Clock",
    "Closing",
    "Cluster",
    "ClusterView",
    "Confirm",
    "Deliveries",
    "Delivery",
    "EventExchange",
    "EventFeed",
    "EventFilter",
    "FailoverStore",
    "FinishAnswer",
    "Follower",
    "Gauges",
    "JobFilter",
    "JobStore",
    "JobTraces",
    "Journal",
    "JournalEntry",
    "KnownJob",
    "Lagging",
    "LeaseStore",
    "Missed",
    "NounStore",
    "Outcome",
    "Progress",
    "Recording",
    "ReplicaBoard",
    "ReprioritizeAnswer",
    "RetryAnswer",
    "ScheduleStore",
    "Standing",
    "StartedJob",
    "StoredDocument",
    "Submission",
    "SubmitAnswer",
    "TokenStore",
    "Told",
    "TracedJob",
    "Transport",
    "VerdictRecord",
    "VerdictStore",
    "WorkStore",
    "audit_id",
    "encode_audit_record",
    "encode_progress",
]
