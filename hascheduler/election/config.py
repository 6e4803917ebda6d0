"""The elector's times, checked against each other once."""

from dataclasses import dataclass

from hascheduler.errors import InvalidInput

JITTER = 1.2
"""A retry may be late by a fifth of its period; the deadline must leave room for one that is."""


@dataclass(frozen=True, slots=True)
class ElectionConfig:
    """``candidate_id`` is unique per process start: a restarted replica is another candidate."""

    name: str
    candidate_id: str
    endpoint: str
    lease_duration_ms: int
    renew_deadline_ms: int
    retry_period_ms: int

    def __post_init__(self) -> None:
        if not self.candidate_id:
            raise InvalidInput(("candidate_id",), "empty", "an id that is unique per process start")
        if self.retry_period_ms <= 0:
            raise InvalidInput(("retry_period_ms",), f"{self.retry_period_ms}", "a positive number")
        if not self.lease_duration_ms > self.renew_deadline_ms > JITTER * self.retry_period_ms:
            raise InvalidInput(
                ("lease_duration_ms",),
                f"{self.lease_duration_ms} / {self.renew_deadline_ms} / {self.retry_period_ms}",
                "lease_duration > renew_deadline > 1.2 × retry_period",
            )
