"""The settings of one processor, checked when they are made."""

from dataclasses import dataclass

from hascheduler.errors import InvalidInput
from hascheduler.model.processor import require_name
from hascheduler.model.resources import NO_RESOURCES, Resources

_BRIEFLY_MS = 3_000


@dataclass(frozen=True, slots=True)
class ProcessorConfig:
    """The settings of one processor; ``id`` is unique per process start.

    ``heartbeat_deadline_ms`` must be below the leader's heartbeat timeout. ``resources`` are what jobs share besides
    the slots; only the leader counts them. ``liveness_endpoint`` is where replicas watch this process; if empty, they
    rely on its heartbeat alone. ``offered_first`` is how many of the slots it offers at first, if the process serves
    other schedulers too; None means all.
    """

    id: str
    name: str
    scheduler: str
    slots: int
    heartbeat_interval_ms: int
    heartbeat_deadline_ms: int
    drain_grace_ms: int
    resources: Resources = NO_RESOURCES
    liveness_endpoint: str = ""
    offered_first: int | None = None

    def __post_init__(self) -> None:
        if not self.id:
            raise InvalidInput(("id",), "empty", "a text unique to this processor")
        require_name(self.name)
        if self.slots < 1:
            raise InvalidInput(("slots",), f"{self.slots}", "at least 1")
        if not 1 <= self.offered <= self.slots:
            raise InvalidInput(("offered_first",), f"{self.offered}", f"1 to {self.slots}")
        if self.heartbeat_interval_ms < 1:
            raise InvalidInput(("heartbeat_interval_ms",), f"{self.heartbeat_interval_ms}", "at least 1")
        if self.heartbeat_deadline_ms <= self.heartbeat_interval_ms:
            raise InvalidInput(
                ("heartbeat_deadline_ms",),
                f"{self.heartbeat_deadline_ms}",
                f"more than the heartbeat interval of {self.heartbeat_interval_ms}",
            )
        if self.drain_grace_ms < 0:
            raise InvalidInput(("drain_grace_ms",), f"{self.drain_grace_ms}", "at least 0")

    @property
    def offered(self) -> int:
        """Return how many slots it offers at first."""
        return self.slots if self.offered_first is None else self.offered_first

    @property
    def slot_limit_ms(self) -> int:
        """Return how long an attempt waits for a slot.

        Jobs of other schedulers may hold it for long, and the leader should learn so before it concludes that this
        processor does not start what it gets.
        """
        return (
            self.heartbeat_deadline_ms if self.offered_first is None else min(self.heartbeat_deadline_ms, _BRIEFLY_MS)
        )

    @property
    def held_max(self) -> int:
        """Return how many attempts may be held: those running, and as many messages as a broker hands out ahead."""
        return 3 * self.slots + 16
