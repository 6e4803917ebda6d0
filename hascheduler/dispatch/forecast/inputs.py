"""What a forecast is made of: a picture of one replica's mirror and core at one instant."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hascheduler.model.calendar import Calendar
from hascheduler.model.definition import DEFAULT_COST_MS_DEFAULT, Definition
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.values.instants import WallMs


class RunningJob(NamedTuple):
    """A job that holds a slot; ``started_at_ms`` None: it was dispatched and has not begun."""

    definition: str
    target: str
    started_at_ms: WallMs | None


class OpenSlots(NamedTuple):
    """``slots`` of live processors that take jobs of ``definitions`` and are not drained."""

    definitions: frozenset[str]
    slots: int


@dataclass(frozen=True, slots=True)
class ForecastInputs:
    """``learned`` gives the learned cost of a definition and a target, or None; ``waiting`` the jobs that wait now, by
    definition. ``slots_max`` is how many jobs may run in all; None: no cap. ``schedules_paused`` and
    ``dispatch_paused``: people paused everything; the forecast is what would be if they resumed it now."""

    now: WallMs
    schedules: Sequence[ScheduleRef]
    definitions: Mapping[str, Definition]
    calendars: Mapping[str, Calendar]
    slots: Sequence[OpenSlots]
    running: Sequence[RunningJob]
    waiting: Mapping[str, int]
    learned: Callable[[str, str], int | None]
    slots_max: int | None = None
    schedules_paused: bool = False
    dispatch_paused: bool = False

    def cost_ms(self, definition: str, target: str) -> int:
        """What a job is expected to take, at least 1."""
        learned = self.learned(definition, target)
        if learned is not None:
            return max(learned, 1)
        known = self.definitions.get(definition)
        return max(DEFAULT_COST_MS_DEFAULT if known is None else known.default_cost_ms, 1)
