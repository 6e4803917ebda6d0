"""Why a job waits: every rule that holds it back now, and its position among the jobs that nothing holds back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hascheduler.model.policy import Criterion
from hascheduler.model.values.instants import WallMs

Figure = int | str | list[str]


class BlockReason(StrEnum):
    """What can hold a job back, in the order in which it is checked. The API sends these values."""

    NOT_LEADING = "not_leading"
    """No replica leads at the moment."""
    PAUSED = "paused"
    """Everything is paused."""
    TRANSPORT = "transport"
    """The broker accepts no messages."""
    IN_DOUBT = "in_doubt"
    """Its document was not as expected; the job is being read again."""
    CANCELLING = "cancelling"
    """It is about to be cancelled."""
    DEPENDENCY = "dependency"
    """Another job has to end or succeed first."""
    NOT_BEFORE = "not_before"
    BACKOFF = "backoff"
    """Its last attempt failed, and the next one starts later."""
    TOTAL = "max_concurrency"
    TIER = "tier"
    DEFINITION = "definition"
    RATE = "rate_limit"
    TENANT = "tenant"
    CONFLICT = "conflict"
    KEY = "key"
    """The limit for its value of a key is reached, or its values have not been read yet."""
    SERIAL = "serial"
    """Another job of its schedule has not ended."""
    UNSCHEDULABLE = "unschedulable"
    """No live processor could ever run it."""
    NO_SLOT = "no_slot"
    """The processors that could run it have no free slot, or too few resources."""


@dataclass(frozen=True, slots=True)
class Block:
    """A rule that holds the job back.

    ``because`` is a sentence with the ``numbers`` in it, ``unblocked_by`` names what would end it. ``until_ms`` is when
    it ends without another event, if that is known.
    """

    rule: BlockReason
    because: str
    unblocked_by: str
    numbers: Mapping[str, Figure] = field(default_factory=dict)
    until_ms: WallMs | None = None


@dataclass(frozen=True, slots=True)
class CriterionValue:
    """The value of one criterion for the job, and for the one that goes first, in readable form (``20 s``)."""

    criterion: Criterion
    value: str
    first: str


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position among the jobs that could go, of which ``first`` is next.

    ``ahead`` jobs go before it (at least that number, unless ``exact``). ``deciding`` is the first criterion in which
    the job and ``first`` differ; None if the job is the first itself.
    """

    ahead: int
    exact: bool
    first: str
    deciding: Criterion | None
    criteria: tuple[CriterionValue, ...]


@dataclass(frozen=True, slots=True)
class Overdue:
    """The running attempt that timed out at ``since_ms``; its thread goes on, and holds its slot and its locks."""

    attempt: int
    since_ms: WallMs | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one job; ``state`` is ``waiting``, ``dispatched`` or ``running``, as this replica knows it.

    A job that waits has ``blocks``, unless nothing holds it back. Without blocks, or with only those that hold back all
    jobs (slots, the cap on all), it has a ``position`` among the jobs in the same case: it goes when those ahead of it
    have gone.
    """

    job_id: str
    state: str
    processor: str | None = None
    blocks: tuple[Block, ...] = ()
    position: QueuePosition | None = None
    overdue: Overdue | None = None
