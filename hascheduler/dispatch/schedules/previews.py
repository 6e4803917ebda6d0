"""The fires to come of a trigger, what an edit changes about them, and how a preview shows them.

A preview shows each fire in UTC and on the clock of the trigger's zone, and what the clock changes of the next 400 days
do to the trigger. If a caller can make the work long, the function is a generator that yields after every few times,
and returns the result.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import Any, TypeVar

from hascheduler.dispatch.schedules.backfill import count_in_steps
from hascheduler.dispatch.schedules.trigger_periods import undecided
from hascheduler.model.values.instants import LATEST_MS, WallMs, format_instant
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.trigger import Trigger
from hascheduler.triggers import (
    ClockChange,
    Upcoming,
    clock_changes,
    due_ms,
    is_excluded,
    next_firing,
    remarks,
    upcoming,
)
from hascheduler.triggers.local_order import pieces
from hascheduler.triggers.zones import zone_of

PREVIEW_COUNT_MAX = 1_000
"""The most nominal times that a preview shows."""

_CLOCK_CHANGES_WITHIN_MS = 400 * 86_400_000
_COMPARED_MAX = 1_000
_STEP = 10
"""Times in a slice: with the jitter of ten patterns, half a millisecond each."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class FiresToCome:
    """The fires of ``schedule`` after ``after_ms``, before which ``fired`` of its times fired."""

    schedule: str
    trigger: Trigger
    after_ms: WallMs
    fired: int

    def __iter__(self) -> Iterator[Upcoming]:
        return upcoming(self.schedule, self.trigger, self.after_ms, fired=self.fired)

    def first(self, count: int) -> Generator[None, None, list[Upcoming]]:
        found: list[Upcoming] = []
        for fire in islice(self, count):
            found.append(fire)
            if len(found) % _STEP == 0:
                yield
        return found

    def starting_at(self, from_ms: int) -> Generator[None, None, "FiresToCome"]:
        """Return the fires from ``from_ms`` on, if all before them fire."""
        fired, max_fires = self.fired, self.trigger.max_fires
        if max_fires is not None:
            fired += yield from count_in_steps(self.trigger, self.after_ms + 1, from_ms - 1, max_fires - fired)
        return replace(self, after_ms=WallMs(from_ms - 1), fired=fired)


@dataclass(frozen=True, slots=True)
class FiresChanged:
    """The times through ``until_ms`` that fire only after an edit, and those that fire only before it."""

    added: Sequence[Upcoming]
    removed: Sequence[Upcoming]
    until_ms: WallMs


def next_fire(schedule: ScheduleRef) -> Upcoming | None:
    """Return the next undecided nominal time that fires; None if none does, or the schedule is paused."""
    if schedule.paused_at_ms is None:
        # Through the last edit; the times after it have one trigger.
        earlier = undecided(schedule, schedule.cursor_ms, schedule.since_ms, schedule.offsets) if schedule.past else ()
        for times in earlier:
            first_ms = times.first() if times.verdict is None and not times.is_exhausted(schedule.tally) else None
            if first_ms is not None:
                return Upcoming(first_ms, due_ms(schedule.name, times.trigger, first_ms))
        trigger = schedule.trigger
        if trigger.max_fires is None or schedule.tally.fired < trigger.max_fires:
            cursor_ms, offsets = schedule.cursor_ms, schedule.offsets
            for piece, after_ms, until_ms in pieces(trigger, schedule.since_ms, cursor_ms, offsets, LATEST_MS):
                first_ms = next_firing(piece, after_ms)
                if first_ms is not None and first_ms <= until_ms:
                    return Upcoming(first_ms, due_ms(schedule.name, piece, first_ms))
    return None


def compare_fires(present: FiresToCome, edited: FiresToCome, count: int) -> Generator[None, None, FiresChanged]:
    """Compare through the later of the ``count``-th times of both, with at most a thousand times of each."""
    before = yield from present.first(_COMPARED_MAX)
    after = yield from edited.first(_COMPARED_MAX)
    both = (before, after)
    last = [fires[:count][-1].nominal_ms for fires in both if fires]
    until_ms = max(last, default=edited.after_ms)
    before, after = ([fire for fire in fires if fire.nominal_ms <= until_ms] for fires in both)
    # A list that was cut is complete only through its last time.
    until_ms = min([until_ms, *(fires[-1].nominal_ms for fires in (before, after) if len(fires) == _COMPARED_MAX)])
    firing = [{fire.nominal_ms for fire in fires if not fire.excluded} for fires in (before, after)]
    changed_ms = {at_ms for at_ms in firing[0] ^ firing[1] if at_ms <= until_ms}
    added, removed = ([each for each in fires if each.nominal_ms in changed_ms] for fires in (after, before))
    return FiresChanged(added, removed, until_ms)


def make_preview(
    schedule: str, trigger: Trigger, after_ms: WallMs, fires: Sequence[Upcoming]
) -> Generator[None, None, dict[str, Any]]:
    """Return ``fires``, and the clock changes of the 400 days after ``after_ms``, as fields of a `PreviewResponse`.

    The name ``schedule`` determines the jitter.
    """
    until_ms = min(after_ms + _CLOCK_CHANGES_WITHIN_MS, LATEST_MS - 1)
    changes: list[dict[str, Any]] = []
    for change in clock_changes(trigger, after_ms, until_ms):
        yield
        changes.append((yield from _local_change(schedule, trigger, change)))
    yield
    return {
        "fires": local_fires(fires, trigger),
        "clock_changes": changes,
        "timezone": trigger.zone,
        "warnings": list(remarks(trigger)),
    }


def finished(steps: Generator[None, None, Found]) -> Found:
    """Run ``steps`` to the end, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Found = end.value
            return found


def local_fires(fires: Sequence[Upcoming], trigger: Trigger) -> list[dict[str, Any]]:
    """Return each fire in UTC, with jitter (``due_at``), and on the clock of the trigger's zone (``local``)."""
    zone = zone_of(trigger.zone)
    found = []
    for fire in fires:
        local = (_EPOCH + timedelta(milliseconds=fire.nominal_ms)).astimezone(zone)
        found.append(
            {
                "nominal_at": format_instant(fire.nominal_ms),
                "due_at": format_instant(fire.due_ms),
                "local": local.isoformat(timespec="milliseconds" if fire.nominal_ms % 1_000 else "seconds"),
                "weekday": f"{local:%a}",
                "excluded": fire.excluded,
                "note": fire.note,
            }
        )
    return found


def _local_change(schedule: str, trigger: Trigger, change: ClockChange) -> Generator[None, None, dict[str, Any]]:
    fires: list[Upcoming] = []
    for nominal_ms in change.nominal_ms:
        due, excluded = due_ms(schedule, trigger, nominal_ms), is_excluded(trigger, nominal_ms)
        fires.append(Upcoming(nominal_ms, due, excluded))
        if len(fires) % _STEP == 0:
            yield
    return {
        "at": format_instant(change.at_ms),
        "kind": change.kind,
        "offset_before": _offset(change.offset_before_s),
        "offset_after": _offset(change.offset_after_s),
        "explanation": change.explanation,
        "fires": local_fires(fires, trigger),
    }


def _offset(seconds: int) -> str:
    """Return ``+01:00``; with seconds, if the zone once had them."""
    return _EPOCH.astimezone(timezone(timedelta(seconds=seconds))).isoformat()[19:]
