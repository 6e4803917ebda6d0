"""The answers of the HTTP API. Written by scripts/generate-client from its OpenAPI document.

Each is the JSON itself; `hascheduler.client.answer` says how its attributes are read.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from hascheduler.client.answer import Answer, Json
from hascheduler.model.job import JobState


class AttemptResponse(Answer):
    number: int
    processor: str | None
    dispatched_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    outcome: str
    error: str | None
    traceback: str | None


class AuditResponse(Answer):
    id: str
    at: datetime
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


class BackfillResponse(Answer):
    count: int
    created: int
    existing: int
    undecided: int
    jobs: tuple[str, ...]


class FieldProblem(Answer):
    path: str
    problem: str
    expected: str


class Problem(Answer):
    type: str
    title: str
    status: int
    detail: str
    errors: tuple[FieldProblem, ...]
    id: str | None


class BatchResult(Answer):
    status: int
    job: str | None
    problem: Problem | None


class BatchResponse(Answer):
    batch: str
    results: tuple[BatchResult, ...]


class LeaderResponse(Answer):
    holder: str
    term: int
    endpoint: str
    since: datetime


class SchemaResponse(Answer):
    version: int
    oldest_read: int
    newest_read: int


class ReplicaResponse(Answer):
    id: str
    name: str
    version: str | None
    zone_data: str | None
    started_at: datetime
    http_endpoint: str
    liveness_endpoint: str
    ready: bool
    stream_lag_ms: int | None
    position: str
    digest: str
    quarantined: int
    alive: bool


class DrainedResponse(Answer):
    since: datetime
    by: str
    because: str | None


class PauseResponse(DrainedResponse):
    schedules_only: bool


class FindingsResponse(Answer):
    at: datetime
    counts: Mapping[str, int]


class QuarantinedResponse(Answer):
    collection: str
    id: str
    reason: str


class ShardResponse(Answer):
    name: str
    leader: LeaderResponse | None
    leading: bool
    ready: bool
    unready_reason: str
    stream_lag_ms: int | None
    journal_seq: int | None
    processors: int
    counts: Mapping[str, int]
    followers: tuple[str, ...]
    followed: bool


class UncheckedRuleResponse(Answer):
    rule: str
    reason: str


class HealthLinkResponse(Answer):
    view: str
    query: Mapping[str, str]


class HealthProblemResponse(Answer):
    severity: Literal["page", "ticket"]
    rule: str
    text: str
    evidence: str | None
    since: datetime | None
    runbook: str | None
    link: HealthLinkResponse | None


class HealthCountsResponse(Answer):
    failed_jobs: int | None
    failing_schedules: int | None
    late_schedules: int | None


class HealthResponse(Answer):
    state: Literal["good", "warning", "critical", "unknown"]
    title: str
    text: str
    checked: tuple[str, ...]
    unchecked: tuple[UncheckedRuleResponse, ...]
    problems: tuple[HealthProblemResponse, ...]
    counts: HealthCountsResponse
    replicas_expected: int
    replicas_alive: int


class ClusterResponse(Answer):
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
    replicas: tuple[ReplicaResponse, ...]
    counts: Mapping[str, int]
    paused: PauseResponse | None
    findings: FindingsResponse | None
    mirrors_differ: tuple[str, ...]
    quarantine: tuple[QuarantinedResponse, ...]
    shards: tuple[ShardResponse, ...]
    health: HealthResponse | None


class DrainResponse(Answer):
    name: str
    drained: DrainedResponse | None


class FireResponse(Answer):
    nominal_at: datetime
    due_at: datetime
    local: datetime
    weekday: str
    excluded: bool
    note: str | None
    payload: Json


class ClockChangeResponse(Answer):
    at: datetime
    kind: Literal["gap", "fold"]
    offset_before: datetime
    offset_after: str
    explanation: str
    fires: tuple[FireResponse, ...]


class PreviewResponse(Answer):
    fires: tuple[FireResponse, ...]
    clock_changes: tuple[ClockChangeResponse, ...]
    timezone: str
    warnings: tuple[str, ...]


class EditPreviewResponse(PreviewResponse):
    added: tuple[FireResponse, ...]
    removed: tuple[FireResponse, ...]
    until: datetime


Cause = Literal["first", "released", "died", "stood_still", "lapsed", "deleted"]


class FailoverResponse(Answer):
    term: int
    shard: str
    holder: str
    cause: Cause
    deciding_at: datetime
    gap_ms: int | None
    first_decision_at: datetime | None


class FailoversResponse(Answer):
    items_: tuple[FailoverResponse, ...]


class AttemptName(Answer):
    job: str
    attempt: int


class FetchResponse(Answer):
    cancelled: tuple[AttemptName, ...]
    revoked: tuple[AttemptName, ...]
    attempts: tuple[AttemptName, ...]


FinishAnswer = Literal["done", "late"]


class FinishResponse(Answer):
    answer: FinishAnswer
    retry_at: datetime | None


class HeldAttemptsResponse(Answer):
    cancelled: tuple[AttemptName, ...]
    revoked: tuple[AttemptName, ...]


class JobCountsResponse(Answer):
    matched: int
    exact: bool
    at_least: tuple[JobState, ...]
    pending: int
    dispatched: int
    running: int
    succeeded: int
    failed: int
    cancelled: int


class ErrorGroupFilter(Answer):
    definition: str | None
    schedule: str | None
    tenant: str | None
    batch: str | None
    target: str | None
    id: str | None
    since: datetime | None
    until: datetime | None
    error: str | None
    failed_since: datetime | None
    labels: Mapping[str, Json]
    state: JobState
    ended_before: datetime | None
    unschedulable: bool


class ErrorGroupResponse(Answer):
    definition: str
    fault: str
    count: int
    first_at: datetime
    last_at: datetime
    job: str
    error: str
    filter: ErrorGroupFilter


class OtherErrorsResponse(Answer):
    groups: int
    count: int


class JobErrorsResponse(Answer):
    groups: tuple[ErrorGroupResponse, ...]
    others: OtherErrorsResponse
    examined: int
    complete: bool


class ProgressResponse(Answer):
    percent: float | None
    text: str
    at: datetime


class JobResponse(Answer):
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
    nominal_at: datetime | None
    submitted_at: datetime
    not_before: datetime | None
    processor: str | None
    dispatched_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    failures: int
    losses: int
    retry_at: datetime | None
    first_started_at: datetime | None
    expires_at: datetime | None
    depends_on: tuple[str, ...]
    on_dependency_failure: Literal["fail", "ignore"]
    batch: str | None
    overdue_since: datetime | None
    failed_job: str | None
    on_failure_job: str | None
    progress: ProgressResponse | None
    error: str | None
    payload: Json
    result: Json
    attempts: tuple[AttemptResponse, ...]


RetryAnswer = Literal["ok", "not_ended", "not_failed"]


DependentAnswer = Literal["ok", "not_ended", "kept", "dependency_failed", "changed"]


class DependentResponse(Answer):
    job: str
    answer: DependentAnswer


class JobRetryResponse(Answer):
    answer: RetryAnswer
    dependents: tuple[DependentResponse, ...]
    complete: bool


Role = Literal["viewer", "submitter", "operator", "admin", "worker"]


class TokenResponse(Answer):
    id: str
    name: str
    role: Role
    tenant: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    expired: bool
    session: bool


class NewTokenResponse(TokenResponse):
    token: str


class PausedResponse(Answer):
    paused: PauseResponse | None
    resumed: PauseResponse | None


class RestResponse(Answer):
    missed: int
    until: datetime


class ProcessorResponse(Answer):
    id: str
    name: str
    shard: str
    definitions: tuple[str, ...]
    slots: int
    resources: Mapping[str, int]
    occupied: int
    alive: bool
    draining: bool
    drained: DrainedResponse | None
    parked: int
    consuming: bool | None
    rest: RestResponse | None


class DrainedNameResponse(DrainedResponse):
    name: str


class ProcessorsResponse(Answer):
    items_: tuple[ProcessorResponse, ...]
    absent: tuple[DrainedNameResponse, ...]


class RecentTime(Answer):
    nominal_at: datetime
    outcome: Literal[
        "succeeded",
        "failed",
        "cancelled",
        "running",
        "waiting",
        "missed",
        "skipped",
        "coalesced",
        "paused",
        "excluded",
        "throttled",
        "unstorable",
    ]
    count: int
    job: str | None
    late_ms: int | None


class RecentSchedule(Answer):
    name: str
    times: tuple[RecentTime, ...]
    error: str | None


class RecentResponse(Answer):
    items_: tuple[RecentSchedule, ...]


class RegisteredResponse(Answer):
    processor: str
    heartbeat_interval: float
    heartbeat_deadline: float


class ScheduleCountsResponse(Answer):
    matched: int
    exact: bool
    active: int
    paused: int
    ended: int
    failing: int
    late: int


class WindowResponse(Answer):
    from_: datetime
    to: datetime


class CalendarUseResponse(Answer):
    only: tuple[str, ...]
    except_: tuple[str, ...]
    timezone: str | None


class TriggerBounds(Answer):
    jitter: timedelta
    start_at: datetime | None
    end_at: datetime | None
    max_fires: int | None
    exclude: tuple[WindowResponse, ...]
    calendars: CalendarUseResponse | None


class CronPartResponse(Answer):
    type: Literal["cron"]
    expression: str
    timezone: str


class CronResponse(TriggerBounds, CronPartResponse):
    pass


class IntervalPartResponse(Answer):
    type: Literal["interval"]
    every: timedelta
    anchor: datetime


class IntervalResponse(TriggerBounds, IntervalPartResponse):
    pass


class TimesResponse(TriggerBounds):
    type: Literal["times"]
    at: tuple[datetime, ...]


class OnceResponse(TriggerBounds):
    type: Literal["once"]
    at: datetime


class TimesPartResponse(Answer):
    type: Literal["times"]
    at: tuple[datetime, ...]


class OncePartResponse(Answer):
    type: Literal["once"]
    at: datetime


class AnyResponse(TriggerBounds):
    type: Literal["any"]
    of: tuple[CronPartResponse | IntervalPartResponse | TimesPartResponse | OncePartResponse, ...]


CatchUp = Literal["none", "latest", "all"]


class MisfireResponse(Answer):
    grace: timedelta
    catch_up: CatchUp
    limit: int


Overlap = Literal["allow", "skip", "buffer_one", "cancel_running"]


class TemplateResponse(Answer):
    definition: str
    payload: Json
    priority: int
    tenant: str
    fairness_key: str
    lane: str
    mode: Literal["queued", "on_demand"]
    resources: Mapping[str, int] | None
    target: str
    expires_in: timedelta | None
    render: bool


class GraphJobResponse(TemplateResponse):
    ref: str
    depends_on: tuple[str, ...]


class CountsResponse(Answer):
    fired: int
    skipped: int
    missed: int
    coalesced: int
    paused: int
    excluded: int
    throttled: int
    unstorable: int


class ScheduleResponse(Answer):
    trigger: CronResponse | IntervalResponse | TimesResponse | OnceResponse | AnyResponse
    misfire: MisfireResponse
    overlap: Overlap
    pause_after_failures: int | None
    on_failure: str | None
    job: TemplateResponse
    jobs: tuple[GraphJobResponse, ...] | None
    labels: Mapping[str, Json]
    name: str
    rev: int
    created_at: datetime
    paused: bool
    paused_at: datetime | None
    paused_because: str | None
    last_nominal_at: datetime | None
    next_at: datetime | None
    next_due_at: datetime | None
    ahead_until: datetime | None
    counts: CountsResponse
    failures_in_a_row: int
    late: bool
    warnings: tuple[str, ...]


Verdict = Literal["fired", "unstorable", "skipped", "missed", "coalesced", "paused", "excluded", "throttled"]


class ScheduleVerdictResponse(Answer):
    verdict: Verdict
    nominal_at: datetime
    through_at: datetime
    count: int
    because_of: str | None
    schedule: str
    decided_at: datetime


class StartedResponse(Answer):
    job: str
    attempt: int
    definition: str
    target: str
    payload: Json
    tenant: str
    labels: Mapping[str, str]
    schedule: str | None
    nominal_at: datetime | None
    submitted_at: datetime
    started_at: datetime
    failures: int
    losses: int
    timeout: float | None
    traceparent: str | None


class PassedOver(Answer):
    verdict: Verdict
    from_ms: int
    to_ms: int
    count: int


class ScheduleTimeline(Answer):
    name: str
    paused: bool
    expected_ms: int
    fired: tuple[tuple[int, ...], ...]
    passed_over: tuple[PassedOver, ...]
    known_since_ms: int
    ahead_ms: tuple[int, ...]
    ahead_count: int
    note: str | None


class DefinitionLoad(Answer):
    definition: str | None
    slots: int
    needed: tuple[int, ...]


class ExcessResponse(Answer):
    from_ms: int
    to_ms: int
    summary: str


class LoadResponse(Answer):
    items_: tuple[DefinitionLoad, ...]
    too_much: tuple[ExcessResponse, ...]
    used: tuple[int, ...]
    from_ms: int
    bucket_ms: int
    left_out: int


class TimelineResponse(Answer):
    items_: tuple[ScheduleTimeline, ...]
    now: datetime
    from_ms: int
    to_ms: int
    bucket_ms: int
    load: LoadResponse
    next: str | None


class VerdictResponse(Answer):
    verdict: Verdict
    nominal_at: datetime
    through_at: datetime
    count: int
    because_of: str | None
    job: str | None
    job_state: JobState | None
    into: str | None


class UndecidedResponse(Answer):
    count: int
    since: datetime | None
    because: Literal["due", "paused", "excluded"] | None


class VerdictsResponse(Answer):
    items_: tuple[VerdictResponse, ...]
    counts: CountsResponse
    undecided: UndecidedResponse
    next: str | None


Power = Literal["read", "submit", "operate", "administer", "work"]


class WhoamiResponse(Answer):
    name: str
    token: str | None
    role: Role
    tenant: str
    may: tuple[Power, ...]
    tokens_demanded: bool


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


class BlockResponse(Answer):
    rule: Rule
    because: str
    unblocked_by: str
    numbers: Mapping[str, int | str | tuple[str, ...]]
    until: datetime | None


Criterion = Literal["lane", "tier", "fairness", "deadline", "aged_priority", "score", "arrival"]


class CriterionResponse(Answer):
    criterion: Criterion
    value: str
    first: str


class QueuePositionResponse(Answer):
    ahead: int
    exact: bool
    first: str
    deciding: Criterion | None
    criteria: tuple[CriterionResponse, ...]


class WhyResponse(Answer):
    job: str
    state: JobState
    seen: bool
    summary: str
    processor: str | None
    finished_at: datetime | None
    error: str | None
    blocks: tuple[BlockResponse, ...]
    standing: QueuePositionResponse | None
