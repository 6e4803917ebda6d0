"""Shares: how many of the jobs that a cap allows over all shards may run in one of them, and what it has of a rate.

Two documents keep the promise of one cap. The home has a `SharedCap`: what each shard may use, of which the sum is
never above the cap. Each shard has its own `Share`, which its core goes by, as its stream brings it. Units move in this
order alone, whichever process moves them, and however late:

1. the home lowers the target of one shard, and its share follows;
2. the leader of that shard runs no more than that, and says so through its journal (`ReleaseShare`): whatever is
   decided there from then on, by it or by a successor, keeps to the lower limit;
3. the home takes back what was granted, and
4. grants it to another shard.

No clock is involved, and a leader that takes over finds all of it in its database. In the same way a shard is made to
stop deciding for the tenants of one slot, and says that it keeps to that (`slot_key`).

Of a rate (`rate_key`) the units are those of its ``count``: a shard's token bucket holds as many tokens as its share,
and fills at that rate. A bucket whose share grows gets no tokens for it, and one whose share is lowered keeps what
still fits. So all buckets together hold at most ``count`` at every instant, and never fill faster than one bucket of
the whole: over any span no more starts in all shards than that one would allow.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hascheduler.errors import InvalidInput

ALL_JOBS = "all"
"""The key of the cap on all jobs together."""
_OF_DEFINITION = "definition/"
_OF_TIER = "tier/"
_OF_RATE = "rate/"
_OF_SLOT = "slot/"


def definition_key(name: str) -> str:
    """The key of the cap on the jobs of that definition."""
    return f"{_OF_DEFINITION}{name}"


def tier_key(tier: int) -> str:
    """The key of the cap on the jobs of that tier."""
    return f"{_OF_TIER}{tier}"


def definition_of_key(key: str) -> str | None:
    """The definition whose jobs the cap is on; None: it is on others."""
    return key.removeprefix(_OF_DEFINITION) if key.startswith(_OF_DEFINITION) else None


def tier_of_key(key: str) -> int | None:
    """The tier that the cap is on; None: it is on others."""
    rank = key.removeprefix(_OF_TIER)
    return int(rank) if key.startswith(_OF_TIER) and rank.isdecimal() and rank.isascii() else None


def rate_key(name: str) -> str:
    """The key of the rate limit of that definition: its units are those of ``count``."""
    return f"{_OF_RATE}{name}"


def rate_of_key(key: str) -> str | None:
    """The definition whose rate it is; None: it is of something else."""
    return key.removeprefix(_OF_RATE) if key.startswith(_OF_RATE) else None


def slot_key(slot: int) -> str:
    """The key of the share that says whether a shard decides for the tenants of that slot: its limit is 1, or 0."""
    return f"{_OF_SLOT}{slot:02x}"


def slot_of_key(key: str) -> int | None:
    """The slot that the key is of; None: it is of a cap."""
    digits = key.removeprefix(_OF_SLOT)
    is_slot = key.startswith(_OF_SLOT) and len(digits) == 2 and set(digits) <= set("0123456789abcdef")
    return int(digits, 16) if is_slot else None


def even_share(cap: int, index: int, shards: int) -> int:
    """What shard ``index`` of ``shards`` may use of a cap of which nothing was ever moved: whole, and in the sum the
    cap."""
    return cap // shards + (index < cap % shards)


@dataclass(frozen=True, slots=True)
class Share:
    """What one shard may use of a cap: at most ``limit`` of those jobs are dispatched or running there.

    ``rev`` is the revision of the home's document that set the limit. ``lowered``: more was granted before, so that the
    home waits for the release; ``released`` is the newest revision that was released.
    """

    key: str
    rev: int
    limit: int
    lowered: bool = False
    released: int = 0

    @property
    def is_awaited(self) -> bool:
        """Whether the home waits for the release of this revision."""
        return self.lowered and self.released < self.rev


@dataclass(frozen=True, slots=True)
class Grant:
    """What one shard has of a cap: it may be using up to ``granted``, and shall use up to ``target``, since the
    revision ``since`` of the document."""

    granted: int
    target: int
    since: int

    def __post_init__(self) -> None:
        if not 0 <= self.target <= self.granted:
            raise InvalidInput(("target",), f"{self.target} of {self.granted}", "0 to what is granted")

    @property
    def is_shrinking(self) -> bool:
        return self.target < self.granted


@dataclass(frozen=True, slots=True)
class SharedCap:
    """A cap over all shards, and what each of them has of it, in the order of the routing.

    The sum of what is granted is at most ``cap``, but for a cap that was lowered: then nothing is granted until it is.
    """

    key: str
    rev: int
    cap: int
    grants: tuple[Grant, ...]

    @classmethod
    def even(cls, key: str, cap: int, shards: int) -> "SharedCap":
        """The first one: what each shard uses as long as there is none."""
        shares = (even_share(cap, index, shards) for index in range(shards))
        return cls(key, 1, cap, tuple(Grant(share, share, 1) for share in shares))

    @property
    def free(self) -> int:
        """What nobody may be using: it can be granted; negative where the cap was lowered."""
        return self.cap - sum(grant.granted for grant in self.grants)

    def shares(self) -> Sequence[Share]:
        """What each shard's own document has to say."""
        return [Share(self.key, grant.since, grant.target, grant.is_shrinking) for grant in self.grants]
