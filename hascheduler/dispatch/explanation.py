"""Why a job waits: every rule that holds it back now, and where it stands among those that nothing holds back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hascheduler.model.instants import WallMs
from hascheduler.model.policy import Criterion

Figure = int | str | list[str]


class BlockReason(StrEnum):
    """Each can hold a job back; in the order in which they are looked at."""

    NOT_LEADING = "not_leading"
    """Nobody decides at the moment."""
    TRANSPORT = "transport"
    """The broker takes no messages."""
    IN_DOUBT = "in_doubt"
    """The database did not show what was expected; the job is being read again."""
    CANCELLING = "cancelling"
    """It is to be cancelled."""
    DEPENDENCY = "dependency"
    """Another job has to succeed first."""
    NOT_BEFORE = "not_before"
    BACKOFF = "backoff"
    """Its last attempt failed, and the next one comes later."""
    TOTAL = "max_concurrency"
    TIER = "tier"
    DEFINITION = "definition"
    RATE = "rate_limit"
    TENANT = "tenant"
    CONFLICT = "conflict"
    SERIAL = "serial"
    """A job of its schedule has not ended."""
    UNSCHEDULABLE = "unschedulable"
    """No processor that lives could ever run it."""
    NO_SLOT = "no_slot"
    """Those that could run it have no slot or not the resources left."""


@dataclass(frozen=True, slots=True)
class Block:
    """``because`` is a sentence with the ``numbers`` in it, ``unblocked_by`` says what would end it.

    ``until_ms`` is when it ends by itself, where that is known.
    """

    rule: BlockReason
    because: str
    unblocked_by: str
    numbers: Mapping[str, Figure] = field(default_factory=dict)
    until_ms: WallMs | None = None


@dataclass(frozen=True, slots=True)
class CriterionValue:
    """What one criterion makes of the job, and of the one that goes first; as people write it (``7/12``, ``20 s``)."""

    criterion: Criterion
    value: str
    first: str


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """``ahead`` such jobs go before it (at least so many, where not ``exact``); ``first`` is next.

    ``deciding`` is the first criterion in which the two differ; None: it is the first itself.
    """

    ahead: int
    exact: bool
    first: str
    deciding: Criterion | None
    worths: tuple[CriterionValue, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """``state`` is ``waiting``, ``dispatched`` or ``running``, as this replica knows it.

    A job that waits has ``blocks``, or nothing holds it back. Where that is so, or only what holds everybody back
    (slots, the cap on all), it has a ``standing`` among those of whom the same is true: it goes when those before it
    have gone.
    """

    job_id: str
    state: str
    processor: str | None = None
    blocks: tuple[Block, ...] = ()
    standing: QueuePosition | None = None
