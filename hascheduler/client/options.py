"""The bodies and filters of requests. Written by scripts/generate-client from the OpenAPI document.

Every field of a filter must match; of several states or verdicts, one of them. Labels are a mapping or, in lists and
counts, texts such as ``team=a``.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NotRequired, TypedDict

from hascheduler.client.answer import Json
from hascheduler.model.job import JobState

ScheduleSort = Literal["name", "trouble", "next"]


ScheduleState = Literal["active", "paused", "ended"]


Verdict = Literal["fired", "unstorable", "skipped", "missed", "coalesced", "paused", "excluded", "throttled"]


CatchUp = Literal["none", "latest", "all"]


class MisfireBody(TypedDict):
    grace: NotRequired[str | float | None]
    catch_up: NotRequired[CatchUp | None]
    limit: NotRequired[int | None]


Overlap = Literal["allow", "skip", "buffer_one", "cancel_running"]


class TemplateBody(TypedDict):
    definition: str
    payload: NotRequired[Json | None]
    priority: NotRequired[int | None]
    tenant: NotRequired[str | None]
    fairness_key: NotRequired[str | None]
    lane: NotRequired[str | None]
    mode: NotRequired[Literal["queued", "on_demand"] | None]
    resources: NotRequired[Mapping[str, Json] | None]
    target: NotRequired[str | None]
    expires_in: NotRequired[str | float | None]
    render: NotRequired[bool | None]


class GraphJobBody(TemplateBody):
    ref: str
    depends_on: NotRequired[Sequence[str] | None]


class CronPart(TypedDict):
    type: Literal["cron"]
    expression: str
    timezone: NotRequired[str | None]


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


WindowBody = TypedDict("WindowBody", {"from": str, "to": str})


CalendarUseBody = TypedDict(
    "CalendarUseBody",
    {
        "only": NotRequired[Sequence[str] | None],
        "except": NotRequired[Sequence[str] | None],
        "timezone": NotRequired[str | None],
    },
)


class TriggerBounds(TypedDict):
    jitter: NotRequired[str | float | None]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_fires: NotRequired[int | None]
    exclude: NotRequired[Sequence[WindowBody] | None]
    calendars: NotRequired[CalendarUseBody | None]


class AnyBody(TriggerBounds):
    type: Literal["any"]
    of: Sequence[CronPart | IntervalPart | TimesPart | OncePart]


class AttemptName(TypedDict):
    job: str
    attempt: int


class JobOptions(TypedDict):
    priority: NotRequired[int | None]
    tenant: NotRequired[str | None]
    fairness_key: NotRequired[str | None]
    lane: NotRequired[str | None]
    mode: NotRequired[Literal["queued", "on_demand"] | None]
    resources: NotRequired[Mapping[str, Json] | None]
    target: NotRequired[str | None]
    labels: NotRequired[Mapping[str, Json] | None]
    not_before: NotRequired[datetime | str | None]
    expires_at: NotRequired[datetime | str | None]
    depends_on: NotRequired[Sequence[str] | None]
    on_dependency_failure: NotRequired[Literal["fail", "ignore"] | None]


class BatchJob(JobOptions):
    definition: str
    payload: NotRequired[Json | None]
    ref: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]


class CronBody(TriggerBounds, CronPart):
    pass


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


class IntervalBody(TriggerBounds, IntervalPart):
    pass


class OnceBody(TriggerBounds):
    type: Literal["once"]
    at: str


class RegisterBody(TypedDict):
    name: str
    definitions: Sequence[str]
    slots: NotRequired[int | None]
    resources: NotRequired[Mapping[str, Json] | None]


class Report(TypedDict):
    job: str
    attempt: int
    percent: NotRequired[float | None]
    text: NotRequired[str]


Role = Literal["viewer", "submitter", "operator", "admin", "worker"]


class TimesBody(TriggerBounds):
    type: Literal["times"]
    at: Sequence[str]


class TriggerNowBody(TypedDict):
    overlap: NotRequired[Overlap | None]
    payload: NotRequired[Json | None]


class JobAttributes(TypedDict):
    definition: NotRequired[str | None]
    schedule: NotRequired[str | None]
    tenant: NotRequired[str | None]
    batch: NotRequired[str | None]
    target: NotRequired[str | None]
    id: NotRequired[str | None]
    since: NotRequired[datetime | str | None]
    until: NotRequired[datetime | str | None]
    error: NotRequired[str | None]
    failed_since: NotRequired[datetime | str | None]


class JobErrorFilter(JobAttributes):
    labels: NotRequired[Mapping[str, str] | Sequence[str]]


class JobListFilter(JobErrorFilter):
    state: NotRequired[JobState | str | Sequence[JobState | str] | None]
    ended_before: NotRequired[datetime | str | None]
    unschedulable: NotRequired[bool]


class JobChangeFilter(JobAttributes):
    labels: NotRequired[Mapping[str, Json] | None]
    state: NotRequired[JobState | str | None]
    ended_before: NotRequired[datetime | str | None]
    unschedulable: NotRequired[bool | None]


class ScheduleCountFilter(TypedDict):
    text: NotRequired[str | None]
    state: NotRequired[ScheduleState | Sequence[ScheduleState] | None]
    verdict: NotRequired[Verdict | Sequence[Verdict] | None]
    tenant: NotRequired[str | None]
    ahead: NotRequired[bool]
    failing: NotRequired[bool]
    late: NotRequired[bool]


class ScheduleListFilter(ScheduleCountFilter):
    sort: NotRequired[ScheduleSort]


class ScheduleChangeFilter(TypedDict):
    text: NotRequired[str | None]
    state: NotRequired[ScheduleState | None]
    verdict: NotRequired[Verdict | None]
    tenant: NotRequired[str | None]
    ahead: NotRequired[bool | None]
    failing: NotRequired[bool | None]
    late: NotRequired[bool | None]
    labels: NotRequired[Mapping[str, Json] | None]


class ScheduleOptions(TypedDict):
    misfire: NotRequired[MisfireBody | None]
    overlap: NotRequired[Overlap | None]
    pause_after_failures: NotRequired[int | None]
    on_failure: NotRequired[str | None]
    jobs: NotRequired[Sequence[GraphJobBody] | None]
    labels: NotRequired[Mapping[str, Json] | None]


class VerdictListFilter(TypedDict):
    since: NotRequired[datetime | str | None]
    until: NotRequired[datetime | str | None]
    tenant: NotRequired[str | None]
    text: NotRequired[str | None]
    labels: NotRequired[Mapping[str, str] | Sequence[str]]


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
