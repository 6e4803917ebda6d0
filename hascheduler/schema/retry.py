"""Retries: when a failed attempt is tried again, if at all.

Exponential backoff with a deterministic jitter (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog,
2015): the pause before try n + 1 is ``min(max, backoff × factor^(n - 1))``, shortened by up to a fifth. The amount is a
hash of the job's id and n, so that jobs that failed together do not come back together, and every process computes the
same pause.

An attempt that is *lost* (its processor died, was cut off, or fenced itself) has not failed: its outcome is unknown.
Losses have a limit of their own, so that a job that kills its processors comes to an end, and pauses of their own: none
after the first, because the processor is most often to blame.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Annotated, Any

from pydantic import Field

from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.forms import WEEK_MS, Form, span, whole, written_span, wrong
from hascheduler.schema.noun import Part

ATTEMPTS_MAX = 100
LOST_ATTEMPTS_MAX_DEFAULT = 10
LOST_AS_FAILED = 0
"""A limit of losses that counts each as a failure. Stored definitions of 0.2.0, which have no such limit, mean this."""
LOST_PAUSES_MS = (0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000)
"""The pauses after the first loss of a job, the second, and so on; then the last one each time."""
JITTER_THOUSANDTHS = 200


_FACTOR_MAX = 10
_FACTOR_EXPECTED = f"1 to {_FACTOR_MAX}, with at most three decimals"


def _factor(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(f"{quoted(value)} is not a number", _FACTOR_EXPECTED)
    if not 1 <= value <= _FACTOR_MAX:
        raise wrong(f"{value} is out of range", _FACTOR_EXPECTED)
    thousandths = round(value * 1_000)
    if thousandths / 1_000 != value:
        raise wrong(f"{value} has too many decimals", _FACTOR_EXPECTED)
    return thousandths


def _factor_number(thousandths: int) -> int | float:
    whole_number, rest = divmod(thousandths, 1_000)
    return thousandths / 1_000 if rest else whole_number


_FACTOR_SCHEMA = {"type": "number", "minimum": 1, "maximum": _FACTOR_MAX}
Factor = Annotated[
    int,
    Form(_factor, _factor_number, whole(0, 0).read_stored, _FACTOR_SCHEMA, {"type": "number"}, metavar="N"),
]


class RetryPolicy(Part):
    """How often a job is tried, and the pauses between attempts: backoff, backoff × factor, … at most max."""

    attempts_max: Annotated[int, whole(1, ATTEMPTS_MAX, stored_least=0)] = Field(default=5)
    """How many attempts may fail before the job fails"""
    lost_attempts_max: Annotated[int, whole(LOST_AS_FAILED, ATTEMPTS_MAX)] = Field(default=LOST_ATTEMPTS_MAX_DEFAULT)
    """How many attempts may be lost while running (their processor died, was cut off or fenced itself) before the
    job fails; 0: a lost attempt counts as failed"""
    backoff_ms: Annotated[int, span(0, WEEK_MS)] = Field(default=2_000, examples=["2s"])
    """The first pause; default 2s"""
    backoff_factor: Factor = Field(default=2_000, examples=[2])
    """The factor by which each pause grows; default 2"""
    backoff_max_ms: Annotated[int, span(0, WEEK_MS)] = Field(default=60_000, examples=["1m"])
    """The longest pause; default 1m"""

    def check_request(self, given: Mapping[str, Any]) -> None:
        if self.backoff_ms > self.backoff_max_ms:
            backoff = written_span(given, "backoff", self.backoff_ms)
            longest = written_span(given, "max", self.backoff_max_ms)
            raise wrong(f"the backoff {backoff} is longer than max {longest}", "a max at least as long")

    def used_up(self, failures: int, losses: int) -> bool:
        """Return True if a job has failed after that many failures and losses."""
        if self.lost_attempts_max == LOST_AS_FAILED:
            return failures + losses >= self.attempts_max
        return failures >= self.attempts_max or losses >= self.lost_attempts_max

    def pause_ms(self, job_id: str, failures: int) -> int:
        """Return the wait after failure number ``failures``, counted from 1."""
        pause_ms = min(self.backoff_ms, self.backoff_max_ms)
        for _ in range(failures - 1):
            if pause_ms >= self.backoff_max_ms or self.backoff_factor <= 1_000:
                break
            pause_ms = min(pause_ms * self.backoff_factor // 1_000, self.backoff_max_ms)
        digest = blake2b(f"{job_id}/{failures}".encode("utf-8", "surrogatepass"), digest_size=4).digest()
        return pause_ms - pause_ms * JITTER_THOUSANDTHS * int.from_bytes(digest, "big") // (1_000 << 32)

    def retry_at_ms(
        self,
        job_id: str,
        failures: int,
        failed_at_ms: int,
        end_at_ms: int | None,
        pause_ms: int | None = None,
        *,
        losses: int = 0,
    ) -> WallMs | None:
        """Return when to try again after failure number ``failures``; None if the tries or the time are used up.

        ``end_at_ms`` is the instant from which no attempt may begin; ``pause_ms`` replaces the computed pause.
        """
        if self.used_up(failures, losses):
            return None
        at_ms = failed_at_ms + (self.pause_ms(job_id, failures) if pause_ms is None else pause_ms)
        return None if end_at_ms is not None and at_ms >= end_at_ms else WallMs(at_ms)


def lost_pause_ms(losses: int) -> int:
    """Return the wait after loss number ``losses``, counted from 1."""
    return LOST_PAUSES_MS[min(losses, len(LOST_PAUSES_MS)) - 1]


def tries_text(count: int, losses: int = 0) -> str:
    tries = "1 try" if count == 1 else f"{count} tries"
    return f"{tries}, {losses} lost" if losses else tries


def lost_text(reason: str, losses: int, retry: RetryPolicy) -> str:
    """Return the error of a job whose losses are used up."""
    if retry.lost_attempts_max == LOST_AS_FAILED:
        return f"{reason}; attempts used up"
    return f"{reason}; {losses} {'attempt' if losses == 1 else 'attempts'} lost, as many as lost_attempts allows"
