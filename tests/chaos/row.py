"""What a row is: a name, what goes wrong, what it takes, and the bound that it has to meet besides losing nothing."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from tests.chaos.users import LoadPlan

if TYPE_CHECKING:
    from tests.chaos.stage import Stage

OBLIGATIONS_MIN = 1_000
"""The least obligations of a main row that runs in full."""
_IN_SHORT_MIN = 300
"""The same in CI, with half of the users: a machine with much else to do is not to be the trouble."""
STRAY = "stray"
"""In the id of whatever nobody asked the API for: it is in no account."""


class Databases(StrEnum):
    ONE = "one member, kept from row to row"
    THREE = "three members, each on a host of its own where hosts are needed"
    TINY = "one member with the shortest history that there is"
    SMALL_DISK = "one member on a small disk of its own"


@dataclass(frozen=True)
class Row:
    """``trouble`` makes it and returns when all of it is over or has been left behind on purpose.

    ``gap_s`` bounds the time in which nothing is decided while the trouble lasts, if it is given; ``takeover_ms`` the
    p99 from the end of a leader to the first job that the next gives out; ``recovery_max_s`` the time from the end of
    the trouble until all that is due has ended. ``skew_ms``: how wrong a clock was, which excuses early fires.
    """

    name: str
    what: str
    trouble: Callable[["Stage"], Awaitable[None]]
    smoke: bool = False
    main: bool = True
    databases: Databases = Databases.ONE
    lines: bool = False
    """Every process reaches the servers through a line of its own, which can be troubled."""
    hosts: bool = False
    """Members, replicas and processors are on three hosts that can be cut off."""
    load: LoadPlan = field(default_factory=LoadPlan)
    obligations_min: int = OBLIGATIONS_MIN
    settings: Mapping[str, str] = field(default_factory=dict)
    gap_s: float | None = 3.0
    takeover_ms: int | None = None
    recovery_max_s: float = 120.0
    skew_ms: int = 0
    faketime: bool = False
    """The replicas' wall clocks can be set for everything in their processes."""
    shards: int = 1
    """Each processor serves all of several, and users have tenants in each."""
    partitions_move: bool = False
    """Partitions move between the shards: jobs and schedules are judged in all of them as in one."""
    zone_data: bool = False
    """Each replica has time-zone data of its own (`tests.chaos.zone_data`)."""
    stray: bool = False
    """Documents that nobody asked the API for are put into the database; their ids hold that word."""

    def in_short(self) -> "Row":
        """As it runs in CI, beside whatever else the machine does: what is lost and doubled counts all the same,
        and what took its time only where the machine can't be the reason."""
        return replace(
            self,
            gap_s=None if self.gap_s is None else _SLACK_IN_SHORT * self.gap_s,
            takeover_ms=None if self.takeover_ms is None else _SLACK_IN_SHORT * self.takeover_ms,
            load=replace(self.load, schedules=self.load.schedules // 2, submits_per_s=self.load.submits_per_s / 2),
            obligations_min=_IN_SHORT_MIN,
        )


_SLACK_IN_SHORT = 4
BRIEF_LEASE: Mapping[str, str] = {
    "HASCHEDULER_LEASE_DURATION": "2s",
    "HASCHEDULER_RENEW_DEADLINE": "1200ms",
    "HASCHEDULER_RETRY_PERIOD": "400ms",
}
"""So that another leads before what a leader was about to write is too old to be sent."""
SHORT_LEASE: Mapping[str, str] = {
    "HASCHEDULER_LEASE_DURATION": "4s",
    "HASCHEDULER_RENEW_DEADLINE": "2500ms",
    "HASCHEDULER_RETRY_PERIOD": "500ms",
}
"""So that a row in which the lease has to run out need not last for ever."""
