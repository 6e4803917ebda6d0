"""When a failed attempt is tried again, and whether.

Exponential back-off with a deterministic jitter (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog,
2015): the pause before try n + 1 is ``min(max, backoff × factor^(n - 1))``, shortened by up to a fifth. How much is
hashed from the job's id and n, so that jobs that failed together do not come back together, and every process computes
the same pause.
"""

from dataclasses import dataclass
from hashlib import blake2b

from hascheduler.model.instants import WallMs

ATTEMPTS_MAX_DEFAULT = 5
BACKOFF_MS_DEFAULT = 2_000
BACKOFF_FACTOR_DEFAULT = 2_000
BACKOFF_MAX_MS_DEFAULT = 60_000
JITTER_THOUSANDTHS = 200


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """``attempts_max`` counts attempts that failed, or were lost while they ran; ``backoff_factor`` has thousandths."""

    attempts_max: int = ATTEMPTS_MAX_DEFAULT
    backoff_ms: int = BACKOFF_MS_DEFAULT
    backoff_factor: int = BACKOFF_FACTOR_DEFAULT
    backoff_max_ms: int = BACKOFF_MAX_MS_DEFAULT

    def pause_ms(self, job_id: str, failures: int) -> int:
        """How long to wait after failure number ``failures``, from 1."""
        pause_ms = min(self.backoff_ms, self.backoff_max_ms)
        for _ in range(failures - 1):
            if pause_ms >= self.backoff_max_ms or self.backoff_factor <= 1_000:
                break
            pause_ms = min(pause_ms * self.backoff_factor // 1_000, self.backoff_max_ms)
        digest = blake2b(f"{job_id}/{failures}".encode("utf-8", "surrogatepass"), digest_size=4).digest()
        return pause_ms - pause_ms * JITTER_THOUSANDTHS * int.from_bytes(digest, "big") // (1_000 << 32)

    def retry_at_ms(
        self, job_id: str, failures: int, failed_at_ms: int, end_at_ms: int | None, pause_ms: int | None = None
    ) -> WallMs | None:
        """When to try again after failure number ``failures``; None: never, as the tries or the time are used up.

        ``end_at_ms`` is the instant from which no attempt may begin; ``pause_ms`` replaces the computed pause.
        """
        if failures >= self.attempts_max:
            return None
        at_ms = failed_at_ms + (self.pause_ms(job_id, failures) if pause_ms is None else pause_ms)
        return None if end_at_ms is not None and at_ms >= end_at_ms else WallMs(at_ms)


DEFAULT_RETRY = RetryPolicy()
