"""The requests of processors that work over HTTP, and the responses to them.

Durations in responses are numbers of seconds, which a worker in any language can use directly.
"""

import re
from typing import Annotated, Any, Literal, Self

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
from pydantic.config import JsonDict

from hascheduler.api.routing.published import plain_json
from hascheduler.model.processor import ANY_DEFINITION
from hascheduler.model.resources import NO_RESOURCES
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import FinishAnswer, HandlerProgress, StartedJob
from hascheduler.schema.forms import (
    PUBLISHED_NAME_PATTERN,
    WEEK_MS,
    Instant,
    Name,
    ResourceAmounts,
    Text,
    span,
    whole,
    wrong,
)
from hascheduler.schema.noun import Part, made_of

DEFINITIONS_MAX = 1_000
SLOTS_MAX = 10_000
RUNNING_MAX = 10_000
WORK_VALUES_MAX = 8 * RUNNING_MAX
"""A heartbeat has a report, an object of two to four fields, for each attempt that its processor runs."""
FETCH_WAIT_MS_MAX = 60_000
"""During a fetch its replica writes the processor's heartbeats: it must not do so long for a dead one."""
RESULT_BYTES_MAX = 256 * 1024
ERROR_BYTES_MAX = 4 * 1024
_PROGRESS_LENGTH_MAX = 500
_ATTEMPT_MAX = 2**31 - 1
_PROCESSOR = "http:resizer.5f0c9a21"
_NAMED: JsonDict = {"job": "job:0194f3a1b2c3000001deadbeef01", "attempt": 1}
_DEFINITION = re.compile(f"{re.escape(ANY_DEFINITION)}|{PUBLISHED_NAME_PATTERN[1:-1]}")


def _definition(text: str) -> str:
    if not _DEFINITION.fullmatch(text):
        expected = f"a definition's name, or {ANY_DEFINITION} for all of them"
        raise wrong(f"{quoted(text)} is not a definition", expected)
    return text


class RegisterBody(Part):
    """A processor to register."""

    name: Name = Field(examples=["resizer"])
    """The name; several processors may share it"""
    definitions: list[Annotated[str, AfterValidator(_definition)]] = Field(
        min_length=1, max_length=DEFINITIONS_MAX, examples=[["resize"]]
    )
    """The definitions it runs; `*`: all"""
    slots: Annotated[int, whole(1, SLOTS_MAX)] = Field(default=1, examples=[4])
    """How many jobs it runs at once"""
    resources: ResourceAmounts = Field(default=NO_RESOURCES, examples=[{"gpu": 1}])
    """The resources that its jobs share besides the slots"""


class RegisteredResponse(Part):
    """The id and the heartbeat times of a registered processor."""

    processor: str = Field(examples=[_PROCESSOR])
    """The id for all other requests"""
    heartbeat_interval: float = Field(examples=[1.0])
    """Seconds between heartbeats"""
    heartbeat_deadline: float = Field(examples=[4.0])
    """Seconds without a response after which the processor must stop its jobs, because others are about to get them"""


class AttemptName(BaseModel):
    """An attempt of a job."""

    # Not a `Part`: each start and finish has one, and other requests may have ten thousand.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        json_schema_extra={"examples": [_NAMED]},
    )

    job: Text
    """The job's id"""
    attempt: int = Field(ge=1, le=_ATTEMPT_MAX)
    """The number of the attempt, its fencing token: it grows with every attempt"""

    @property
    def key(self) -> tuple[str, int]:
        return self.job, self.attempt


class FetchBody(Part):
    """A request for work."""

    processor: Text = Field(examples=[_PROCESSOR])
    """The id from its registration"""
    wait_ms: Annotated[int, span(0, FETCH_WAIT_MS_MAX)] = Field(default=20_000, examples=["20s"])
    """How long to wait for work, at most a minute"""
    limit: Annotated[int, whole(1, SLOTS_MAX)] = Field(default=100, examples=[4])
    """The most attempts to return"""
    running: list[AttemptName] = Field(default=[], max_length=RUNNING_MAX, examples=[[_NAMED]])
    """The attempts it holds: the response does not list these again, and names those to stop"""


class HeldAttemptsResponse(Part):
    """The attempts that a processor must stop."""

    cancelled: list[AttemptName] = Field(examples=[[{"job": "job:0194f3a1b2c3000000deadbeef01", "attempt": 2}]])
    """Attempts with a cancel request: finish them as cancelled, or with their actual outcome"""
    revoked: list[AttemptName] = Field(examples=[[]])
    """Attempts it no longer holds: stop them and do not report them"""


class FetchResponse(HeldAttemptsResponse):
    """The attempts to start, and those to stop."""

    attempts: list[AttemptName] = Field(examples=[[_NAMED]])
    """The attempts dispatched to it; start each once"""


class StartBody(AttemptName):
    """The attempt to start."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"processor": _PROCESSOR, **_NAMED}]})

    processor: Text
    """The id of the processor"""


class StartedResponse(Part):
    """The job of a started attempt."""

    job: str = Field(examples=[_NAMED["job"]])
    """The job's id, the same for all attempts: an idempotency key for the handler's effects elsewhere"""
    attempt: int = Field(examples=[1])
    """The number of the attempt, its fencing token"""
    definition: str = Field(examples=["resize"])
    """The type of job, which selects the handler"""
    target: str = Field(examples=["image-7"])
    """The target of the job"""
    payload: JsonValue = Field(examples=[{"width": 640}])
    """The input of the handler: any JSON"""
    tenant: str = Field(examples=["acme"])
    """The tenant that owns the job"""
    labels: dict[str, str] = Field(examples=[{}])
    """The labels of the job"""
    schedule: str | None = Field(examples=[None])
    """The schedule that made it; null if none did"""
    nominal_ms: Instant | None = Field(examples=[None])
    """The nominal time of the fire; null if no schedule made it"""
    submitted_at_ms: Instant = Field(examples=["2030-01-01T00:00:00.000Z"])
    """When it was submitted, or its schedule fired"""
    started_at_ms: Instant = Field(examples=["2030-01-01T00:00:00.120Z"])
    """When this attempt started; its timeout counts from here"""
    failures: int = Field(examples=[0])
    """How many attempts failed before this one"""
    losses: int = Field(examples=[0])
    """How many attempts were lost while running"""
    timeout: float | None = Field(examples=[300.0])
    """Seconds after which to stop the attempt and finish it as failed; soon after, others get it. Null: no limit"""
    traceparent: str | None = Field(examples=["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"])
    """W3C Trace Context for its spans and outgoing requests. Null: the job is not traced"""


class AttemptProgress(AttemptName):
    """A running attempt and its progress."""

    percent: float | None = Field(default=None, ge=0, le=100)
    """Percent of the work, 0 to 100"""
    text: str = Field(default="", max_length=_PROGRESS_LENGTH_MAX)
    """The progress in words"""

    def progress(self, now: WallMs) -> HandlerProgress | None:
        """Return the reported progress; None if it has neither a percentage nor a text."""
        text = " ".join(self.text.split())
        return HandlerProgress(self.percent, text, now) if text or self.percent is not None else None


class HeartbeatBody(Part):
    """A heartbeat with the progress of running attempts."""

    processor: Text = Field(examples=[_PROCESSOR])
    """The id of the processor"""
    running: list[AttemptProgress] = Field(
        default=[], max_length=RUNNING_MAX, examples=[[{**_NAMED, "percent": 40, "text": "2 of 5 pages"}]]
    )
    """All attempts that it has started"""
    draining: bool = False
    """True if it wants no new jobs"""


class FinishBody(AttemptName):
    """The outcome of an attempt."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"processor": _PROCESSOR, **_NAMED, "outcome": "succeeded", "result": {"bytes": 7}},
                {
                    "processor": _PROCESSOR,
                    **_NAMED,
                    "outcome": "failed",
                    "error": "the image host did not answer",
                    "retryable": True,
                    "retry_after": "90s",
                },
            ]
        }
    )

    processor: Text
    """The id of its processor"""
    outcome: Literal["succeeded", "failed", "cancelled", "given_back"]
    """`cancelled`: only after a cancel request; `given_back`: for another processor to run, without a failure"""
    result: SkipValidation[JsonValue] = None
    """The result of a succeeded attempt"""
    error: str | None = None
    """The error, or why it is given back; cut at 4 KiB"""
    traceback: str | None = None
    """The traceback of a failed attempt; its last 16 KiB are stored, without secrets"""
    retryable: bool = True
    """False if a failed attempt must not be retried"""
    retry_after: Annotated[int, span(0, WEEK_MS)] | None = None
    """The pause after a failed attempt, instead of the definition's"""

    @field_validator("result")
    @classmethod
    def _not_too_large(cls, result: JsonValue) -> JsonValue:
        # Encoding a text briefly needs eight times its size.
        is_long_text = isinstance(result, str) and len(result) > RESULT_BYTES_MAX
        size = len(str(result)) if is_long_text else len(orjson.dumps(result))
        if size > RESULT_BYTES_MAX:
            raise wrong(f"{size} bytes of JSON", f"at most {RESULT_BYTES_MAX}")
        return result

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.outcome == "failed" and not self.error:
            raise wrong("a failed attempt without an error", "an error message")
        if self.outcome != "failed" and (self.retry_after is not None or not self.retryable):
            raise wrong(f"retryable or retry_after with the outcome {self.outcome}", "them only with failed")
        if self.outcome != "succeeded" and self.result is not None:
            raise wrong(f"a result with the outcome {self.outcome}", "a result only with succeeded")
        if self.outcome != "failed" and self.traceback is not None:
            raise wrong(f"a traceback with the outcome {self.outcome}", "a traceback only with failed")
        return self

    def error_text(self) -> str | None:
        encoded = (self.error or "").encode()
        if len(encoded) <= ERROR_BYTES_MAX:
            return self.error or None
        return encoded[: ERROR_BYTES_MAX - 3].decode("utf-8", "ignore") + "…"


class FinishResponse(Part):
    """The result of a finish."""

    answer: FinishAnswer = Field(examples=["done"])
    """`late`: the processor no longer held the attempt, or it had timed out; the result does not count"""
    retry_at_ms: Instant | None = Field(examples=["2030-01-01T00:01:30.000Z"])
    """When it is retried; null if it is not"""


def show_started(started: StartedJob, timeout_ms: int | None) -> StartedResponse:
    shown: dict[str, Any] = {name: getattr(started, name) for name in _AS_IT_IS}
    shown["job"] = started.id
    shown["payload"] = plain_json(started.payload)
    shown["timeout"] = None if timeout_ms is None else timeout_ms / 1_000
    shown["traceparent"] = None if started.trace is None else started.trace.traceparent
    return made_of(StartedResponse, shown)


_AS_IT_IS: tuple[str, ...] = tuple(name for name in StartedResponse.model_fields if name in StartedJob.__match_args__)
