"""Request bodies and responses of work over HTTP.

Durations in responses are numbers of seconds, which a worker in any language can use as they are.
"""

from typing import Annotated, Literal, Self

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SkipValidation,
    field_validator,
    model_validator,
)

from hascheduler.api.routing.wire_format import plain_json
from hascheduler.model.processor import ANY_DEFINITION
from hascheduler.model.resources import Resources, resources
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import FinishAnswer, HandlerProgress, StartedJob
from hascheduler.wire.fields import (
    NAME,
    WEEK_MS,
    DurationMs,
    Name,
    ResourceAmounts,
    StrictModel,
    Text,
    between,
    instant_text,
    invalid_value,
)

DEFINITIONS_MAX = 1_000
SLOTS_MAX = 10_000
RUNNING_MAX = 10_000
WORK_VALUES_MAX = 8 * RUNNING_MAX
"""A heartbeat has a report, an object of two to four fields, for each attempt that its processor runs."""
FETCH_WAIT_MS_MAX = 60_000
"""While a fetch is held open, its replica writes the processor's heartbeats: it must not do so for one long dead."""
RESULT_BYTES_MAX = 256 * 1024
ERROR_BYTES_MAX = 4 * 1024
_PROGRESS_LENGTH_MAX = 500
_ATTEMPT_MAX = 2**31 - 1
_PROCESSOR = "http:resizer.5f0c9a21"
_JOB = "job:0194f3a1b2c3000001deadbeef01"


def _definition(text: str) -> str:
    if text != ANY_DEFINITION and not NAME.match(text):
        raise invalid_value(
            f"{quoted(text)} is no definition", f"a definition's name, or {ANY_DEFINITION} for all of them"
        )
    return text


class RegisterBody(StrictModel):
    """What a processor can do."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "resizer", "definitions": ["resize"], "slots": 4, "resources": {"gpu": 1}}]
        }
    )

    name: Name = Field(description="For people; several may have one name")
    definitions: list[Annotated[str, AfterValidator(_definition)]] = Field(
        min_length=1, max_length=DEFINITIONS_MAX, description=f"What it runs; `{ANY_DEFINITION}` is everything"
    )
    slots: int = Field(default=1, ge=1, le=SLOTS_MAX, description="How many jobs it runs at once")
    resources: ResourceAmounts = Field(default={}, description="What its jobs share besides the slots")

    def offers(self) -> Resources:
        return resources(self.resources)


class RegisteredResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"processor": _PROCESSOR, "heartbeat_interval": 1.0, "heartbeat_deadline": 4.0}]
        }
    )

    processor: str = Field(description="Its id, to be named in all other requests")
    heartbeat_interval: float = Field(description="Seconds: show life so often")
    heartbeat_deadline: float = Field(
        description="Seconds: after so long without an answer stop what runs, as others are about to get it"
    )


class AttemptName(StrictModel):
    """One attempt of a job."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"job": _JOB, "attempt": 1}]})

    job: Text = Field(description="The job's id")
    attempt: int = Field(ge=1, le=_ATTEMPT_MAX, description="The fencing token: it grows with every attempt")

    @property
    def key(self) -> tuple[str, int]:
        return self.job, self.attempt


class FetchBody(StrictModel):
    """Ask for work."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"processor": _PROCESSOR, "wait": "20s", "limit": 4}]})

    processor: Text = Field(description="The id that its registration was answered with")
    wait: Annotated[DurationMs, between(0, FETCH_WAIT_MS_MAX)] = Field(
        default=20_000, description="Answer when there is work, or after so long, at most a minute"
    )
    limit: int = Field(default=100, ge=1, le=SLOTS_MAX, description="How many attempts at most")
    running: list[AttemptName] = Field(
        default=[],
        max_length=RUNNING_MAX,
        description="What it holds already: the answer does not name these again, and says which of them are to stop",
    )


class HeldAttemptsResponse(BaseModel):
    """What has become of attempts that a processor holds."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"cancelled": [{"job": _JOB, "attempt": 1}], "revoked": []}]}
    )

    cancelled: list[AttemptName] = Field(description="Asked to stop: finish them as cancelled, or as what they became")
    revoked: list[AttemptName] = Field(description="No longer its own: stop, and say nothing more about them")


class FetchResponse(HeldAttemptsResponse):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"attempts": [{"job": _JOB, "attempt": 1}], "cancelled": [], "revoked": []}]}
    )

    attempts: list[AttemptName] = Field(description="Promised to it; start each of them, once")


class StartBody(AttemptName):
    model_config = ConfigDict(json_schema_extra={"examples": [{"processor": _PROCESSOR, "job": _JOB, "attempt": 1}]})

    processor: Text = Field(description="The id of the processor that starts it")


class StartedResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "job": _JOB,
                    "attempt": 1,
                    "definition": "resize",
                    "target": "image-7",
                    "payload": {"width": 640},
                    "tenant": "acme",
                    "labels": {},
                    "schedule": None,
                    "nominal_at": None,
                    "submitted_at": "2030-01-01T00:00:00.000Z",
                    "started_at": "2030-01-01T00:00:00.120Z",
                    "failures": 0,
                    "losses": 0,
                    "timeout": 300.0,
                    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                }
            ]
        }
    )

    job: str = Field(description="The same for all attempts: an idempotency key for what the handler does elsewhere")
    attempt: int = Field(description="Which attempt this is: the fencing token")
    definition: str = Field(description="The type of job: which handler runs it")
    target: str = Field(description="What it works on")
    payload: JsonValue = Field(description="What it was submitted with: any JSON")
    tenant: str = Field(description="Who owns it")
    labels: dict[str, str] = Field(description="Texts for people")
    schedule: str | None = Field(description="The schedule that made it; null where none did")
    nominal_at: str | None = Field(description="The nominal time that it was made for; null where no schedule made it")
    submitted_at: str = Field(description="When it was submitted, or its schedule fired")
    started_at: str = Field(description="When this attempt began: its timeout counts from here")
    failures: int = Field(description="How many attempts failed before this one")
    losses: int = Field(description="How many attempts were lost while they ran")
    timeout: float | None = Field(
        description="Seconds: stop it after so long, and finish it as failed; soon after, others get it. Null: no limit"
    )
    traceparent: str | None = Field(
        description="W3C Trace Context: where its spans belong, and what it sends on. Null: the job is not traced"
    )


class AttemptProgress(AttemptName):
    percent: float | None = Field(default=None, ge=0, le=100, description="How far it has come")
    text: str = Field(default="", max_length=_PROGRESS_LENGTH_MAX, description="The same in words")

    def progress(self, now: WallMs) -> HandlerProgress | None:
        """None if the report has neither a percentage nor a text."""
        text = " ".join(self.text.split())
        return HandlerProgress(self.percent, text, now) if text or self.percent is not None else None


class HeartbeatBody(StrictModel):
    """Show life, and how far the work has come."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "processor": _PROCESSOR,
                    "running": [{"job": _JOB, "attempt": 1, "percent": 40, "text": "2 of 5 pages"}],
                    "draining": False,
                }
            ]
        }
    )

    processor: Text = Field(description="The id of the processor that lives")
    running: list[AttemptProgress] = Field(default=[], max_length=RUNNING_MAX, description="All that it has started")
    draining: bool = Field(default=False, description="It wants no new jobs")


class FinishBody(AttemptName):
    """How an attempt ended."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"processor": _PROCESSOR, "job": _JOB, "attempt": 1, "outcome": "succeeded", "result": {"bytes": 7}},
                {
                    "processor": _PROCESSOR,
                    "job": _JOB,
                    "attempt": 1,
                    "outcome": "failed",
                    "error": "the image host did not answer",
                    "retryable": True,
                    "retry_after": "90s",
                },
            ]
        }
    )

    processor: Text = Field(description="The id of the processor that had it")
    outcome: Literal["succeeded", "failed", "cancelled", "given_back"] = Field(
        description="`cancelled`: only after a request; `given_back`: another one shall run it, nothing went wrong"
    )
    result: SkipValidation[JsonValue] = Field(default=None, description="Of one that succeeded")
    error: str | None = Field(default=None, description="What went wrong, or why it is given back; cut at 4 KiB")
    traceback: str | None = Field(
        default=None, description="Of one that failed: where that happened; its last 16 KiB are kept, without secrets"
    )
    retryable: bool = Field(default=True, description="Of one that failed: whether trying again may help")
    retry_after: Annotated[DurationMs, between(0, WEEK_MS)] | None = Field(
        default=None, description="Of one that failed: the pause before the next try, instead of the definition's own"
    )

    @field_validator("result")
    @classmethod
    def _not_too_large(cls, result: JsonValue) -> JsonValue:
        # Encoding a text needs eight times its size for a moment.
        is_long_text = isinstance(result, str) and len(result) > RESULT_BYTES_MAX
        size = len(str(result)) if is_long_text else len(orjson.dumps(result))
        if size > RESULT_BYTES_MAX:
            raise invalid_value(f"{size} bytes of JSON", f"at most {RESULT_BYTES_MAX}")
        return result

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.outcome == "failed" and not self.error:
            raise invalid_value("a failed attempt without an error", "an error that says what went wrong")
        if self.outcome != "failed" and (self.retry_after is not None or not self.retryable):
            raise invalid_value(f"retryable or retry_after with {self.outcome}", "them with failed only")
        if self.outcome != "succeeded" and self.result is not None:
            raise invalid_value(f"a result with {self.outcome}", "a result with succeeded only")
        if self.outcome != "failed" and self.traceback is not None:
            raise invalid_value(f"a traceback with {self.outcome}", "a traceback with failed only")
        return self

    def error_text(self) -> str | None:
        encoded = (self.error or "").encode()
        if len(encoded) <= ERROR_BYTES_MAX:
            return self.error or None
        return encoded[: ERROR_BYTES_MAX - 3].decode("utf-8", "ignore") + "…"


class FinishResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"answer": "done", "retry_at": "2030-01-01T00:01:30.000Z"}]}
    )

    answer: FinishAnswer = Field(
        description="`late`: it was no longer this processor's, or its time was over; the result counts for nothing"
    )
    retry_at: str | None = Field(description="When it is tried again, where it is")


def show_started(started: StartedJob, timeout_ms: int | None) -> StartedResponse:
    return StartedResponse(
        job=started.id,
        attempt=started.attempt,
        definition=started.definition,
        target=started.target,
        payload=plain_json(started.payload),
        tenant=started.tenant,
        labels=dict(started.labels),
        schedule=started.schedule,
        nominal_at=None if started.nominal_ms is None else instant_text(started.nominal_ms),
        submitted_at=instant_text(started.submitted_at_ms),
        started_at=instant_text(started.started_at_ms),
        failures=started.failures,
        losses=started.losses,
        timeout=None if timeout_ms is None else timeout_ms / 1_000,
        traceparent=None if started.trace is None else started.trace.traceparent,
    )
