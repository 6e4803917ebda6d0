"""The argument of a handler: one attempt of one job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hascheduler.model.values.instants import WallMs


@dataclass(frozen=True, slots=True)
class JobContext:
    """One attempt of one job.

    A coroutine handler is stopped by a cancellation. A plain function runs in a thread, which can't be stopped: it
    asks `stop_requested` now and then, and raises whatever it likes. What it returns after its time is late: the
    attempt has failed. One that does not heed keeps its slot and the job's conflict groups until it has ended.
    """

    id: str
    attempt: int
    definition: str
    target: str
    payload: Any
    tenant: str
    labels: Mapping[str, str]
    schedule: str | None
    nominal_ms: WallMs | None
    submitted_at_ms: WallMs
    deadline_ms: WallMs | None = field(default=None, kw_only=True)
    """When the attempt is stopped, by this process' wall clock; None: never."""
    _cancel_requested: Callable[[], bool] = field(repr=False, compare=False)
    _stop_requested: Callable[[], bool] = field(repr=False, compare=False)
    _report: Callable[[float | None, str], None] = field(default=lambda percent, text: None, repr=False, compare=False)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this job, and for no other job."""
        return self.id

    @property
    def fencing_token(self) -> int:
        """Grows with every attempt: a store that has seen a higher one refuses this one's writes."""
        return self.attempt

    def progress(self, percent: float | None = None, text: str = "") -> None:
        """Show how far this attempt has come: ``percent`` from 0 to 100 and a short text, or either.

        From a coroutine or a thread, as often as you like: the newest is stored about once a second. `InvalidInput` for
        what is no percentage.
        """
        self._report(percent, text)

    @property
    def cancel_requested(self) -> bool:
        """The cancellation of this job was requested. A result that is returned all the same stands."""
        return self._cancel_requested()

    @property
    def stop_requested(self) -> bool:
        """Stop now, whatever the reason: cancelled, out of time, revoked, draining, or out of touch with the leader."""
        return self._stop_requested()
