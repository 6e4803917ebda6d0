"""A pause: what people have paused, since when, and why. It lasts until they end it, through changes of the leader.

There is one document for each paused thing: everything, or the processors of one name, which are then *drained*.
"""

from collections.abc import Mapping

from pydantic import Field

from hascheduler.schema.forms import Flag, Instant, Integer
from hascheduler.schema.noun import Part

EVERYTHING = "everything"
"""The id of the pause of all schedules and, unless it is for ``schedules_only``, of all dispatches."""
_OF_PROCESSORS = "processor:"
DRAINS_MAX = 1_000
"""The most processor names that may be drained at once."""
DRAIN_FORGOTTEN_AFTER_MS = 7 * 86_400_000
"""After this time, a drain of a name that no processor has is deleted when another one is drained."""


def drain_id(processor_name: str) -> str:
    return f"{_OF_PROCESSORS}{processor_name}"


def drained_name(pause_id: str) -> str | None:
    """Return the name whose processors the pause with that id drains; None if it pauses something else."""
    return pause_id.removeprefix(_OF_PROCESSORS) if pause_id.startswith(_OF_PROCESSORS) else None


class DrainedResponse(Part):
    """A drain: since when, by whom and why."""

    since_ms: Instant = Field(examples=["2030-01-01T00:00:00.000Z"])
    """When the drain began"""
    by: str = Field(examples=["deployer"])
    """The name of the token that asked for it; `anonymous` without a token"""
    because: str | None = Field(default=None, examples=["its node is being replaced"])
    """The reason given; null: none"""


class PauseResponse(DrainedResponse):
    """The pause of everything."""

    schedules_only: Flag = Field(default=False, examples=[False])
    """True if only schedules are paused and waiting jobs are dispatched"""


class StandingPause(PauseResponse):
    """A pause as it is stored."""

    id_field = "id"
    always_stored = ("rev",)

    id: str
    rev: Integer = 0


def drains(pauses: Mapping[str, StandingPause]) -> Mapping[str, StandingPause]:
    """Return the pauses of processors, by the drained names, in order."""
    found = ((drained_name(id), pause) for id, pause in sorted(pauses.items()))
    return {name: pause for name, pause in found if name is not None}
