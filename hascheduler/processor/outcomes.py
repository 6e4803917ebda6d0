"""How an attempt ended, as it may be stored, and whether a failed one may be retried.

If a handler raises, its job is retried after the definition's backoff, as long as tries are left. The handler chooses
otherwise by what it raises: `PermanentError`, `RetryLater`, or an error that is the caller's own fault
(`hascheduler.errors.CallerError`: a payload that is wrong today is wrong tomorrow).

`until_answered` asks the database until it answers. Each question may be repeated: it is a compare-and-set.
"""

import asyncio
import math
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from random import uniform
from typing import Any, TypeVar

import orjson
import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from hascheduler.errors import CallerError, InvalidInput, WorldError
from hascheduler.lifecycle import leave_if_cancelled
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs, parse_duration
from hascheduler.model.values.redaction import kept_traceback
from hascheduler.ports import AttemptOutcome, StartedJob
from hascheduler.schema.retry import lost_text

RESULT_BYTES_MAX = 256 * 1024
ERROR_BYTES_MAX = 4 * 1024
TEXT_LENGTH_MAX = 500
RESULT_NESTED_MAX = 170
"""How deep objects and lists may nest: a little less than MongoDB can, so that it stores a late result as well."""
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1


class PermanentError(Exception):
    """Another try would fail again: the job fails for good."""


class RetryLater(Exception):
    """Retry after ``after`` (seconds, or a duration such as ``"90s"``), whatever the backoff says.

    It still counts as a failure, so that retries end.
    """

    def __init__(self, after: float | str, reason: str = "") -> None:
        self.after_ms = parse_duration(after)
        super().__init__(reason or f"retry in {after if isinstance(after, str) else f'{after:g} s'}")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed.

    ``pause_ms`` is how long to wait at least, if the handler says so; a ``final`` failure is not retried.
    ``error_type`` is the class of what was raised, or "timeout"; ``traceback`` is where it was raised.
    """

    error: str
    final: bool = False
    pause_ms: int | None = None
    error_type: str = "timeout"
    traceback: str | None = None


class ReportedFailure(Exception):
    """What was raised in the handler's own process, as that process judged it."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.error)


def failure_of(error: BaseException) -> Failure:
    """Return the failure of an attempt whose handler raised ``error``."""
    if isinstance(error, ReportedFailure):
        return error.failure
    return Failure(
        error_text(error),
        final=isinstance(error, PermanentError | CallerError),
        pause_ms=error.after_ms if isinstance(error, RetryLater) else None,
        error_type=_class_of(type(error)),
        traceback=traceback_of(error),
    )


def traceback_of(error: BaseException) -> str | None:
    """Return where ``error`` was raised, redacted and bounded, without the frames that called the handler."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__") in _CALLERS:
        frames = frames.tb_next
    if frames is None:
        return None
    try:
        return kept_traceback("".join(traceback.format_exception(type(error), error, frames)))
    except Exception:  # the handler's code makes this text, and may fail in any way
        return None


_ROOMS = ("invocation", "handler_loop", "child", "child_process", "outcomes")
_CALLERS = frozenset(f"hascheduler.processor.{room}" for room in _ROOMS)


def _class_of(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def outcome_of(failure: Failure, started: StartedJob, now: WallMs) -> AttemptOutcome:
    """Return the end of the attempt: to be retried at some instant, or failed for good."""
    failures = started.failures + 1
    retry_at_ms = None
    if not failure.final:
        end_at_ms = started.rules.end_of(started.first_started_at_ms)
        retry_at_ms = started.rules.retry.retry_at_ms(
            started.id, failures, now, end_at_ms, failure.pause_ms, losses=started.losses
        )
    return AttemptOutcome(JobState.FAILED, error=failure.error, retry_at_ms=retry_at_ms, traceback=failure.traceback)


def loss_of(reason: str, started: StartedJob) -> AttemptOutcome | None:
    """Return the end of a job whose attempts were lost too often; None if it is retried."""
    retry, losses = started.rules.retry, started.losses + 1
    if not retry.used_up(started.failures, losses):
        return None
    return AttemptOutcome(JobState.FAILED, error=lost_text(reason, losses, retry), lost=True)


def checked_percent(percent: Any) -> float | None:
    """Return ``percent``, or raise `InvalidInput` if it is no percentage."""
    if percent is None:
        return None
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
        raise InvalidInput(("percent",), f"{str(percent)[:64]!r}", "a number from 0 to 100, or None")
    return float(percent)


def checked_result(result: object) -> Any:
    """Return ``result`` in plain JSON values (tuples become lists); raise `InvalidInput` with the place otherwise.

    Only conversions that make no difference in JSON are made.
    """
    # Values that contain each other make a small object without end; JSON has at least a byte for each.
    room = count(RESULT_BYTES_MAX, -1)

    def plain(value: object, path: tuple[str | int, ...]) -> Any:
        if next(room) < 0:
            raise InvalidInput(("result",), f"more than {RESULT_BYTES_MAX} values", f"at most {RESULT_BYTES_MAX} bytes")
        match value:
            case None | bool():
                return value
            case str():
                return _plain_text(value, path)
            case int():
                if not _INTEGER_MIN <= value <= _INTEGER_MAX:
                    raise InvalidInput(path, "an integer that does not fit into 64 bits", "a 64-bit integer, or a text")
                return int(value)
            case float():
                if not math.isfinite(value):
                    raise InvalidInput(path, f"not JSON: {value}", "a finite number, or None")
                return float(value)
            case Mapping() | list() | tuple() if len(path) > RESULT_NESTED_MAX:
                raise InvalidInput(
                    ("result",), f"nested deeper than {RESULT_NESTED_MAX}", f"at most {RESULT_NESTED_MAX} levels"
                )
            case dict():
                return {_plain_name(name, path): plain(item, (*path, name)) for name, item in value.items()}
            case list() | tuple():
                return [plain(item, (*path, place)) for place, item in enumerate(value)]
        raise InvalidInput(
            path, f"not JSON: {_class_of(type(value))}", "an object, list, text, number, boolean or None"
        )

    checked = plain(result, ("result",))
    size = len(orjson.dumps(checked))
    if size > RESULT_BYTES_MAX:
        raise InvalidInput(("result",), f"{size} bytes of JSON", f"at most {RESULT_BYTES_MAX}")
    return checked


def _plain_name(name: object, path: tuple[str | int, ...]) -> str:
    if not isinstance(name, str):
        raise InvalidInput(path, f"not JSON: the key {str(name)[:64]!r} is not a text", "keys that are texts")
    if "\0" in name:
        raise InvalidInput(path, f"the key {name[:64]!r} contains NUL", "keys without NUL")
    return _plain_text(name, path)


def _plain_text(text: str, path: tuple[str | int, ...]) -> str:
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidInput(path, "not JSON: an unpaired surrogate", "valid Unicode text")
    return text if type(text) is str else str.__str__(text)


def shown_text(text: object) -> str:
    """Return ``text`` as it may be stored and shown in one line, at most `TEXT_LENGTH_MAX` characters."""
    return " ".join(str(text)[:TEXT_LENGTH_MAX].encode("utf-8", "replace").decode().split())


def error_text(error: BaseException) -> str:
    """Return ``Type: text``, at most `ERROR_BYTES_MAX` bytes of valid UTF-8."""
    try:
        text = str(error)
    except Exception:  # an exception whose text can't be made fails only its own job
        text = ""
    return _cut(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def with_cause(error: str, cause: object) -> str:
    """Return ``error`` and its possible cause, within the same bound; the cause is never cut off."""
    return f"{_cut(error, ERROR_BYTES_MAX - len(str(cause).encode()) - 2)}; {cause}"


def _cut(text: str, bytes_max: int = ERROR_BYTES_MAX) -> str:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= bytes_max:
        return encoded.decode()
    return encoded[: bytes_max - 3].decode("utf-8", "ignore") + "…"


log = structlog.get_logger(__name__)

_T = TypeVar("_T")
_FIRST_PAUSE_S = 0.1


async def until_answered(
    ask: Callable[[], Awaitable[_T]], doing: str, *, retry_while: Callable[[], bool] = lambda: True
) -> _T:
    """Return what ``ask`` returns, and ask again after each unknown answer while ``retry_while`` returns True.

    Then raise the last `WorldError`. If ``retry_while`` stays True, the cancellation by the drain ends it.
    """

    def log_unanswered(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        log.warning("write_unknown", doing=doing, tries=state.attempt_number + 1, error=str(error))

    async def asked() -> _T:
        # A coroutine function, by which tenacity knows what to await; ``ask`` may be a lambda.
        try:
            return await ask()
        finally:
            leave_if_cancelled()

    try:
        # Nearly always enough, and without the cost of a retry loop.
        return await ask()
    except WorldError as error:
        if not retry_while():
            raise
        log.warning("write_unknown", doing=doing, tries=1, error=str(error))
        leave_if_cancelled()
    await asyncio.sleep(uniform(0, _FIRST_PAUSE_S))  # noqa: S311  # jitter, no secret
    return await AsyncRetrying(
        retry=retry_if_exception_type(WorldError),
        wait=wait_random_exponential(multiplier=0.1, max=2),
        stop=lambda state: not retry_while(),
        before_sleep=log_unanswered,
        reraise=True,
    )(asked)
