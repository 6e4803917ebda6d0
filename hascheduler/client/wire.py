"""The bodies and answers of the HTTP API as types. Written by scripts/generate-client from its OpenAPI document.

At run time they are plain dictionaries, with the names and forms that the API's reference has: instants as RFC 3339
texts, spans as texts such as ``"1m30s"``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

Json = Any
"""Whatever JSON can hold."""


WindowBody = TypedDict("WindowBody", {"from": str, "to": str})


CalendarUseBody = TypedDict(
    "CalendarUseBody",
    {"only": NotRequired[Sequence[str]], "except": NotRequired[Sequence[str]], "timezone": NotRequired[str | None]},
)


class CronPart(TypedDict):
    type: Literal["cron"]
    expression: str
    timezone: NotRequired[str]


class IntervalPart(TypedDict):
    type: Literal["interval"]
    every: str | float
    anchor: NotRequired[str | None]


class TimesPart(TypedDict):
    type: Literal["times"]
    at: Sequence[str]


class OncePart(TypedDict):
    type: Literal["once"]
    at: str


class AnyBody(TypedDict):
    jitter: NotRequired[str | float]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_fires: NotRequired[int | None]
    exclude: NotRequired[Sequence[WindowBody]]
    calendars: NotRequired[CalendarUseBody | None]
    type: Literal["any"]
    of: Sequence[CronPart | IntervalPart | TimesPart | OncePart]


WindowResponse = TypedDict("WindowResponse", {"from": str, "to": str})


CalendarUseResponse = TypedDict(
    "CalendarUseResponse", {"only": Sequence[str], "except": Sequence[str], "timezone": str | None}
)


class CronPartResponse(TypedDict):
    type: Literal["cron"]
    expression: str
    timezone: str


class IntervalPartResponse(TypedDict):
    type: Literal["interval"]
    every: str
    anchor: str


class TimesPartResponse(TypedDict):
    type: Literal["times"]
    at: Sequence[str]


class OncePartResponse(TypedDict):
    type: Literal["once"]
    at: str


class AnyResponse(TypedDict):
    jitter: str
    start_at: str | None
    end_at: str | None
    max_fires: int | None
    exclude: Sequence[WindowResponse]
    calendars: CalendarUseResponse | None
    type: Literal["any"]
    of: Sequence[CronPartResponse | IntervalPartResponse | TimesPartResponse | OncePartResponse]


class AttemptName(TypedDict):
    job: str
    attempt: int


class AttemptResponse(TypedDict):
    number: int
    processor: str | None
    dispatched_at: str | None
    started_at: str | None
    finished_at: str | None
    outcome: str
    error: str | None
    traceback: NotRequired[str | None]


class AuditResponse(TypedDict):
    id: str
    at: str
    who: str
    token: str | None
    role: str | None
    tenant: str | None
    address: str
    method: str
    path: str
    route: str | None
    target: str | None
    status: int
    request: str
    because: str | None
    left_out: int


class Unlisted(TypedDict):
    id: str
    reason: str


class AuditPage(TypedDict):
    items: Sequence[AuditResponse]
    next: str | None
    unreadable: NotRequired[Sequence[Unlisted]]


BackfillBody = TypedDict(
    "BackfillBody",
    {"from": str, "to": str, "overlap": NotRequired[Literal["allow", "buffer_one"]], "dry_run": NotRequired[bool]},
)


class BackfillResponse(TypedDict):
    count: int
    created: int
    existing: int
    undecided: int
    jobs: Sequence[str]


class BatchJob(TypedDict):
    definition: str
    payload: NotRequired[Json]
    priority: NotRequired[int]
    tenant: NotRequired[str | None]
    fairness_key: NotRequired[str | None]
    lane: NotRequired[str]
    mode: NotRequired[Literal["queued", "on_demand"]]
    resources: NotRequired[Mapping[str, Any] | None]
    target: NotRequired[str | None]
    labels: NotRequired[Mapping[str, Any]]
    not_before: NotRequired[str | None]
    expires_at: NotRequired[str | None]
    depends_on: NotRequired[Sequence[str]]
    on_dependency_failure: NotRequired[Literal["fail", "ignore"]]
    ref: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]


class BatchBody(TypedDict):
    jobs: Sequence[BatchJob | Json]
    atomic: NotRequired[bool]


class FieldProblem(TypedDict):
    path: str
    problem: str
    expected: str


class Problem(TypedDict):
    type: str
    title: str
    status: int
    detail: str
    errors: NotRequired[Sequence[FieldProblem]]
    id: NotRequired[str | None]


class BatchResult(TypedDict):
    status: int
    job: str | None
    problem: Problem | None


class BatchResponse(TypedDict):
    batch: str
    results: Sequence[BatchResult]


Rule = Literal[
    "not_leading",
    "paused",
    "transport",
    "in_doubt",
    "cancelling",
    "dependency",
    "not_before",
    "backoff",
    "max_concurrency",
    "tier",
    "definition",
    "rate_limit",
    "tenant",
    "conflict",
    "key",
    "serial",
    "unschedulable",
    "no_slot",
]


class BlockResponse(TypedDict):
    rule: Rule
    because: str
    unblocked_by: str
    numbers: Mapping[str, int | str | Sequence[str]]
    until: str | None


class CalendarBody(TypedDict):
    weekdays: NotRequired[Sequence[str] | None]
    include: NotRequired[Sequence[str] | None]
    exclude: NotRequired[Sequence[str] | None]
    owner: NotRequired[str | None]


class CalendarResponse(TypedDict):
    name: str
    rev: int
    weekdays: Sequence[str]
    include: Sequence[str]
    exclude: Sequence[str]
    owner: str | None


class CalendarPage(TypedDict):
    items: Sequence[CalendarResponse]
    next: str | None
    unreadable: NotRequired[Sequence[Unlisted]]


CancelAnswer = Literal["cancelled", "already_running", "already_done"]


class CancelResponse(TypedDict):
    answer: CancelAnswer


CatchUp = Literal["none", "latest", "all"]


Cause = Literal["first", "released", "died", "stood_still", "lapsed", "deleted"]


JobState = Literal["pending", "dispatched", "running", "succeeded", "failed", "cancelled"]


class FilterBody(TypedDict):
    definition: NotRequired[str | None]
    schedule: NotRequired[str | None]
    tenant: NotRequired[str | None]
    batch: NotRequired[str | None]
    target: NotRequired[str | None]
    id: NotRequired[str | None]
    since: NotRequired[str | None]
    until: NotRequired[str | None]
    labels: NotRequired[Mapping[str, Any] | None]
    state: NotRequired[JobState | None]
    unschedulable: NotRequired[bool | None]


class ChangeBody(TypedDict):
    filter: FilterBody
    dry_run: NotRequired[bool | None]
    expected: NotRequired[int | None]
    after: NotRequired[str | None]


ScheduleState = Literal["active", "paused", "ended"]


Verdict = Literal["fired", "unstorable", "skipped", "missed", "coalesced", "paused", "excluded", "throttled"]


class ScheduleFilterBody(TypedDict):
    text: NotRequired[str | None]
    state: NotRequired[ScheduleState | None]
    verdict: NotRequired[Verdict | None]
    tenant: NotRequired[str | None]
    ahead: NotRequired[bool | None]
    labels: NotRequired[Mapping[str, Any] | None]


class ChangeSchedulesBody(TypedDict):
    filter: ScheduleFilterBody
    dry_run: NotRequired[bool | None]
    expected: NotRequired[int | None]
    after: NotRequired[str | None]


class ChangedResponse(TypedDict):
    matched: int
    exact: bool
    changed: int
    asked_to_stop: int
    refused: int
    error: str | None
    complete: bool
    next: str | None


class FireResponse(TypedDict):
    nominal_at: str
    due_at: str
    local: str
    weekday: str
    excluded: bool
    note: str | None
    payload: NotRequired[Json]


class ClockChangeResponse(TypedDict):
    at: str
    kind: Literal["gap", "fold"]
    offset_before: str
    offset_after: str
    explanation: str
    fires: Sequence[FireResponse]


class LeaderResponse(TypedDict):
    holder: str
    term: int
    endpoint: str
    since: str


class SchemaResponse(TypedDict):
    version: int
    oldest_read: int
    newest_read: int


class ReplicaResponse(TypedDict):
    id: str
    name: str
    version: str | None
    zone_data: NotRequired[str | None]
    started_at: str
    http_endpoint: str
    liveness_endpoint: str
    alive: bool
    ready: bool
    stream_lag_ms: int | None
    position: str
    digest: str
    quarantined: int


class PauseResponse(TypedDict):
    since: str
    by: str
    because: str | None
    schedules_only: bool


class FindingsResponse(TypedDict):
    at: str
    counts: Mapping[str, int]


class QuarantinedResponse(TypedDict):
    collection: str
    id: str
    reason: str


class ShardResponse(TypedDict):
    name: str
    leader: LeaderResponse | None
    leading: bool
    ready: bool
    unready_reason: str
    stream_lag_ms: int | None
    journal_seq: int | None
    processors: int
    counts: Mapping[str, int]
    followers: NotRequired[Sequence[str]]
    followed: NotRequired[bool]


class ClusterResponse(TypedDict):
    replica_id: str
    leading: bool
    ready: bool
    unready_reason: str
    leader: LeaderResponse | None
    stream_lag_ms: int | None
    position: str
    digest: str
    journal_seq: int | None
    schema: SchemaResponse
    replicas: Sequence[ReplicaResponse]
    counts: Mapping[str, int]
    paused: NotRequired[PauseResponse | None]
    findings: FindingsResponse | None
    mirrors_differ: Sequence[str]
    quarantine: Sequence[QuarantinedResponse]
    shards: NotRequired[Sequence[ShardResponse]]


ConflictScope = Literal["tenant", "shared"]


class CountsResponse(TypedDict):
    fired: int
    skipped: int
    missed: int
    coalesced: int
    paused: int
    excluded: int
    throttled: int
    unstorable: int


class CronBody(TypedDict):
    jitter: NotRequired[str | float]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_fires: NotRequired[int | None]
    exclude: NotRequired[Sequence[WindowBody]]
    calendars: NotRequired[CalendarUseBody | None]
    type: Literal["cron"]
    expression: str
    timezone: NotRequired[str]


class IntervalBody(TypedDict):
    jitter: NotRequired[str | float]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_fires: NotRequired[int | None]
    exclude: NotRequired[Sequence[WindowBody]]
    calendars: NotRequired[CalendarUseBody | None]
    type: Literal["interval"]
    every: str | float
    anchor: NotRequired[str | None]


class TimesBody(TypedDict):
    jitter: NotRequired[str | float]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_fires: NotRequired[int | None]
    exclude: NotRequired[Sequence[WindowBody]]
    calendars: NotRequired[CalendarUseBody | None]
    type: Literal["times"]
    at: Sequence[str]


class OnceBody(TypedDict):
    jitter: NotRequired[str | float]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_fires: NotRequired[int | None]
    exclude: NotRequired[Sequence[WindowBody]]
    calendars: NotRequired[CalendarUseBody | None]
    type: Literal["once"]
    at: str


class MisfireBody(TypedDict):
    grace: NotRequired[str | float]
    catch_up: NotRequired[Literal["none", "latest", "all"]]
    limit: NotRequired[int]


class TemplateBody(TypedDict):
    definition: str
    payload: NotRequired[Json]
    priority: NotRequired[int]
    tenant: NotRequired[str | None]
    fairness_key: NotRequired[str | None]
    lane: NotRequired[str]
    mode: NotRequired[Literal["queued", "on_demand"]]
    resources: NotRequired[Mapping[str, Any] | None]
    target: NotRequired[str | None]
    expires_in: NotRequired[str | float | None]
    render: NotRequired[bool]


class GraphJobBody(TypedDict):
    definition: str
    payload: NotRequired[Json]
    priority: NotRequired[int]
    tenant: NotRequired[str | None]
    fairness_key: NotRequired[str | None]
    lane: NotRequired[str]
    mode: NotRequired[Literal["queued", "on_demand"]]
    resources: NotRequired[Mapping[str, Any] | None]
    target: NotRequired[str | None]
    expires_in: NotRequired[str | float | None]
    render: NotRequired[bool]
    ref: str
    depends_on: NotRequired[Sequence[str]]


class CreateScheduleBody(TypedDict):
    trigger: CronBody | IntervalBody | TimesBody | OnceBody | AnyBody
    misfire: NotRequired[MisfireBody]
    overlap: NotRequired[Literal["allow", "skip", "buffer_one", "cancel_running"]]
    pause_after_failures: NotRequired[int | None]
    job: NotRequired[TemplateBody | None]
    jobs: NotRequired[Sequence[GraphJobBody] | None]
    labels: NotRequired[Mapping[str, Any]]
    name: str
    paused: NotRequired[bool]


class CreateTokenBody(TypedDict):
    name: str
    role: Literal["viewer", "submitter", "operator", "admin", "worker"]
    tenant: str
    expires_in: NotRequired[str | float | None]


Criterion = Literal["lane", "tier", "fairness", "deadline", "aged_priority", "score", "arrival"]


class CriterionResponse(TypedDict):
    criterion: Criterion
    value: str
    first: str


class CronResponse(TypedDict):
    jitter: str
    start_at: str | None
    end_at: str | None
    max_fires: int | None
    exclude: Sequence[WindowResponse]
    calendars: CalendarUseResponse | None
    type: Literal["cron"]
    expression: str
    timezone: str


class RateLimitBody(TypedDict):
    count: int
    per: str | float


class KeyLimitBody(TypedDict):
    key: str
    max_concurrency: NotRequired[int | None]
    rate_limit: NotRequired[RateLimitBody | None]


class UniqueBody(TypedDict):
    by: NotRequired[Sequence[str] | None]
    on_duplicate: NotRequired[Literal["keep_first", "replace", "debounce"] | None]
    period: NotRequired[str | float | None]
    max_wait: NotRequired[str | float | None]


class RetryBody(TypedDict):
    attempts: NotRequired[int]
    lost_attempts: NotRequired[int]
    backoff: NotRequired[str | float]
    factor: NotRequired[float]
    max: NotRequired[str | float]


class DefinitionBody(TypedDict):
    default_cost: NotRequired[str | float | None]
    max_concurrency: NotRequired[int | None]
    conflict_group: NotRequired[str | None]
    conflict_scope: NotRequired[Literal["tenant", "shared"] | None]
    tier: NotRequired[int | None]
    rate_limit: NotRequired[RateLimitBody | None]
    key_limits: NotRequired[Sequence[KeyLimitBody] | None]
    resources: NotRequired[Mapping[str, Any] | None]
    unique: NotRequired[UniqueBody | None]
    retry: NotRequired[RetryBody]
    timeout: NotRequired[str | float | None]
    total_timeout: NotRequired[str | float | None]
    owner: NotRequired[str | None]


class DefinitionLoad(TypedDict):
    definition: str | None
    slots: int
    needed: Sequence[int]


class RateLimitResponse(TypedDict):
    count: int
    per: str


class KeyLimitResponse(TypedDict):
    key: str
    max_concurrency: int | None
    rate_limit: RateLimitResponse | None


class UniqueResponse(TypedDict):
    by: Sequence[str]
    on_duplicate: Literal["keep_first", "replace", "debounce"]
    period: str | None
    max_wait: str | None


class RetryResponse(TypedDict):
    attempts: int
    lost_attempts: int
    backoff: str
    factor: int | float
    max: str


class DefinitionResponse(TypedDict):
    name: str
    rev: int
    default_cost: str
    max_concurrency: int | None
    conflict_group: str | None
    conflict_scope: ConflictScope
    tier: int | None
    rate_limit: RateLimitResponse | None
    key_limits: Sequence[KeyLimitResponse]
    resources: Mapping[str, int]
    unique: UniqueResponse | None
    retry: RetryResponse
    timeout: str | None
    total_timeout: str | None
    owner: str | None


class DefinitionPage(TypedDict):
    items: Sequence[DefinitionResponse]
    next: str | None
    unreadable: NotRequired[Sequence[Unlisted]]


DependentAnswer = Literal["ok", "not_ended", "kept", "dependency_failed", "changed"]


class DependentResponse(TypedDict):
    job: str
    answer: DependentAnswer


class DrainBody(TypedDict):
    because: NotRequired[str | None]


class DrainedResponse(TypedDict):
    since: str
    by: str
    because: str | None


class DrainResponse(TypedDict):
    name: str
    drained: DrainedResponse | None


class DrainedNameResponse(TypedDict):
    since: str
    by: str
    because: str | None
    name: str


class EditPreviewResponse(TypedDict):
    fires: Sequence[FireResponse]
    clock_changes: Sequence[ClockChangeResponse]
    timezone: str
    warnings: Sequence[str]
    added: Sequence[FireResponse]
    removed: Sequence[FireResponse]
    until: str


class ErrorGroupFilter(TypedDict):
    definition: str | None
    schedule: str | None
    tenant: str | None
    batch: str | None
    target: str | None
    id: str | None
    since: str | None
    until: str | None
    labels: Mapping[str, Any]
    state: JobState
    unschedulable: bool


class ErrorGroupResponse(TypedDict):
    definition: str
    fault: str
    count: int
    first_at: str
    last_at: str
    job: str
    error: str
    filter: ErrorGroupFilter


EventType = Literal[
    "submitted",
    "dispatched",
    "started",
    "returned",
    "reprioritized",
    "cancel_requested",
    "revived",
    "succeeded",
    "failed",
    "cancelled",
    "schedule.missed",
]


class ExcessResponse(TypedDict):
    from_ms: int
    to_ms: int
    summary: str


class FailoverResponse(TypedDict):
    term: int
    shard: str
    holder: str
    cause: Cause
    deciding_at: str
    gap_ms: int | None
    first_decision_at: str | None


class FailoversResponse(TypedDict):
    items: Sequence[FailoverResponse]


class FetchBody(TypedDict):
    processor: str
    wait: NotRequired[str | float]
    limit: NotRequired[int]
    running: NotRequired[Sequence[AttemptName]]


class FetchResponse(TypedDict):
    cancelled: Sequence[AttemptName]
    revoked: Sequence[AttemptName]
    attempts: Sequence[AttemptName]


FinishAnswer = Literal["done", "late"]


class FinishBody(TypedDict):
    job: str
    attempt: int
    processor: str
    outcome: Literal["succeeded", "failed", "cancelled", "given_back"]
    result: NotRequired[Json]
    error: NotRequired[str | None]
    traceback: NotRequired[str | None]
    retryable: NotRequired[bool]
    retry_after: NotRequired[str | float | None]


class FinishResponse(TypedDict):
    answer: FinishAnswer
    retry_at: str | None


class GraphJobResponse(TypedDict):
    definition: str
    payload: Json
    priority: int
    tenant: str
    fairness_key: str
    lane: str
    mode: str
    resources: Mapping[str, int] | None
    target: str
    expires_in: str | None
    render: bool
    ref: str
    depends_on: Sequence[str]


class Report(TypedDict):
    job: str
    attempt: int
    percent: NotRequired[float | None]
    text: NotRequired[str]


class HeartbeatBody(TypedDict):
    processor: str
    running: NotRequired[Sequence[Report]]
    draining: NotRequired[bool]


class HeldAttemptsResponse(TypedDict):
    cancelled: Sequence[AttemptName]
    revoked: Sequence[AttemptName]


class IntervalResponse(TypedDict):
    jitter: str
    start_at: str | None
    end_at: str | None
    max_fires: int | None
    exclude: Sequence[WindowResponse]
    calendars: CalendarUseResponse | None
    type: Literal["interval"]
    every: str
    anchor: str


class JobCountsResponse(TypedDict):
    matched: int
    exact: bool
    at_least: Sequence[JobState]
    pending: int
    dispatched: int
    running: int
    succeeded: int
    failed: int
    cancelled: int


class OtherErrorsResponse(TypedDict):
    groups: int
    count: int


class JobErrorsResponse(TypedDict):
    groups: Sequence[ErrorGroupResponse]
    others: OtherErrorsResponse
    examined: int
    complete: bool


class ProgressResponse(TypedDict):
    percent: float | None
    text: str
    at: str


class JobSummary(TypedDict):
    id: str
    state: JobState
    attempt: int
    tries: int
    revivals: int
    definition: str
    target: str
    priority: int
    tenant: str
    fairness_key: str
    lane: str
    mode: str
    resources: Mapping[str, int] | None
    unschedulable: bool
    labels: Mapping[str, str]
    schedule: str | None
    nominal_at: str | None
    submitted_at: str
    not_before: str | None
    processor: str | None
    dispatched_at: str | None
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None
    failures: int
    losses: int
    retry_at: str | None
    first_started_at: str | None
    expires_at: str | None
    depends_on: Sequence[str]
    on_dependency_failure: Literal["fail", "ignore"]
    batch: str | None
    overdue_since: NotRequired[str | None]
    progress: ProgressResponse | None
    error: str | None


class JobPage(TypedDict):
    items: Sequence[JobSummary]
    next: str | None
    unreadable: NotRequired[Sequence[Unlisted]]


class JobResponse(TypedDict):
    id: str
    state: JobState
    attempt: int
    tries: int
    revivals: int
    definition: str
    target: str
    priority: int
    tenant: str
    fairness_key: str
    lane: str
    mode: str
    resources: Mapping[str, int] | None
    unschedulable: bool
    labels: Mapping[str, str]
    schedule: str | None
    nominal_at: str | None
    submitted_at: str
    not_before: str | None
    processor: str | None
    dispatched_at: str | None
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None
    failures: int
    losses: int
    retry_at: str | None
    first_started_at: str | None
    expires_at: str | None
    depends_on: Sequence[str]
    on_dependency_failure: Literal["fail", "ignore"]
    batch: str | None
    overdue_since: NotRequired[str | None]
    progress: ProgressResponse | None
    error: str | None
    payload: Json
    result: Json
    attempts: Sequence[AttemptResponse]


class JobRetryBody(TypedDict):
    with_dependents: NotRequired[bool]


RetryAnswer = Literal["ok", "not_ended", "not_failed"]


class JobRetryResponse(TypedDict):
    answer: RetryAnswer
    dependents: NotRequired[Sequence[DependentResponse]]
    complete: NotRequired[bool]


class LaneBody(TypedDict):
    weight: NotRequired[int | None]
    promote_after: NotRequired[str | float | Sequence[str | float] | None]
    policy: NotRequired[
        Literal["affinity", "fair", "swimlanes", "balanced"]
        | Sequence[Literal["lane", "tier", "fairness", "deadline", "aged_priority", "score", "arrival"]]
        | None
    ]
    owner: NotRequired[str | None]


class LaneResponse(TypedDict):
    name: str
    rev: int
    weight: int
    promote_after: str | Sequence[str]
    policy: Sequence[Criterion] | None
    owner: str | None


class LanePage(TypedDict):
    items: Sequence[LaneResponse]
    next: str | None
    unreadable: NotRequired[Sequence[Unlisted]]


class LeadingResponse(TypedDict):
    leading: bool
    reason: NotRequired[str]


class LiveResponse(TypedDict):
    alive: bool
    reason: NotRequired[str]


class LoadResponse(TypedDict):
    items: Sequence[DefinitionLoad]
    too_much: Sequence[ExcessResponse]
    from_ms: int
    bucket_ms: int
    left_out: int


class MisfireResponse(TypedDict):
    grace: str
    catch_up: CatchUp
    limit: int


Role = Literal["viewer", "submitter", "operator", "admin", "worker"]


class NewTokenResponse(TypedDict):
    id: str
    name: str
    role: Role
    tenant: str
    created_at: str
    created_by: str
    expires_at: str | None
    expired: bool
    session: bool
    token: str


class OnceResponse(TypedDict):
    jitter: str
    start_at: str | None
    end_at: str | None
    max_fires: int | None
    exclude: Sequence[WindowResponse]
    calendars: CalendarUseResponse | None
    type: Literal["once"]
    at: str


Overlap = Literal["allow", "skip", "buffer_one", "cancel_running"]


class PassedOver(TypedDict):
    verdict: Verdict
    from_ms: int
    to_ms: int
    count: int


class PauseAllBody(TypedDict):
    because: str
    schedules_only: NotRequired[bool]


class PauseBody(TypedDict):
    because: NotRequired[str | None]


class PauseSchedulesBody(TypedDict):
    filter: ScheduleFilterBody
    dry_run: NotRequired[bool | None]
    expected: NotRequired[int | None]
    after: NotRequired[str | None]
    because: NotRequired[str | None]


class PausedResponse(TypedDict):
    paused: PauseResponse | None


Power = Literal["read", "submit", "operate", "administer", "work"]


class PreviewBody(TypedDict):
    name: NotRequired[str | None]
    trigger: CronBody | IntervalBody | TimesBody | OnceBody | AnyBody


class PreviewResponse(TypedDict):
    fires: Sequence[FireResponse]
    clock_changes: Sequence[ClockChangeResponse]
    timezone: str
    warnings: Sequence[str]


class RestResponse(TypedDict):
    missed: int
    until: str


class ProcessorResponse(TypedDict):
    id: str
    name: str
    shard: str
    definitions: Sequence[str]
    slots: int
    resources: Mapping[str, int]
    occupied: int
    alive: bool
    draining: bool
    drained: NotRequired[DrainedResponse | None]
    parked: int
    consuming: NotRequired[bool]
    rest: NotRequired[RestResponse | None]


class ProcessorsResponse(TypedDict):
    items: Sequence[ProcessorResponse]
    absent: NotRequired[Sequence[DrainedNameResponse]]


class QueuePositionResponse(TypedDict):
    ahead: int
    exact: bool
    first: str
    deciding: Criterion | None
    criteria: Sequence[CriterionResponse]


class ReadyResponse(TypedDict):
    ready: bool
    reason: NotRequired[str]


class RegisterBody(TypedDict):
    name: str
    definitions: Sequence[str]
    slots: NotRequired[int]
    resources: NotRequired[Mapping[str, Any]]


class RegisteredResponse(TypedDict):
    processor: str
    heartbeat_interval: float
    heartbeat_deadline: float


class ReplaceScheduleBody(TypedDict):
    trigger: CronBody | IntervalBody | TimesBody | OnceBody | AnyBody
    misfire: NotRequired[MisfireBody]
    overlap: NotRequired[Literal["allow", "skip", "buffer_one", "cancel_running"]]
    pause_after_failures: NotRequired[int | None]
    job: NotRequired[TemplateBody | None]
    jobs: NotRequired[Sequence[GraphJobBody] | None]
    labels: NotRequired[Mapping[str, Any]]
    name: NotRequired[str | None]


ReprioritizeAnswer = Literal["ok", "already_running", "already_done"]


class ReprioritizeBody(TypedDict):
    priority: int


class ReprioritizeResponse(TypedDict):
    answer: ReprioritizeAnswer


class ReprioritizeSomeBody(TypedDict):
    filter: FilterBody
    dry_run: NotRequired[bool | None]
    expected: NotRequired[int | None]
    after: NotRequired[str | None]
    priority: int


ResetBody = TypedDict("ResetBody", {"from": NotRequired[Literal["now"]]})


class ResumeBody(TypedDict):
    catch_up: NotRequired[bool]


class ResumeSchedulesBody(TypedDict):
    filter: ScheduleFilterBody
    dry_run: NotRequired[bool | None]
    expected: NotRequired[int | None]
    after: NotRequired[str | None]
    catch_up: NotRequired[bool | None]


class ScheduleCountsResponse(TypedDict):
    matched: int
    exact: bool
    active: int
    paused: int
    ended: int


class TimesResponse(TypedDict):
    jitter: str
    start_at: str | None
    end_at: str | None
    max_fires: int | None
    exclude: Sequence[WindowResponse]
    calendars: CalendarUseResponse | None
    type: Literal["times"]
    at: Sequence[str]


class TemplateResponse(TypedDict):
    definition: str
    payload: Json
    priority: int
    tenant: str
    fairness_key: str
    lane: str
    mode: str
    resources: Mapping[str, int] | None
    target: str
    expires_in: str | None
    render: bool


class ScheduleResponse(TypedDict):
    name: str
    rev: int
    trigger: CronResponse | IntervalResponse | TimesResponse | OnceResponse | AnyResponse
    misfire: MisfireResponse
    overlap: Overlap
    pause_after_failures: int | None
    job: TemplateResponse
    jobs: Sequence[GraphJobResponse] | None
    labels: Mapping[str, str]
    created_at: str
    paused: bool
    paused_at: str | None
    paused_because: str | None
    last_nominal_at: str | None
    next_at: str | None
    next_due_at: str | None
    ahead_until: str | None
    counts: CountsResponse
    failures_in_a_row: int
    warnings: Sequence[str]


class SchedulePage(TypedDict):
    items: Sequence[ScheduleResponse]
    next: str | None
    unreadable: NotRequired[Sequence[Unlisted]]


class ScheduleTimeline(TypedDict):
    name: str
    paused: bool
    expected_ms: int
    fired: Sequence[Sequence[int]]
    passed_over: Sequence[PassedOver]
    known_since_ms: int
    ahead_ms: Sequence[int]
    ahead_count: int
    note: str | None


class ScheduleVerdictResponse(TypedDict):
    schedule: str
    verdict: Verdict
    nominal_at: str
    through_at: str
    count: int
    because_of: str | None
    decided_at: str


class ScheduleVerdictPage(TypedDict):
    items: Sequence[ScheduleVerdictResponse]
    next: str | None


class StartBody(TypedDict):
    job: str
    attempt: int
    processor: str


class StartedResponse(TypedDict):
    job: str
    attempt: int
    definition: str
    target: str
    payload: Json
    tenant: str
    labels: Mapping[str, str]
    schedule: str | None
    nominal_at: str | None
    submitted_at: str
    started_at: str
    failures: int
    losses: int
    timeout: float | None
    traceparent: str | None


class SubmitJobBody(TypedDict):
    definition: str
    payload: NotRequired[Json]
    priority: NotRequired[int]
    tenant: NotRequired[str | None]
    fairness_key: NotRequired[str | None]
    lane: NotRequired[str]
    mode: NotRequired[Literal["queued", "on_demand"]]
    resources: NotRequired[Mapping[str, Any] | None]
    target: NotRequired[str | None]
    labels: NotRequired[Mapping[str, Any]]
    not_before: NotRequired[str | None]
    expires_at: NotRequired[str | None]
    depends_on: NotRequired[Sequence[str]]
    on_dependency_failure: NotRequired[Literal["fail", "ignore"]]


class TenantBody(TypedDict):
    max_running: NotRequired[int | None]
    max_pending: NotRequired[int | None]
    submit_rate: NotRequired[RateLimitBody | None]
    max_schedules: NotRequired[int | None]
    fire_rate: NotRequired[RateLimitBody | None]
    owner: NotRequired[str | None]


class TenantResponse(TypedDict):
    name: str
    rev: int
    max_running: int | None
    max_pending: int | None
    submit_rate: RateLimitResponse | None
    max_schedules: int | None
    fire_rate: RateLimitResponse | None
    owner: str | None


class TenantPage(TypedDict):
    items: Sequence[TenantResponse]
    next: str | None
    unreadable: NotRequired[Sequence[Unlisted]]


class TimelineResponse(TypedDict):
    items: Sequence[ScheduleTimeline]
    now: str
    from_ms: int
    to_ms: int
    bucket_ms: int
    load: LoadResponse
    next: str | None


class TokenResponse(TypedDict):
    id: str
    name: str
    role: Role
    tenant: str
    created_at: str
    created_by: str
    expires_at: str | None
    expired: bool
    session: bool


class TokenPage(TypedDict):
    items: Sequence[TokenResponse]
    next: str | None
    unreadable: NotRequired[Sequence[Unlisted]]


class TriggerNowBody(TypedDict):
    overlap: NotRequired[Literal["allow", "skip", "buffer_one", "cancel_running"] | None]
    payload: NotRequired[Json]


class UndecidedResponse(TypedDict):
    count: int
    since: str | None
    because: Literal["due", "paused", "excluded"] | None


class VerdictResponse(TypedDict):
    verdict: Verdict
    nominal_at: str
    through_at: str
    count: int
    job: str | None
    job_state: JobState | None
    because_of: str | None
    into: str | None


class VerdictsResponse(TypedDict):
    items: Sequence[VerdictResponse]
    counts: CountsResponse
    undecided: UndecidedResponse
    next: str | None


class WhoamiResponse(TypedDict):
    name: str
    token: str | None
    role: Role
    tenant: str
    may: Sequence[Power]
    tokens_demanded: bool


class WhyResponse(TypedDict):
    job: str
    state: JobState
    seen: bool
    summary: str
    processor: str | None
    finished_at: str | None
    error: NotRequired[str | None]
    blocks: Sequence[BlockResponse]
    standing: QueuePositionResponse | None
