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
        raise wrong(f"{quoted(text)} is no definition", expected)
    return text


class RegisterBody(Part):
    """What a processor can do."""

    name: Name = Field(examples=["resizer"])
    """For people; several may have one name"""
    definitions: list[Annotated[str, AfterValidator(_definition)]] = Field(
        min_length=1, max_length=DEFINITIONS_MAX, examples=[["resize"]]
    )
    """What it runs; `*` is everything"""
    slots: Annotated[int, whole(1, SLOTS_MAX)] = Field(default=1, examples=[4])
    """How many jobs it runs at once"""
    resources: ResourceAmounts = Field(default=NO_RESOURCES, examples=[{"gpu": 1}])
    """What its jobs share besides the slots"""


class RegisteredResponse(Part):
    """How a processor that has registered goes on."""

    processor: str = Field(examples=[_PROCESSOR])
    """Its id, to be named in all other requests"""
    heartbeat_interval: float = Field(examples=[1.0])
    """Seconds: show life so often"""
    heartbeat_deadline: float = Field(examples=[4.0])
    """Seconds: after so long without an answer stop what runs, as others are about to get it"""


class AttemptName(BaseModel):
    """One attempt of a job."""

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
    """The fencing token: it grows with every attempt"""

    @property
    def key(self) -> tuple[str, int]:
        return self.job, self.attempt


class FetchBody(Part):
    """Ask for work."""

    processor: Text = Field(examples=[_PROCESSOR])
    """The id that its registration was answered with"""
    wait_ms: Annotated[int, span(0, FETCH_WAIT_MS_MAX)] = Field(default=20_000, examples=["20s"])
    """Answer when there is work, or after so long, at most a minute"""
    limit: Annotated[int, whole(1, SLOTS_MAX)] = Field(default=100, examples=[4])
    """How many attempts at most"""
    running: list[AttemptName] = Field(default=[], max_length=RUNNING_MAX, examples=[[_NAMED]])
    """What it holds already: the answer does not name these again, and says which of them are to stop"""


class HeldAttemptsResponse(Part):
    """What has become of attempts that a processor holds."""

    cancelled: list[AttemptName] = Field(examples=[[{"job": "job:0194f3a1b2c3000000deadbeef01", "attempt": 2}]])
    """Asked to stop: finish them as cancelled, or as what they became"""
    revoked: list[AttemptName] = Field(examples=[[]])
    """No longer its own: stop, and say nothing more about them"""


class FetchResponse(HeldAttemptsResponse):
    """Attempts to start, and what has become of those that a processor holds."""

    attempts: list[AttemptName] = Field(examples=[[_NAMED]])
    """Promised to it; start each of them, once"""


class StartBody(AttemptName):
    """Begin an attempt."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"processor": _PROCESSOR, **_NAMED}]})

    processor: Text
    """The id of the processor that starts it"""


class StartedResponse(Part):
    """The job whose attempt has begun."""

    job: str = Field(examples=[_NAMED["job"]])
    """The same for all attempts: an idempotency key for what the handler does elsewhere"""
    attempt: int = Field(examples=[1])
    """Which attempt this is: the fencing token"""
    definition: str = Field(examples=["resize"])
    """The type of job: which handler runs it"""
    target: str = Field(examples=["image-7"])
    """What it works on"""
    payload: JsonValue = Field(examples=[{"width": 640}])
    """What it was submitted with: any JSON"""
    tenant: str = Field(examples=["acme"])
    """Who owns it"""
    labels: dict[str, str] = Field(examples=[{}])
    """Texts for people"""
    schedule: str | None = Field(examples=[None])
    """The schedule that made it; null if none did"""
    nominal_ms: Instant | None = Field(examples=[None])
    """The nominal time that it was made for; null if no schedule made it"""
    submitted_at_ms: Instant = Field(examples=["2030-01-01T00:00:00.000Z"])
    """When it was submitted, or its schedule fired"""
    started_at_ms: Instant = Field(examples=["2030-01-01T00:00:00.120Z"])
    """When this attempt began: its timeout counts from here"""
    failures: int = Field(examples=[0])
    """How many attempts failed before this one"""
    losses: int = Field(examples=[0])
    """How many attempts were lost while they ran"""
    timeout: float | None = Field(examples=[300.0])
    """Seconds: stop it after so long, and finish it as failed; soon after, others get it. Null: no limit"""
    traceparent: str | None = Field(examples=["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"])
    """W3C Trace Context: where its spans belong, and what it sends on. Null: the job is not traced"""


class AttemptProgress(AttemptName):
    """An attempt that runs, and how far it has come."""

    percent: float | None = Field(default=None, ge=0, le=100)
    """How far it has come"""
    text: str = Field(default="", max_length=_PROGRESS_LENGTH_MAX)
    """The same in words"""

    def progress(self, now: WallMs) -> HandlerProgress | None:
        """Return the reported progress; None if it has neither a percentage nor a text."""
        text = " ".join(self.text.split())
        return HandlerProgress(self.percent, text, now) if text or self.percent is not None else None


class HeartbeatBody(Part):
    """Show life, and how far the work has come."""

    processor: Text = Field(examples=[_PROCESSOR])
    """The id of the processor that lives"""
    running: list[AttemptProgress] = Field(
        default=[], max_length=RUNNING_MAX, examples=[[{**_NAMED, "percent": 40, "text": "2 of 5 pages"}]]
    )
    """All that it has started"""
    draining: bool = False
    """It wants no new jobs"""


class FinishBody(AttemptName):
    """How an attempt ended."""

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
    """The id of the processor that had it"""
    outcome: Literal["succeeded", "failed", "cancelled", "given_back"]
    """`cancelled`: only after a request; `given_back`: another one shall run it, nothing went wrong"""
    result: SkipValidation[JsonValue] = None
    """Of one that succeeded"""
    error: str | None = None
    """What went wrong, or why it is given back; cut at 4 KiB"""
    traceback: str | None = None
    """Of one that failed: where that happened; its last 16 KiB are kept, without secrets"""
    retryable: bool = True
    """Of one that failed: whether trying again may help"""
    retry_after: Annotated[int, span(0, WEEK_MS)] | None = None
    """Of one that failed: the pause before the next try, instead of the definition's own"""

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
            raise wrong("a failed attempt without an error", "an error that says what went wrong")
        if self.outcome != "failed" and (self.retry_after is not None or not self.retryable):
            raise wrong(f"retryable or retry_after with {self.outcome}", "them with failed only")
        if self.outcome != "succeeded" and self.result is not None:
            raise wrong(f"a result with {self.outcome}", "a result with succeeded only")
        if self.outcome != "failed" and self.traceback is not None:
            raise wrong(f"a traceback with {self.outcome}", "a traceback with failed only")
        return self

    def error_text(self) -> str | None:
        encoded = (self.error or "").encode()
        if len(encoded) <= ERROR_BYTES_MAX:
            return self.error or None
        return encoded[: ERROR_BYTES_MAX - 3].decode("utf-8", "ignore") + "…"


class FinishResponse(Part):
    """What became of the end of an attempt."""

    answer: FinishAnswer = Field(examples=["done"])
    """`late`: it was no longer this processor's, or its time was over; the result counts for nothing"""
    retry_at_ms: Instant | None = Field(examples=["2030-01-01T00:01:30.000Z"])
    """When it is tried again, if it is"""


def show_started(started: StartedJob, timeout_ms: int | None) -> StartedResponse:
    shown: dict[str, Any] = {name: getattr(started, name) for name in _AS_IT_IS}
    shown["job"] = started.id
    shown["payload"] = plain_json(started.payload)
    shown["timeout"] = None if timeout_ms is None else timeout_ms / 1_000
    shown["traceparent"] = None if started.trace is None else started.trace.traceparent
    return made_of(StartedResponse, shown)


_AS_IT_IS: tuple[str, ...] = tuple(name for name in StartedResponse.model_fields if name in StartedJob.__match_args__)
