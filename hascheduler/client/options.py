"""What requests may say. Written by scripts/generate-client from the OpenAPI document of the API.

All that is given in a filter must hold; of several states or verdicts any one. Labels are a mapping or, in what is
listed and counted, texts such as ``team=a``.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NotRequired, TypedDict

from hascheduler.client.answer import Json
from hascheduler.model.job import JobState

ScheduleState = Literal["active", "paused", "ended"]


Verdict = Literal["fired", "unstorable", "skipped", "missed", "coalesced", "paused", "excluded", "throttled"]


class MisfireBody(TypedDict):
    grace: NotRequired[str | float]
    catch_up: NotRequired[Literal["none", "latest", "all"]]
    limit: NotRequired[int]


class GraphJobBody(TypedDict):
    definition: str
    payload: NotRequired[Json]
    priority: NotRequired[int]
    tenant: NotRequired[str | None]
    fairness_key: NotRequired[str | None]
    lane: NotRequired[str]
    mode: NotRequired[Literal["queued", "on_demand"]]
    resources: NotRequired[Mapping[str, Json] | None]
    target: NotRequired[str | None]
    expires_in: NotRequired[str | float | None]
    render: NotRequired[bool]
    ref: str
    depends_on: NotRequired[Sequence[str]]


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


class AttemptName(TypedDict):
    job: str
    attempt: int


class BatchJob(TypedDict):
    definition: str
    payload: NotRequired[Json]
    priority: NotRequired[int]
    tenant: NotRequired[str | None]
    fairness_key: NotRequired[str | None]
    lane: NotRequired[str]
    mode: NotRequired[Literal["queued", "on_demand"]]
    resources: NotRequired[Mapping[str, Json] | None]
    target: NotRequired[str | None]
    labels: NotRequired[Mapping[str, Json]]
    not_before: NotRequired[datetime | str | None]
    expires_at: NotRequired[datetime | str | None]
    depends_on: NotRequired[Sequence[str]]
    on_dependency_failure: NotRequired[Literal["fail", "ignore"]]
    ref: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]


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


class OnceBody(TypedDict):
    jitter: NotRequired[str | float]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_fires: NotRequired[int | None]
    exclude: NotRequired[Sequence[WindowBody]]
    calendars: NotRequired[CalendarUseBody | None]
    type: Literal["once"]
    at: str


class RegisterBody(TypedDict):
    name: str
    definitions: Sequence[str]
    slots: NotRequired[int]
    resources: NotRequired[Mapping[str, Json]]


class Report(TypedDict):
    job: str
    attempt: int
    percent: NotRequired[float | None]
    text: NotRequired[str]


Role = Literal["viewer", "submitter", "operator", "admin", "worker"]


class TemplateBody(TypedDict):
    definition: str
    payload: NotRequired[Json]
    priority: NotRequired[int]
    tenant: NotRequired[str | None]
    fairness_key: NotRequired[str | None]
    lane: NotRequired[str]
    mode: NotRequired[Literal["queued", "on_demand"]]
    resources: NotRequired[Mapping[str, Json] | None]
    target: NotRequired[str | None]
    expires_in: NotRequired[str | float | None]
    render: NotRequired[bool]


class TimesBody(TypedDict):
    jitter: NotRequired[str | float]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_fires: NotRequired[int | None]
    exclude: NotRequired[Sequence[WindowBody]]
    calendars: NotRequired[CalendarUseBody | None]
    type: Literal["times"]
    at: Sequence[str]


class TriggerNowBody(TypedDict):
    overlap: NotRequired[Literal["allow", "skip", "buffer_one", "cancel_running"] | None]
    payload: NotRequired[Json]


class JobOptions(TypedDict):
    priority: NotRequired[int]
    tenant: NotRequired[str | None]
    fairness_key: NotRequired[str | None]
    lane: NotRequired[str]
    mode: NotRequired[Literal["queued", "on_demand"]]
    resources: NotRequired[Mapping[str, Json] | None]
    target: NotRequired[str | None]
    labels: NotRequired[Mapping[str, Json]]
    not_before: NotRequired[datetime | str | None]
    expires_at: NotRequired[datetime | str | None]
    depends_on: NotRequired[Sequence[str]]
    on_dependency_failure: NotRequired[Literal["fail", "ignore"]]


class JobListFilter(TypedDict):
    labels: NotRequired[Mapping[str, str] | Sequence[str]]
    definition: NotRequired[str | None]
    schedule: NotRequired[str | None]
    tenant: NotRequired[str | None]
    batch: NotRequired[str | None]
    target: NotRequired[str | None]
    since: NotRequired[datetime | str | None]
    until: NotRequired[datetime | str | None]
    id: NotRequired[str | None]
    state: NotRequired[JobState | str | Sequence[JobState | str] | None]
    unschedulable: NotRequired[bool]


class JobErrorFilter(TypedDict):
    labels: NotRequired[Mapping[str, str] | Sequence[str]]
    definition: NotRequired[str | None]
    schedule: NotRequired[str | None]
    tenant: NotRequired[str | None]
    batch: NotRequired[str | None]
    target: NotRequired[str | None]
    since: NotRequired[datetime | str | None]
    until: NotRequired[datetime | str | None]
    id: NotRequired[str | None]


class JobFilter(TypedDict):
    state: NotRequired[JobState | str | None]
    definition: NotRequired[str | None]
    schedule: NotRequired[str | None]
    tenant: NotRequired[str | None]
    batch: NotRequired[str | None]
    target: NotRequired[str | None]
    id: NotRequired[str | None]
    since: NotRequired[datetime | str | None]
    until: NotRequired[datetime | str | None]
    unschedulable: NotRequired[bool]
    labels: NotRequired[Mapping[str, Json]]


class ScheduleFilter(TypedDict):
    text: NotRequired[str | None]
    state: NotRequired[ScheduleState | Sequence[ScheduleState] | None]
    verdict: NotRequired[Verdict | Sequence[Verdict] | None]
    tenant: NotRequired[str | None]
    ahead: NotRequired[bool]


class ScheduleChangeFilter(TypedDict):
    text: NotRequired[str | None]
    state: NotRequired[ScheduleState | None]
    verdict: NotRequired[Verdict | None]
    tenant: NotRequired[str | None]
    labels: NotRequired[Mapping[str, Json]]


class ScheduleOptions(TypedDict):
    misfire: NotRequired[MisfireBody]
    overlap: NotRequired[Literal["allow", "skip", "buffer_one", "cancel_running"]]
    pause_after_failures: NotRequired[int | None]
    jobs: NotRequired[Sequence[GraphJobBody] | None]
    labels: NotRequired[Mapping[str, Json]]


class VerdictFilter(TypedDict):
    labels: NotRequired[Mapping[str, str] | Sequence[str]]
    since: NotRequired[datetime | str | None]
    until: NotRequired[datetime | str | None]
    tenant: NotRequired[str | None]
    text: NotRequired[str | None]


class TimelineFilter(TypedDict):
    labels: NotRequired[Mapping[str, str] | Sequence[str]]
    behind: NotRequired[str]
    ahead: NotRequired[str]
    text: NotRequired[str | None]


class AuditFilter(TypedDict):
    who: NotRequired[str | None]
    tenant: NotRequired[str | None]
    path: NotRequired[str | None]
    since: NotRequired[datetime | str | None]


class EventFilter(TypedDict):
    definition: NotRequired[str | None]
    schedule: NotRequired[str | None]
    job: NotRequired[str | None]
    tenant: NotRequired[str | None]


class FinishOptions(TypedDict):
    result: NotRequired[Json]
    error: NotRequired[str | None]
    traceback: NotRequired[str | None]
    retryable: NotRequired[bool]
    retry_after: NotRequired[str | float | None]
