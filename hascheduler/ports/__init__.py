"""Everything the pure side and the daemon ask of the world. Adapters implement these; the daemon knows nothing else.

Every method may raise `StoreUnavailable` (stores, journal, stream) or `BrokerUnavailable` (transport) if there was no
answer in time. It is then unknown whether a write was applied, and every write here may be repeated. Expected outcomes
are return values. No method waits for ever: adapters set a time limit on every call.
"""

from hascheduler.ports.jobs import (
    DELETED_IN_MS,
    FAILED_FIELDS,
    BucketStore,
    CancelAnswer,
    CancelledSome,
    Dependent,
    FailedJob,
    FailedJobs,
    JobCounts,
    JobPage,
    JobSelection,
    JobStore,
    KeyedRetry,
    KnownJob,
    ReprioritizeAnswer,
    RetryAnswer,
    RetryKey,
    Submission,
    SubmitAnswer,
    dependent_of,
    failed_job_of,
    revived_states,
)
from hascheduler.ports.leadership import (
    FAILOVERS_MAX,
    AccountStore,
    ClaimStore,
    Clock,
    FailoverStore,
    Journal,
    JournalEntry,
    LeaseStore,
    ReplicaBoard,
)
from hascheduler.ports.resources import (
    AuditFilter,
    AuditStore,
    DecidedVerdict,
    ListPosition,
    ResourceStore,
    ScheduleStore,
    StoredDocument,
    TokenStore,
    VerdictPage,
    VerdictRecord,
    VerdictSelection,
    VerdictStore,
    ended_sessions,
)
from hascheduler.ports.stream import (
    Batch,
    ChangeSource,
    ChangeStream,
    Closing,
    EventExchange,
    EventFeed,
    EventFilter,
    Follower,
    Lagging,
    Missed,
    NewEvents,
)
from hascheduler.ports.view import Cluster, ClusterView, Gauges, LeaderLag, Recording, Waiter
from hascheduler.ports.work import (
    AttemptOutcome,
    Confirm,
    Deliveries,
    Delivery,
    FinishAnswer,
    HandlerProgress,
    JobTraces,
    StartedJob,
    StopRequests,
    TracedJob,
    Transport,
    WorkStore,
    rules_of,
)
