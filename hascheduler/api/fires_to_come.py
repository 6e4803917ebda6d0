"""The nominal times that a trigger has from some instant on, and what an edit makes of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from hascheduler.api.counting import count_firing
from hascheduler.model.instants import WallMs
from hascheduler.model.trigger import Trigger
from hascheduler.triggers import Upcoming, upcoming

_COMPARED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class FiresToCome:
    """Those of ``schedule`` after ``after_ms``, before which ``fired`` times of it fired."""

    schedule: str
    trigger: Trigger
    after_ms: WallMs
    fired: int

    def __iter__(self) -> Iterator[Upcoming]:
        return upcoming(self.schedule, self.trigger, self.after_ms, fired=self.fired)

    def first(self, count: int) -> list[Upcoming]:
        return list(islice(self, count))

    def begun_at(self, from_ms: int) -> "FiresToCome":
        """Those from ``from_ms`` on, if all before them fire."""
        between = count_firing(self.trigger, self.after_ms + 1, from_ms - 1)
        return replace(self, after_ms=WallMs(from_ms - 1), fired=self.fired + between)


@dataclass(frozen=True, slots=True)
class Difference:
    """What fires through ``until_ms`` only after an edit, and what only before it."""

    added: Sequence[Upcoming]
    removed: Sequence[Upcoming]
    until_ms: WallMs


def compare(present: FiresToCome, edited: FiresToCome, count: int) -> Difference:
    """Through the later of the ``count``-th times of both, but of neither more than a thousand."""
    both = [[*fires.first(count)] for fires in (present, edited)]
    until_ms = max((fires[-1].nominal_ms for fires in both if fires), default=edited.after_ms)
    before, after = (_through(fires, until_ms) for fires in (present, edited))
    # One that was cut is known only through its last time.
    until_ms = min([until_ms, *(fires[-1].nominal_ms for fires in (before, after) if len(fires) == _COMPARED_MAX)])
    before_ms, after_ms = ({fire.nominal_ms for fire in fires if not fire.excluded} for fires in (before, after))
    return Difference(
        added=[fire for fire in after if _is_in(fire, after_ms - before_ms, until_ms)],
        removed=[fire for fire in before if _is_in(fire, before_ms - after_ms, until_ms)],
        until_ms=until_ms,
    )


def _through(fires: FiresToCome, until_ms: int) -> list[Upcoming]:
    return [fire for fire in islice(fires, _COMPARED_MAX) if fire.nominal_ms <= until_ms]


def _is_in(fire: Upcoming, times_ms: set[WallMs], until_ms: int) -> bool:
    return fire.nominal_ms in times_ms and fire.nominal_ms <= until_ms
