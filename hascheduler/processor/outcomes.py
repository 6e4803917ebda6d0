"""How an attempt ended, as it may be stored, and whether a failed one may be tried again.

What a handler raises is tried again, with the pause that the definition's back-off says, as long as tries are left. It
says otherwise by what it raises: `PermanentError`, `RetryLater`, or an error that is the caller's own fault
(`hascheduler.errors.CallerError`: a payload that is wrong today is wrong tomorrow).
"""

from dataclasses import dataclass
from typing import Any

import orjson

from hascheduler.errors import CallerError, InvalidInput
from hascheduler.model.durations import parse_duration
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobState
from hascheduler.ports import AttemptOutcome, StartedJob

RESULT_BYTES_MAX = 256 * 1024
ERROR_BYTES_MAX = 4 * 1024
TEXT_LENGTH_MAX = 500
# Nothing is converted behind the handler's back but what JSON itself has no difference for.
_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


class PermanentError(Exception):
    """Trying again would fail again: the job fails for good."""


class RetryLater(Exception):
    """Try again after ``after`` (seconds, or a duration such as ``"90s"``), whatever the back-off says.

    It counts as a failure all the same, so there is an end to it.
    """

    def __init__(self, after: float | str, reason: str = "") -> None:
        self.after_ms = parse_duration(after)
        super().__init__(reason or f"not before {after if isinstance(after, str) else f'{after:g} s'} from now")


@dataclass(frozen=True, slots=True)
class Failure:
    """``pause_ms``: how long to wait at least, where the handler says so; a ``final`` one is not tried again.
    ``error_type`` is the class of what was raised, or "timeout"."""

    error: str
    final: bool = False
    pause_ms: int | None = None
    error_type: str = "timeout"


def failure_of(error: BaseException) -> Failure:
    """What it means that a handler raised ``error``."""
    return Failure(
        error_text(error),
        final=isinstance(error, PermanentError | CallerError),
        pause_ms=error.after_ms if isinstance(error, RetryLater) else None,
        error_type=_class_of(error),
    )


def _class_of(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def outcome_of(failure: Failure, started: StartedJob, now: WallMs) -> AttemptOutcome:
    """The end of the attempt: to be tried again at some instant, or failed for good."""
    failures = started.failures + 1
    retry_at_ms = None
    if not failure.final:
        retry_at_ms = started.rules.retry.retry_at_ms(
            started.id, failures, now, started.rules.end_of(started.first_started_at_ms), failure.pause_ms
        )
    return AttemptOutcome(JobState.FAILED, error=failure.error, retry_at_ms=retry_at_ms)


def checked_percent(percent: Any) -> float | None:
    """``percent``, or an `InvalidInput` where it is none."""
    if percent is None:
        return None
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
        raise InvalidInput(("percent",), f"{str(percent)[:64]!r}", "a number from 0 to 100, or None")
    return float(percent)


def checked_result(result: object) -> Any:
    """``result`` as JSON reads it back (tuples become lists); not JSON, or too much of it, is an `InvalidInput`."""
    try:
        encoded = orjson.dumps(result, option=_STRICT)
    except (TypeError, RecursionError) as error:
        raise InvalidInput(("result",), f"not JSON: {str(error)[:200]}", "JSON") from None
    if len(encoded) > RESULT_BYTES_MAX:
        raise InvalidInput(("result",), f"{len(encoded)} bytes of JSON", f"at most {RESULT_BYTES_MAX}")
    return orjson.loads(encoded)


def shown_text(text: object) -> str:
    """``text`` as it may be stored and shown in one line, at most `TEXT_LENGTH_MAX` characters."""
    return " ".join(str(text)[:TEXT_LENGTH_MAX].encode("utf-8", "replace").decode().split())


def error_text(error: BaseException) -> str:
    """``Type: text``, at most `ERROR_BYTES_MAX` bytes of valid UTF-8."""
    try:
        said = str(error)
    except Exception:  # an exception whose text can't be made is still one failed job, no more
        said = ""
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= ERROR_BYTES_MAX:
        return encoded.decode()
    return encoded[: ERROR_BYTES_MAX - 3].decode("utf-8", "ignore") + "…"
