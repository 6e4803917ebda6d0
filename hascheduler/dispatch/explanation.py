"""Why a job waits: every rule that holds it back now, and where it stands among those that nothing holds back."""

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
    """People have paused everything."""
    TRANSPORT = "transport"
    """The broker takes no messages."""
    IN_DOUBT = "in_doubt"
    """Its document was not as expected; the job is being read again."""
    CANCELLING = "cancelling"
    """It is about to be cancelled."""
    DEPENDENCY = "dependency"
    """Another job has to end or succeed first."""
    NOT_BEFORE = "not_before"
    BACKOFF = "backoff"
    """Its last attempt failed, and the next one comes later."""
    TOTAL = "max_concurrency"
    TIER = "tier"
    DEFINITION = "definition"
    RATE = "rate_limit"
    TENANT = "tenant"
    CONFLICT = "conflict"
    KEY = "key"
    """As many jobs with its value at a key run as may, or started lately; or it is not read yet which those are."""
    SERIAL = "serial"
    """A job of its schedule has not ended."""
    UNSCHEDULABLE = "unschedulable"
    """No live processor could ever run it."""
    NO_SLOT = "no_slot"
    """The processors that could run it have no free slot, or not the resources."""


@dataclass(frozen=True, slots=True)
class Block:
    """``because`` is a sentence with the ``numbers`` in it, ``unblocked_by`` says what would end it.

    ``until_ms`` is when it ends without another event, where that is known.
    """

    rule: BlockReason
    because: str
    unblocked_by: str
    numbers: Mapping[str, Figure] = field(default_factory=dict)
    until_ms: WallMs | None = None


@dataclass(frozen=True, slots=True)
class CriterionValue:
    """The value of one criterion for the job, and for the one that goes first; as people write it (``20 s``)."""

    criterion: Criterion
    value: str
    first: str


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Its place among the jobs that could go: ``ahead`` go before it (at least, where not ``exact``); ``first`` is
    next.

    ``deciding`` is the first criterion in which the job and ``first`` differ; None: it is the first itself.
    """

    ahead: int
    exact: bool
    first: str
    deciding: Criterion | None
    criteria: tuple[CriterionValue, ...]


@dataclass(frozen=True, slots=True)
class Overdue:
    """The running attempt timed out at ``since_ms``; its thread goes on, and holds its slot and its locks."""

    attempt: int
    since_ms: WallMs | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """``state`` is ``waiting``, ``dispatched`` or ``running``, as this replica knows it.

    A job that waits has ``blocks``, unless nothing holds it back. Without blocks, or with only those that hold all jobs
    back (slots, the cap on all), it has a ``position`` among the jobs of which the same is true: it goes when those
    before it have gone.
    """

    job_id: str
    state: str
    processor: str | None = None
    blocks: tuple[Block, ...] = ()
    position: QueuePosition | None = None
    overdue: Overdue | None = None
