"""A preview of a trigger, for people: its next times, and the effect of clock changes on them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from hascheduler.model.trigger import Cron, Trigger
from hascheduler.model.values.instants import WallMs
from hascheduler.triggers.days import day_part
from hascheduler.triggers.due import due_ms, is_excluded
from hascheduler.triggers.expressions import is_hourly, walls_of
from hascheduler.triggers.nominal import latest_nominal, next_nominal
from hascheduler.triggers.zones import DAY_S, OffsetChange, transitions, zone_of

_NOMINAL_SHOWN_MAX = 48


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A nominal time to come; ``excluded`` ones do not fire. ``note`` says what is odd about its wall time."""

    nominal_ms: WallMs
    due_ms: WallMs
    excluded: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ClockChange:
    """The zone's clock is changed at ``at_ms``; ``nominal_ms`` are the times of that local day, a few of many."""

    at_ms: WallMs
    offset_before_s: int
    offset_after_s: int
    kind: str
    explanation: str
    nominal_ms: tuple[WallMs, ...]


def upcoming(schedule: str, trigger: Trigger, after_ms: int, *, fired: int = 0) -> Iterator[Upcoming]:
    """The times after ``after_ms``; it ends with the last of ``max_fires``, of which ``fired`` have been."""
    left = None if trigger.max_fires is None else trigger.max_fires - fired
    nominal_ms = next_nominal(trigger, after_ms)
    while nominal_ms is not None and (left is None or left > 0):
        excluded = is_excluded(trigger, nominal_ms)
        due = due_ms(schedule, trigger, nominal_ms)
        yield Upcoming(nominal_ms, due, excluded, _note(trigger, nominal_ms))
        if left is not None and not excluded:
            left -= 1
        nominal_ms = next_nominal(trigger, nominal_ms)


def clock_changes(trigger: Trigger, after_ms: int, until_ms: int) -> Iterator[ClockChange]:
    """The changes of the clocks of its cron expressions in that time, and what they do to those; else none."""
    after_s, until_s = after_ms // 1_000, until_ms // 1_000
    changes = [(change, zone) for zone in trigger.zones for change in transitions(zone_of(zone), after_s, until_s)]
    for change, zone in sorted(changes, key=lambda change: change[0].at_s):
        yield ClockChange(
            WallMs(change.at_s * 1_000),
            change.offset_before_s,
            change.offset_after_s,
            "gap" if change.is_gap else "fold",
            _explanation(trigger, zone, change),
            tuple(_of_that_day(trigger, change)),
        )


def _note(trigger: Trigger, nominal_ms: int) -> str | None:
    """Which calendar leaves the day out; at a clock change, which wall time the time stands for, or which of two."""
    left_out_by = None if trigger.calendars is None else day_part(trigger, nominal_ms).left_out_by
    if left_out_by is not None and trigger.calendars is not None:
        return f"the day is {'not ' if left_out_by in trigger.calendars.only else ''}in {left_out_by}"
    crons = [part for part in trigger.parts if isinstance(part, Cron)]
    if len(trigger.parts) > 1:  # those that name it
        crons = [cron for cron in crons if next_nominal(Trigger(cron), nominal_ms - 1) == nominal_ms]
    notes = (_note_of(cron, nominal_ms) for cron in crons)
    return next((note for note in notes if note is not None), None)


def _note_of(cron: Cron, nominal_ms: int) -> str | None:
    zone, at_s = zone_of(cron.timezone), nominal_ms // 1_000
    for change in transitions(zone, at_s - DAY_S, at_s + DAY_S):
        hourly = is_hourly(cron.expression)
        if change.is_gap and change.at_s == at_s and not hourly:
            missing = _missing(cron, change)
            if missing:
                return f"for {missing}, which {'does' if ' ' not in missing else 'do'} not exist that day"
        if not change.is_gap:
            shift_s = change.offset_before_s - change.offset_after_s
            if change.at_s - shift_s <= at_s < change.at_s:
                return "this wall time comes twice: the first" + ("" if hourly else ", and it fires only then")
            if hourly and change.at_s <= at_s < change.at_s + shift_s:
                return "this wall time comes twice: the second"
    return None


def _explanation(trigger: Trigger, zone: str, change: OffsetChange) -> str:
    day = f"{_moment(change.wall_before_s):%a %d %b %Y}"
    moves = f"the clock {f'of {zone} ' if len(trigger.zones) > 1 else ''}goes"
    begins = f"{day}: {moves} from {_hand(change.wall_before_s)} to {_reached(change)}"
    crons = [part for part in trigger.parts if isinstance(part, Cron) and part.timezone == zone]
    if len(trigger.parts) == 1:
        return f"{begins}; {_effect(crons[0], change)}"
    # Of several, each with its expression; those that the change does nothing to are left out.
    told = [f"{cron.expression!r}: {_effect(cron, change)}" for cron in crons if _is_met(cron, change)]
    return "; ".join([begins, *(told or ["none of its times lies in between or comes twice"])])


def _is_met(cron: Cron, change: OffsetChange) -> bool:
    """Whether one of its wall times does not exist, or comes twice."""
    walls_s = sorted((change.wall_before_s - 1, change.wall_after_s - 1))
    return walls_of(cron.expression).count(*walls_s) > 0


def _effect(cron: Cron, change: OffsetChange) -> str:
    hourly = is_hourly(cron.expression)
    if change.is_gap:
        if hourly:
            return "it keeps real time, so nothing is made up for the wall times in between"
        missing = _missing(cron, change)
        if not missing:
            return "none of its times lies in between"
        verb = "does" if " " not in missing else "do"
        return f"{missing} {verb} not exist, it fires once, right after, at {_reached(change)}"
    walls = walls_of(cron.expression)
    twice = walls.count(change.wall_after_s - 1, change.wall_before_s - 1)
    if not twice:
        return "none of its times comes twice"
    first = walls.after(change.wall_after_s - 1)
    assert first is not None
    which = _hand(first) if twice == 1 else f"{_hand(first)} and {twice - 1} more"
    verb = "comes" if twice == 1 else "come"
    how = "it keeps real time and fires both times" if hourly else "it fires the first time only"
    return f"{which} {verb} twice, {how}"


def _missing(cron: Cron, change: OffsetChange) -> str:
    """The wall times that the gap swallows: "02:30", or "02:00 and 5 more"."""
    walls = walls_of(cron.expression)
    count = walls.count(change.wall_before_s - 1, change.wall_after_s - 1)
    first = walls.after(change.wall_before_s - 1)
    if not count or first is None:
        return ""
    return _hand(first) if count == 1 else f"{_hand(first)} and {count - 1} more"


def _of_that_day(trigger: Trigger, change: OffsetChange) -> Iterator[WallMs]:
    """Of the days that the wall times of the change lie in; where there are many, those nearest to it."""
    last_s = change.wall_after_s if change.is_gap else change.wall_before_s - 1
    first_s = min(change.wall_before_s, change.wall_after_s)
    begins_s = first_s - first_s % DAY_S - change.offset_before_s
    ends_ms = (last_s - last_s % DAY_S + DAY_S - change.offset_after_s) * 1_000
    nominal_ms: int | None = change.at_s * 1_000
    for _ in range(_NOMINAL_SHOWN_MAX // 2):
        earlier = latest_nominal(trigger, (nominal_ms or 0) - 1)
        if earlier is None or earlier < begins_s * 1_000:
            break
        nominal_ms = earlier
    nominal_ms = next_nominal(trigger, (nominal_ms or 0) - 1)
    shown = 0
    while nominal_ms is not None and nominal_ms < ends_ms and shown < _NOMINAL_SHOWN_MAX:
        yield WallMs(nominal_ms)
        shown += 1
        nominal_ms = next_nominal(trigger, nominal_ms)


def _moment(wall_s: int) -> datetime:
    return datetime.fromtimestamp(wall_s, UTC)


def _reached(change: OffsetChange) -> str:
    """What the clock shows after the change, with the day if that is another one."""
    if change.wall_before_s // DAY_S == change.wall_after_s // DAY_S:
        return _hand(change.wall_after_s)
    return f"{_hand(change.wall_after_s)} on {_moment(change.wall_after_s):%a %d %b}"


def _hand(wall_s: int) -> str:
    moment = _moment(wall_s)
    return f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"
