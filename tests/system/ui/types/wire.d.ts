// Written by scripts/generate-client from the OpenAPI document.

export interface AnyBody {
  "type": "any";
  "of": (CronPart | IntervalPart | TimesPart | OncePart)[];
  "jitter": (string | number | null);
  "start_at"?: (string | null);
  "end_at"?: (string | null);
  "max_fires"?: (number | null);
  "exclude": (WindowBody[] | null);
  "calendars"?: (CalendarUseBody | null);
}

export interface AnyResponse {
  "type": "any";
  "of": (CronPartResponse | IntervalPartResponse | TimesPartResponse | OncePartResponse)[];
  "jitter": string;
  "start_at": (string | null);
  "end_at": (string | null);
  "max_fires": (number | null);
  "exclude": WindowResponse[];
  "calendars": (CalendarUseResponse | null);
}

export interface AttemptName {
  "job": string;
  "attempt": number;
}

export interface AttemptResponse {
  "number": number;
  "processor": (string | null);
  "dispatched_at": (string | null);
  "started_at": (string | null);
  "finished_at": (string | null);
  "outcome": string;
  "error": (string | null);
  "traceback": (string | null);
}

export interface AuditPage {
  "items": AuditResponse[];
  "next": (string | null);
  "unreadable": Unlisted[];
}

export interface AuditResponse {
  "id": string;
  "at": string;
  "who": string;
  "token": (string | null);
  "role": (string | null);
  "tenant": (string | null);
  "address": string;
  "method": string;
  "path": string;
  "route": (string | null);
  "target": (string | null);
  "status": number;
  "request": string;
  "because": (string | null);
  "left_out": number;
}

export interface BackfillBody {
  "from": string;
  "to": string;
  "overlap": ("allow" | "buffer_one");
  "dry_run": boolean;
}

export interface BackfillResponse {
  "count": number;
  "created": number;
  "existing": number;
  "undecided": number;
  "jobs": string[];
}

export interface BatchBody {
  "jobs": (BatchJob | JsonValue)[];
  "atomic": boolean;
}

export interface BatchJob {
  "definition": string;
  "payload"?: (JsonValue | null);
  "priority": (number | null);
  "tenant"?: (string | null);
  "fairness_key"?: (string | null);
  "lane": (string | null);
  "mode": (("queued" | "on_demand") | null);
  "resources"?: (Record<string, any> | null);
  "target"?: (string | null);
  "labels": (Record<string, any> | null);
  "not_before"?: (string | null);
  "expires_at"?: (string | null);
  "depends_on": (string[] | null);
  "on_dependency_failure": (("fail" | "ignore") | null);
  "ref"?: (string | null);
  "idempotency_key"?: (string | null);
}

export interface BatchResponse {
  "batch": string;
  "results": BatchResult[];
}

export interface BatchResult {
  "status": number;
  "job": (string | null);
  "problem": (Problem | null);
}

export interface BlockResponse {
  "rule": Rule;
  "because": string;
  "unblocked_by": string;
  "numbers": Record<string, (number | string | string[])>;
  "until": (string | null);
}

export interface CalendarBody {
  "weekdays": (string[] | null);
  "include": (string[] | null);
  "exclude": (string[] | null);
  "owner"?: (string | null);
}

export interface CalendarPage {
  "items": CalendarResponse[];
  "next": (string | null);
  "unreadable": Unlisted[];
}

export interface CalendarResponse {
  "name": string;
  "rev": number;
  "weekdays": string[];
  "include": string[];
  "exclude": string[];
  "owner": (string | null);
}

export interface CalendarUseBody {
  "only": (string[] | null);
  "except": (string[] | null);
  "timezone"?: (string | null);
}

export interface CalendarUseResponse {
  "only": string[];
  "except": string[];
  "timezone": (string | null);
}

export type CancelAnswer = ("cancelled" | "already_running" | "already_done");

export interface CancelResponse {
  "answer": CancelAnswer;
}

export type CatchUp = ("none" | "latest" | "all");

export type Cause = ("first" | "released" | "died" | "stood_still" | "lapsed" | "deleted");

export interface ChangeBody {
  "filter": FilterBody;
  "dry_run": (boolean | null);
  "expected"?: (number | null);
  "after"?: (string | null);
}

export interface ChangeSchedulesBody {
  "filter": ScheduleFilterBody;
  "dry_run": (boolean | null);
  "expected"?: (number | null);
  "after"?: (string | null);
}

export interface ChangedResponse {
  "matched": number;
  "exact": boolean;
  "changed": number;
  "asked_to_stop": number;
  "refused": number;
  "error": (string | null);
  "complete": boolean;
  "next": (string | null);
}

export interface ClockChangeResponse {
  "at": string;
  "kind": ("gap" | "fold");
  "offset_before": string;
  "offset_after": string;
  "explanation": string;
  "fires": FireResponse[];
}

export interface ClusterResponse {
  "replica_id": string;
  "leading": boolean;
  "ready": boolean;
  "unready_reason": string;
  "leader": (LeaderResponse | null);
  "stream_lag_ms": (number | null);
  "position": string;
  "digest": string;
  "journal_seq": (number | null);
  "schema": SchemaResponse;
  "replicas": ReplicaResponse[];
  "counts": Record<string, number>;
  "paused": (PauseResponse | null);
  "findings": (FindingsResponse | null);
  "mirrors_differ": string[];
  "quarantine": QuarantinedResponse[];
  "shards": ShardResponse[];
}

export type ConflictScope = ("tenant" | "shared");

export interface CountsResponse {
  "fired": number;
  "skipped": number;
  "missed": number;
  "coalesced": number;
  "paused": number;
  "excluded": number;
  "throttled": number;
  "unstorable": number;
}

export interface CreateScheduleBody {
  "trigger": (CronBody | IntervalBody | TimesBody | OnceBody | AnyBody);
  "misfire": (MisfireBody | null);
  "overlap": (Overlap | null);
  "pause_after_failures"?: (number | null);
  "job"?: (TemplateBody | null);
  "jobs"?: (GraphJobBody[] | null);
  "labels": (Record<string, any> | null);
  "name": string;
  "paused": (boolean | null);
}

export interface CreateTokenBody {
  "name": string;
  "role": Role;
  "tenant": string;
  "expires_in"?: ((string | number) | null);
}

export type Criterion = ("lane" | "tier" | "fairness" | "deadline" | "aged_priority" | "score" | "arrival");

export interface CriterionResponse {
  "criterion": Criterion;
  "value": string;
  "first": string;
}

export interface CronBody {
  "type": "cron";
  "expression": string;
  "timezone": (string | null);
  "jitter": (string | number | null);
  "start_at"?: (string | null);
  "end_at"?: (string | null);
  "max_fires"?: (number | null);
  "exclude": (WindowBody[] | null);
  "calendars"?: (CalendarUseBody | null);
}

export interface CronPart {
  "type": "cron";
  "expression": string;
  "timezone": (string | null);
}

export interface CronPartResponse {
  "type": "cron";
  "expression": string;
  "timezone": string;
}

export interface CronResponse {
  "type": "cron";
  "expression": string;
  "timezone": string;
  "jitter": string;
  "start_at": (string | null);
  "end_at": (string | null);
  "max_fires": (number | null);
  "exclude": WindowResponse[];
  "calendars": (CalendarUseResponse | null);
}

export interface DefinitionBody {
  "default_cost": (string | number | null);
  "max_concurrency"?: (number | null);
  "conflict_group"?: (string | null);
  "conflict_scope"?: (ConflictScope | null);
  "tier"?: (number | null);
  "rate_limit"?: (RateLimitBody | null);
  "key_limits": (KeyLimitBody[] | null);
  "resources": (Record<string, any> | null);
  "unique"?: (UniqueBody | null);
  "retry": (RetryBody | null);
  "timeout"?: ((string | number) | null);
  "total_timeout"?: ((string | number) | null);
  "owner"?: (string | null);
}

export interface DefinitionLoad {
  "definition": (string | null);
  "slots": number;
  "needed": number[];
}

export interface DefinitionPage {
  "items": DefinitionResponse[];
  "next": (string | null);
  "unreadable": Unlisted[];
}

export interface DefinitionResponse {
  "name": string;
  "rev": number;
  "default_cost": string;
  "max_concurrency": (number | null);
  "conflict_group": (string | null);
  "conflict_scope": ConflictScope;
  "tier": (number | null);
  "rate_limit": (RateLimitResponse | null);
  "key_limits": KeyLimitResponse[];
  "resources": Record<string, number>;
  "unique": (UniqueResponse | null);
  "retry": RetryResponse;
  "timeout": (string | null);
  "total_timeout": (string | null);
  "owner": (string | null);
}

export type DependentAnswer = ("ok" | "not_ended" | "kept" | "dependency_failed" | "changed");

export interface DependentResponse {
  "job": string;
  "answer": DependentAnswer;
}

export interface DrainBody {
  "because"?: (string | null);
}

export interface DrainResponse {
  "name": string;
  "drained": (DrainedResponse | null);
}

export interface DrainedNameResponse {
  "since": string;
  "by": string;
  "because": (string | null);
  "name": string;
}

export interface DrainedResponse {
  "since": string;
  "by": string;
  "because": (string | null);
}

export interface EditPreviewResponse {
  "fires": FireResponse[];
  "clock_changes": ClockChangeResponse[];
  "timezone": string;
  "warnings": string[];
  "added": FireResponse[];
  "removed": FireResponse[];
  "until": string;
}

export interface ErrorGroupFilter {
  "definition": (string | null);
  "schedule": (string | null);
  "tenant": (string | null);
  "batch": (string | null);
  "target": (string | null);
  "id": (string | null);
  "since": (string | null);
  "until": (string | null);
  "labels": Record<string, any>;
  "state": JobState;
  "unschedulable": boolean;
}

export interface ErrorGroupResponse {
  "definition": string;
  "fault": string;
  "count": number;
  "first_at": string;
  "last_at": string;
  "job": string;
  "error": string;
  "filter": ErrorGroupFilter;
}

export type EventType = ("submitted" | "dispatched" | "started" | "returned" | "reprioritized" | "cancel_requested" | "revived" | "succeeded" | "failed" | "cancelled" | "schedule.missed");

export interface ExcessResponse {
  "from_ms": number;
  "to_ms": number;
  "summary": string;
}

export interface FailoverResponse {
  "term": number;
  "shard": string;
  "holder": string;
  "cause": Cause;
  "deciding_at": string;
  "gap_ms": (number | null);
  "first_decision_at": (string | null);
}

export interface FailoversResponse {
  "items": FailoverResponse[];
}

export interface FetchBody {
  "processor": string;
  "wait": (string | number | null);
  "limit": (number | null);
  "running": (AttemptName[] | null);
}

export interface FetchResponse {
  "cancelled": AttemptName[];
  "revoked": AttemptName[];
  "attempts": AttemptName[];
}

export interface FieldProblem {
  "path": string;
  "problem": string;
  "expected": string;
}

export interface FilterBody {
  "definition"?: (string | null);
  "schedule"?: (string | null);
  "tenant"?: (string | null);
  "batch"?: (string | null);
  "target"?: (string | null);
  "id"?: (string | null);
  "since"?: (string | null);
  "until"?: (string | null);
  "labels": (Record<string, any> | null);
  "state"?: (JobState | null);
  "unschedulable": (boolean | null);
}

export interface FindingsResponse {
  "at": string;
  "counts": Record<string, number>;
}

export type FinishAnswer = ("done" | "late");

export interface FinishBody {
  "job": string;
  "attempt": number;
  "processor": string;
  "outcome": ("succeeded" | "failed" | "cancelled" | "given_back");
  "result"?: JsonValue;
  "error"?: (string | null);
  "traceback"?: (string | null);
  "retryable": boolean;
  "retry_after"?: ((string | number) | null);
}

export interface FinishResponse {
  "answer": FinishAnswer;
  "retry_at": (string | null);
}

export interface FireResponse {
  "nominal_at": string;
  "due_at": string;
  "local": string;
  "weekday": string;
  "excluded": boolean;
  "note": (string | null);
  "payload"?: JsonValue;
}

export interface GraphJobBody {
  "definition": string;
  "payload"?: (JsonValue | null);
  "priority": (number | null);
  "tenant"?: (string | null);
  "fairness_key"?: (string | null);
  "lane": (string | null);
  "mode": (("queued" | "on_demand") | null);
  "resources"?: (Record<string, any> | null);
  "target"?: (string | null);
  "expires_in"?: ((string | number) | null);
  "render": (boolean | null);
  "ref": string;
  "depends_on": (string[] | null);
}

export interface GraphJobResponse {
  "definition": string;
  "payload": JsonValue;
  "priority": number;
  "tenant": string;
  "fairness_key": string;
  "lane": string;
  "mode": ("queued" | "on_demand");
  "resources": (Record<string, number> | null);
  "target": string;
  "expires_in": (string | null);
  "render": boolean;
  "ref": string;
  "depends_on": string[];
}

export interface HeartbeatBody {
  "processor": string;
  "running": (Report[] | null);
  "draining": (boolean | null);
}

export interface HeldAttemptsResponse {
  "cancelled": AttemptName[];
  "revoked": AttemptName[];
}

export interface IntervalBody {
  "type": "interval";
  "every": (string | number);
  "anchor"?: (string | null);
  "jitter": (string | number | null);
  "start_at"?: (string | null);
  "end_at"?: (string | null);
  "max_fires"?: (number | null);
  "exclude": (WindowBody[] | null);
  "calendars"?: (CalendarUseBody | null);
}

export interface IntervalPart {
  "type": "interval";
  "every": (string | number);
  "anchor"?: (string | null);
}

export interface IntervalPartResponse {
  "type": "interval";
  "every": string;
  "anchor": string;
}

export interface IntervalResponse {
  "type": "interval";
  "every": string;
  "anchor": string;
  "jitter": string;
  "start_at": (string | null);
  "end_at": (string | null);
  "max_fires": (number | null);
  "exclude": WindowResponse[];
  "calendars": (CalendarUseResponse | null);
}

export interface JobCountsResponse {
  "matched": number;
  "exact": boolean;
  "at_least": JobState[];
  "pending": number;
  "dispatched": number;
  "running": number;
  "succeeded": number;
  "failed": number;
  "cancelled": number;
}

export interface JobErrorsResponse {
  "groups": ErrorGroupResponse[];
  "others": OtherErrorsResponse;
  "examined": number;
  "complete": boolean;
}

export interface JobPage {
  "items": JobSummary[];
  "next": (string | null);
  "unreadable": Unlisted[];
}

export interface JobResponse {
  "id": string;
  "state": JobState;
  "attempt": number;
  "tries": number;
  "revivals": number;
  "definition": string;
  "target": string;
  "priority": number;
  "tenant": string;
  "fairness_key": string;
  "lane": string;
  "mode": string;
  "resources": (Record<string, number> | null);
  "unschedulable": boolean;
  "labels": Record<string, string>;
  "schedule": (string | null);
  "nominal_at": (string | null);
  "submitted_at": string;
  "not_before": (string | null);
  "processor": (string | null);
  "dispatched_at": (string | null);
  "started_at": (string | null);
  "finished_at": (string | null);
  "cancel_requested_at": (string | null);
  "failures": number;
  "losses": number;
  "retry_at": (string | null);
  "first_started_at": (string | null);
  "expires_at": (string | null);
  "depends_on": string[];
  "on_dependency_failure": ("fail" | "ignore");
  "batch": (string | null);
  "overdue_since": (string | null);
  "progress": (ProgressResponse | null);
  "error": (string | null);
  "payload": JsonValue;
  "result": JsonValue;
  "attempts": AttemptResponse[];
}

export interface JobRetryBody {
  "with_dependents": (boolean | null);
}

export interface JobRetryResponse {
  "answer": RetryAnswer;
  "dependents": DependentResponse[];
  "complete": boolean;
}

export type JobState = ("pending" | "dispatched" | "running" | "succeeded" | "failed" | "cancelled");

export interface JobSummary {
  "id": string;
  "state": JobState;
  "attempt": number;
  "tries": number;
  "revivals": number;
  "definition": string;
  "target": string;
  "priority": number;
  "tenant": string;
  "fairness_key": string;
  "lane": string;
  "mode": string;
  "resources": (Record<string, number> | null);
  "unschedulable": boolean;
  "labels": Record<string, string>;
  "schedule": (string | null);
  "nominal_at": (string | null);
  "submitted_at": string;
  "not_before": (string | null);
  "processor": (string | null);
  "dispatched_at": (string | null);
  "started_at": (string | null);
  "finished_at": (string | null);
  "cancel_requested_at": (string | null);
  "failures": number;
  "losses": number;
  "retry_at": (string | null);
  "first_started_at": (string | null);
  "expires_at": (string | null);
  "depends_on": string[];
  "on_dependency_failure": ("fail" | "ignore");
  "batch": (string | null);
  "overdue_since": (string | null);
  "progress": (ProgressResponse | null);
  "error": (string | null);
}

export type JsonValue = any;

export interface KeyLimitBody {
  "key": string;
  "max_concurrency"?: (number | null);
  "rate_limit"?: (RateLimitBody | null);
}

export interface KeyLimitResponse {
  "key": string;
  "max_concurrency": (number | null);
  "rate_limit": (RateLimitResponse | null);
}

export interface LaneBody {
  "weight": (number | null);
  "promote_after": (string | number | (string | number)[] | null);
  "policy"?: (("affinity" | "fair" | "swimlanes" | "balanced") | ("lane" | "tier" | "fairness" | "deadline" | "aged_priority" | "score" | "arrival")[] | null);
  "owner"?: (string | null);
}

export interface LanePage {
  "items": LaneResponse[];
  "next": (string | null);
  "unreadable": Unlisted[];
}

export interface LaneResponse {
  "name": string;
  "rev": number;
  "weight": number;
  "promote_after": (string | string[]);
  "policy": (("lane" | "tier" | "fairness" | "deadline" | "aged_priority" | "score" | "arrival")[] | null);
  "owner": (string | null);
}

export interface LeaderResponse {
  "holder": string;
  "term": number;
  "endpoint": string;
  "since": string;
}

export interface LeadingResponse {
  "leading": boolean;
  "reason": string;
}

export interface LiveResponse {
  "alive": boolean;
  "reason": string;
}

export interface LoadResponse {
  "items": DefinitionLoad[];
  "too_much": ExcessResponse[];
  "from_ms": number;
  "bucket_ms": number;
  "left_out": number;
}

export interface MisfireBody {
  "grace": (string | number | null);
  "catch_up": (CatchUp | null);
  "limit": (number | null);
}

export interface MisfireResponse {
  "grace": string;
  "catch_up": CatchUp;
  "limit": number;
}

export interface NewTokenResponse {
  "id": string;
  "name": string;
  "role": Role;
  "tenant": string;
  "created_at": string;
  "created_by": string;
  "expires_at": (string | null);
  "expired": boolean;
  "session": boolean;
  "token": string;
}

export type OnDuplicate = ("keep_first" | "replace" | "debounce");

export interface OnceBody {
  "type": "once";
  "at": string;
  "jitter": (string | number | null);
  "start_at"?: (string | null);
  "end_at"?: (string | null);
  "max_fires"?: (number | null);
  "exclude": (WindowBody[] | null);
  "calendars"?: (CalendarUseBody | null);
}

export interface OncePart {
  "type": "once";
  "at": string;
}

export interface OncePartResponse {
  "type": "once";
  "at": string;
}

export interface OnceResponse {
  "type": "once";
  "at": string;
  "jitter": string;
  "start_at": (string | null);
  "end_at": (string | null);
  "max_fires": (number | null);
  "exclude": WindowResponse[];
  "calendars": (CalendarUseResponse | null);
}

export interface OtherErrorsResponse {
  "groups": number;
  "count": number;
}

export type Overlap = ("allow" | "skip" | "buffer_one" | "cancel_running");

export interface PassedOver {
  "verdict": Verdict;
  "from_ms": number;
  "to_ms": number;
  "count": number;
}

export interface PauseAllBody {
  "because": string;
  "schedules_only": (boolean | null);
}

export interface PauseBody {
  "because"?: (string | null);
}

export interface PauseResponse {
  "since": string;
  "by": string;
  "because": (string | null);
  "schedules_only": boolean;
}

export interface PauseSchedulesBody {
  "filter": ScheduleFilterBody;
  "dry_run": (boolean | null);
  "expected"?: (number | null);
  "after"?: (string | null);
  "because"?: (string | null);
}

export interface PausedResponse {
  "paused": (PauseResponse | null);
}

export type Power = ("read" | "submit" | "operate" | "administer" | "work");

export interface PreviewBody {
  "trigger": (CronBody | IntervalBody | TimesBody | OnceBody | AnyBody);
  "name"?: (string | null);
}

export interface PreviewResponse {
  "fires": FireResponse[];
  "clock_changes": ClockChangeResponse[];
  "timezone": string;
  "warnings": string[];
}

export interface Problem {
  "type": string;
  "title": string;
  "status": number;
  "detail": string;
  "errors": FieldProblem[];
  "id"?: (string | null);
}

export interface ProcessorResponse {
  "id": string;
  "name": string;
  "shard": string;
  "definitions": string[];
  "slots": number;
  "resources": Record<string, number>;
  "occupied": number;
  "alive": boolean;
  "draining": boolean;
  "drained"?: (DrainedResponse | null);
  "parked": number;
  "consuming": boolean;
  "rest"?: (RestResponse | null);
}

export interface ProcessorsResponse {
  "items": ProcessorResponse[];
  "absent": DrainedNameResponse[];
}

export interface ProgressResponse {
  "percent": (number | null);
  "text": string;
  "at": string;
}

export interface QuarantinedResponse {
  "collection": string;
  "id": string;
  "reason": string;
}

export interface QueuePositionResponse {
  "ahead": number;
  "exact": boolean;
  "first": string;
  "deciding": (Criterion | null);
  "criteria": CriterionResponse[];
}

export interface RateLimitBody {
  "count": number;
  "per": (string | number);
}

export interface RateLimitResponse {
  "count": number;
  "per": string;
}

export interface ReadyResponse {
  "ready": boolean;
  "reason": string;
}

export interface RegisterBody {
  "name": string;
  "definitions": string[];
  "slots": (number | null);
  "resources": (Record<string, any> | null);
}

export interface RegisteredResponse {
  "processor": string;
  "heartbeat_interval": number;
  "heartbeat_deadline": number;
}

export interface ReplaceScheduleBody {
  "trigger": (CronBody | IntervalBody | TimesBody | OnceBody | AnyBody);
  "misfire": (MisfireBody | null);
  "overlap": (Overlap | null);
  "pause_after_failures"?: (number | null);
  "job"?: (TemplateBody | null);
  "jobs"?: (GraphJobBody[] | null);
  "labels": (Record<string, any> | null);
  "name"?: (string | null);
}

export interface ReplicaResponse {
  "id": string;
  "name": string;
  "version": (string | null);
  "zone_data": (string | null);
  "started_at": string;
  "http_endpoint": string;
  "liveness_endpoint": string;
  "ready": boolean;
  "stream_lag_ms": (number | null);
  "position": string;
  "digest": string;
  "quarantined": number;
  "alive": boolean;
}

export interface Report {
  "job": string;
  "attempt": number;
  "percent"?: (number | null);
  "text": string;
}

export type ReprioritizeAnswer = ("ok" | "already_running" | "already_done");

export interface ReprioritizeBody {
  "priority": number;
}

export interface ReprioritizeResponse {
  "answer": ReprioritizeAnswer;
}

export interface ReprioritizeSomeBody {
  "filter": FilterBody;
  "dry_run": (boolean | null);
  "expected"?: (number | null);
  "after"?: (string | null);
  "priority": number;
}

export interface ResetBody {
  "from": "now";
}

export interface RestResponse {
  "missed": number;
  "until": string;
}

export interface ResumeBody {
  "catch_up": boolean;
}

export interface ResumeSchedulesBody {
  "filter": ScheduleFilterBody;
  "dry_run": (boolean | null);
  "expected"?: (number | null);
  "after"?: (string | null);
  "catch_up": (boolean | null);
}

export type RetryAnswer = ("ok" | "not_ended" | "not_failed");

export interface RetryBody {
  "attempts": (number | null);
  "lost_attempts": (number | null);
  "backoff": (string | number | null);
  "factor": (number | null);
  "max": (string | number | null);
}

export interface RetryResponse {
  "attempts": number;
  "lost_attempts": number;
  "backoff": string;
  "factor": number;
  "max": string;
}

export type Role = ("viewer" | "submitter" | "operator" | "admin" | "worker");

export type Rule = ("not_leading" | "paused" | "transport" | "in_doubt" | "cancelling" | "dependency" | "not_before" | "backoff" | "max_concurrency" | "tier" | "definition" | "rate_limit" | "tenant" | "conflict" | "key" | "serial" | "unschedulable" | "no_slot");

export interface ScheduleCountsResponse {
  "matched": number;
  "exact": boolean;
  "active": number;
  "paused": number;
  "ended": number;
}

export interface ScheduleFilterBody {
  "text"?: (string | null);
  "state"?: (ScheduleState | null);
  "verdict"?: (Verdict | null);
  "tenant"?: (string | null);
  "ahead": (boolean | null);
  "labels": (Record<string, any> | null);
}

export interface SchedulePage {
  "items": ScheduleResponse[];
  "next": (string | null);
  "unreadable": Unlisted[];
}

export interface ScheduleResponse {
  "trigger": (CronResponse | IntervalResponse | TimesResponse | OnceResponse | AnyResponse);
  "misfire": MisfireResponse;
  "overlap": Overlap;
  "pause_after_failures": (number | null);
  "job": TemplateResponse;
  "jobs": (GraphJobResponse[] | null);
  "labels": Record<string, any>;
  "name": string;
  "rev": number;
  "created_at": string;
  "paused": boolean;
  "paused_at": (string | null);
  "paused_because": (string | null);
  "last_nominal_at": (string | null);
  "next_at": (string | null);
  "next_due_at": (string | null);
  "ahead_until": (string | null);
  "counts": CountsResponse;
  "failures_in_a_row": number;
  "warnings": string[];
}

export type ScheduleState = ("active" | "paused" | "ended");

export interface ScheduleTimeline {
  "name": string;
  "paused": boolean;
  "expected_ms": number;
  "fired": number[][];
  "passed_over": PassedOver[];
  "known_since_ms": number;
  "ahead_ms": number[];
  "ahead_count": number;
  "note": (string | null);
}

export interface ScheduleVerdictPage {
  "items": ScheduleVerdictResponse[];
  "next": (string | null);
}

export interface ScheduleVerdictResponse {
  "schedule": string;
  "verdict": Verdict;
  "nominal_at": string;
  "through_at": string;
  "count": number;
  "because_of": (string | null);
  "decided_at": string;
}

export interface SchemaResponse {
  "version": number;
  "oldest_read": number;
  "newest_read": number;
}

export interface ShardResponse {
  "name": string;
  "leader": (LeaderResponse | null);
  "leading": boolean;
  "ready": boolean;
  "unready_reason": string;
  "stream_lag_ms": (number | null);
  "journal_seq": (number | null);
  "processors": number;
  "counts": Record<string, number>;
  "followers": string[];
  "followed": boolean;
}

export interface StartBody {
  "job": string;
  "attempt": number;
  "processor": string;
}

export interface StartedResponse {
  "job": string;
  "attempt": number;
  "definition": string;
  "target": string;
  "payload": JsonValue;
  "tenant": string;
  "labels": Record<string, string>;
  "schedule": (string | null);
  "nominal_at": (string | null);
  "submitted_at": string;
  "started_at": string;
  "failures": number;
  "losses": number;
  "timeout": (number | null);
  "traceparent": (string | null);
}

export interface SubmitJobBody {
  "definition": string;
  "payload"?: (JsonValue | null);
  "priority": (number | null);
  "tenant"?: (string | null);
  "fairness_key"?: (string | null);
  "lane": (string | null);
  "mode": (("queued" | "on_demand") | null);
  "resources"?: (Record<string, any> | null);
  "target"?: (string | null);
  "labels": (Record<string, any> | null);
  "not_before"?: (string | null);
  "expires_at"?: (string | null);
  "depends_on": (string[] | null);
  "on_dependency_failure": (("fail" | "ignore") | null);
}

export interface TemplateBody {
  "definition": string;
  "payload"?: (JsonValue | null);
  "priority": (number | null);
  "tenant"?: (string | null);
  "fairness_key"?: (string | null);
  "lane": (string | null);
  "mode": (("queued" | "on_demand") | null);
  "resources"?: (Record<string, any> | null);
  "target"?: (string | null);
  "expires_in"?: ((string | number) | null);
  "render": (boolean | null);
}

export interface TemplateResponse {
  "definition": string;
  "payload": JsonValue;
  "priority": number;
  "tenant": string;
  "fairness_key": string;
  "lane": string;
  "mode": ("queued" | "on_demand");
  "resources": (Record<string, number> | null);
  "target": string;
  "expires_in": (string | null);
  "render": boolean;
}

export interface TenantBody {
  "max_running"?: (number | null);
  "max_pending"?: (number | null);
  "submit_rate"?: (RateLimitBody | null);
  "max_schedules"?: (number | null);
  "fire_rate"?: (RateLimitBody | null);
  "owner"?: (string | null);
}

export interface TenantPage {
  "items": TenantResponse[];
  "next": (string | null);
  "unreadable": Unlisted[];
}

export interface TenantResponse {
  "name": string;
  "rev": number;
  "max_running": (number | null);
  "max_pending": (number | null);
  "submit_rate": (RateLimitResponse | null);
  "max_schedules": (number | null);
  "fire_rate": (RateLimitResponse | null);
  "owner": (string | null);
}

export interface TimelineResponse {
  "items": ScheduleTimeline[];
  "now": string;
  "from_ms": number;
  "to_ms": number;
  "bucket_ms": number;
  "load": LoadResponse;
  "next": (string | null);
}

export interface TimesBody {
  "type": "times";
  "at": string[];
  "jitter": (string | number | null);
  "start_at"?: (string | null);
  "end_at"?: (string | null);
  "max_fires"?: (number | null);
  "exclude": (WindowBody[] | null);
  "calendars"?: (CalendarUseBody | null);
}

export interface TimesPart {
  "type": "times";
  "at": string[];
}

export interface TimesPartResponse {
  "type": "times";
  "at": string[];
}

export interface TimesResponse {
  "type": "times";
  "at": string[];
  "jitter": string;
  "start_at": (string | null);
  "end_at": (string | null);
  "max_fires": (number | null);
  "exclude": WindowResponse[];
  "calendars": (CalendarUseResponse | null);
}

export interface TokenPage {
  "items": TokenResponse[];
  "next": (string | null);
  "unreadable": Unlisted[];
}

export interface TokenResponse {
  "id": string;
  "name": string;
  "role": Role;
  "tenant": string;
  "created_at": string;
  "created_by": string;
  "expires_at": (string | null);
  "expired": boolean;
  "session": boolean;
}

export interface TriggerNowBody {
  "overlap"?: (Overlap | null);
  "payload"?: JsonValue;
}

export interface UndecidedResponse {
  "count": number;
  "since": (string | null);
  "because": (("due" | "paused" | "excluded") | null);
}

export interface UniqueBody {
  "by": (string[] | null);
  "on_duplicate": (OnDuplicate | null);
  "period"?: ((string | number) | null);
  "max_wait"?: ((string | number) | null);
}

export interface UniqueResponse {
  "by": string[];
  "on_duplicate": OnDuplicate;
  "period": (string | null);
  "max_wait": (string | null);
}

export interface Unlisted {
  "id": string;
  "reason": string;
}

export type Verdict = ("fired" | "unstorable" | "skipped" | "missed" | "coalesced" | "paused" | "excluded" | "throttled");

export interface VerdictResponse {
  "verdict": Verdict;
  "nominal_at": string;
  "through_at": string;
  "count": number;
  "job": (string | null);
  "job_state": (JobState | null);
  "because_of": (string | null);
  "into": (string | null);
}

export interface VerdictsResponse {
  "items": VerdictResponse[];
  "counts": CountsResponse;
  "undecided": UndecidedResponse;
  "next": (string | null);
}

export interface WhoamiResponse {
  "name": string;
  "token": (string | null);
  "role": Role;
  "tenant": string;
  "may": Power[];
  "tokens_demanded": boolean;
}

export interface WhyResponse {
  "job": string;
  "state": JobState;
  "seen": boolean;
  "summary": string;
  "processor": (string | null);
  "finished_at": (string | null);
  "error": (string | null);
  "blocks": BlockResponse[];
  "standing": (QueuePositionResponse | null);
}

export interface WindowBody {
  "from": string;
  "to": string;
}

export interface WindowResponse {
  "from": string;
  "to": string;
}
