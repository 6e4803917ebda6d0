"""Check that a trigger makes sense, once, when a schedule is created or edited.

A mistake is an `InvalidInput` with the field's path as in the HTTP body. Every search here is bounded.

Each pattern of a union fires at most once a minute, and each interval at the same times of every day: so the times of a
century can be counted, and ten patterns together fire no more often than one pattern may.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import format_duration, format_instant
from hascheduler.schema.trigger import (
    EVERY_MIN_MS,
    PARTS_MAX,
    PARTS_MIN,
    TIMES_MAX,
    AnyOf,
    Cron,
    Interval,
    Once,
    Single,
    Times,
    Trigger,
)
from hascheduler.triggers import cron
from hascheduler.triggers.due import CALENDARS_USED_MAX, next_firing
from hascheduler.triggers.expressions import walls_of
from hascheduler.triggers.nominal import next_nominal
from hascheduler.triggers.zones import zone_of

WINDOWS_MAX = 100
JITTER_MAX_MS = 86_400_000
LISTED_MAX = 1_000
"""How many instants all lists of a union may hold together."""
_GAPS_LOOKED_AT = 100
_MINUTE_MS, _DAY_MS = 60_000, 86_400_000

Path = tuple[str | int, ...]


def check_trigger(trigger: Trigger, path: Path = ()) -> None:
    """Raise `InvalidInput` at ``path`` and the wrong field if the trigger makes no sense."""
    try:
        _check_pattern(trigger)
        _check_bounds(trigger)
        _check_windows(trigger)
        _check_calendars(trigger)
        _check_that_it_fires(trigger)
        _check_jitter(trigger)
    except InvalidInput as error:
        raise InvalidInput((*path, *error.path), error.problem, error.expected) from None


def _check_pattern(trigger: Trigger) -> None:
    if isinstance(trigger.pattern, AnyOf):
        _check_parts(trigger.pattern.of)
    else:
        _check_part(trigger.pattern)


def _check_parts(parts: Sequence[Single]) -> None:
    if not PARTS_MIN <= len(parts) <= PARTS_MAX:
        raise InvalidInput(("of",), f"{len(parts)} patterns", f"{PARTS_MIN} to {PARTS_MAX}")
    for place, part in enumerate(parts):
        try:
            _check_part(part)
            _check_how_often(part)
            if next_nominal(Trigger(part), -1) is None:
                raise _never(Trigger(part))
        except InvalidInput as error:
            raise InvalidInput(("of", place, *error.path), error.problem, error.expected) from None
        if part in parts[:place]:
            raise InvalidInput(("of", place), f"repeats of[{parts.index(part)}]", "each pattern once")
    listed = sum(len(part.at_ms) if isinstance(part, Times) else isinstance(part, Once) for part in parts)
    if listed > LISTED_MAX:
        raise InvalidInput(("of",), f"{listed} listed instants", f"at most {LISTED_MAX} in all of its patterns")


def _check_how_often(part: Single) -> None:
    match part:
        case Interval(every_ms) if every_ms < _MINUTE_MS or (every_ms % _DAY_MS and _DAY_MS % every_ms):
            expected = "1m to 1d that divides a day evenly, such as 10m or 8h, or whole days"
            raise InvalidInput(
                ("every",), f"{format_duration(every_ms)} can't be combined with other patterns", expected
            )
        case Cron(expression) if walls_of(expression).seconds_named > 1:
            problem = f"{expression[:64]!r} names several seconds of a minute and can't be combined with other patterns"
            raise InvalidInput(("expression",), problem, "one second at most")


def _check_part(pattern: Single) -> None:
    match pattern:
        case Interval(every_ms):
            if every_ms < EVERY_MIN_MS:
                problem = f"{format_duration(every_ms)} is too short"
                raise InvalidInput(("every",), problem, f"at least {format_duration(EVERY_MIN_MS)}")
        case Cron() as pattern:
            cron.check(pattern)
        case Times(at_ms):
            if not 1 <= len(at_ms) <= TIMES_MAX:
                raise InvalidInput(("at",), f"{len(at_ms)} times", f"1 to {TIMES_MAX}")
            for place, (before, after) in enumerate(pairwise(at_ms), 1):
                if after <= before:
                    problem = f"{format_instant(after)} is not after the instant before it"
                    raise InvalidInput(("at", place), problem, "ascending instants, each once")
        case Once():
            pass


def _check_bounds(trigger: Trigger) -> None:
    start_ms, end_ms = trigger.start_at_ms, trigger.end_at_ms
    if start_ms is not None and end_ms is not None and end_ms < start_ms:
        raise InvalidInput(("end_at",), f"{format_instant(end_ms)} is before start_at", "an instant after start_at")
    if trigger.max_fires is not None and trigger.max_fires < 1:
        raise InvalidInput(("max_fires",), f"{trigger.max_fires} is too small", "at least 1")


def _check_windows(trigger: Trigger) -> None:
    windows = trigger.exclude
    if len(windows) > WINDOWS_MAX:
        raise InvalidInput(("exclude",), f"{len(windows)} windows", f"at most {WINDOWS_MAX}")
    for place, window in enumerate(windows):
        if window.to_ms <= window.from_ms:
            raise InvalidInput(("exclude", place, "to"), "not after from", "an instant after from")
    for place, (before, after) in enumerate(pairwise(windows), 1):
        if after.from_ms < before.to_ms:
            problem = "begins before the previous window ends"
            raise InvalidInput(("exclude", place, "from"), problem, "ascending windows that do not overlap")


def _check_calendars(trigger: Trigger) -> None:
    use = trigger.calendars
    if use is None:
        return
    for field, names in (("only", use.only), ("except", use.excluding)):
        if len(names) > CALENDARS_USED_MAX:
            raise InvalidInput(("calendars", field), f"{len(names)} calendars", f"at most {CALENDARS_USED_MAX}")
    if not use.names:
        raise InvalidInput(("calendars",), "names no calendar", "names in only or except, or no calendars field")
    if use.timezone is None and len(trigger.zones) > 1:
        problem = f"missing, and the cron expressions have several zones: {', '.join(trigger.zones)[:128]}"
        raise InvalidInput(("calendars", "timezone"), problem, "the time zone of the calendar days")
    if use.timezone is not None:
        try:
            zone_of(use.timezone)
        except InvalidInput as error:
            raise InvalidInput(("calendars", "timezone"), error.problem, error.expected) from None


def _check_that_it_fires(trigger: Trigger) -> None:
    trigger = replace(trigger, calendars=None)  # calendars change: what they leave out today is not a mistake
    if next_nominal(trigger, -1) is None:
        raise _never(trigger)
    if next_firing(trigger, -1) is None:
        raise InvalidInput(("exclude",), "excludes all nominal times", "windows that leave some times")


def _never(trigger: Trigger) -> InvalidInput:
    unbounded = Trigger(trigger.pattern)
    if next_nominal(unbounded, -1) is not None:
        field = "end_at" if trigger.end_at_ms is not None else "start_at"
        return InvalidInput(
            (field,), "would never fire: no nominal time is within the bounds", "bounds with a nominal time"
        )
    match trigger.pattern:
        case Cron(expression):
            problem = f"{expression[:64]!r} would never fire: it names no day that exists"
            return InvalidInput(("expression",), problem, "an expression with a time before 2100")
        case Interval():
            return InvalidInput(("every",), "would never fire", "an interval with a time from 1970 to 2099")
        case AnyOf():
            return InvalidInput(("of",), "would never fire", "a pattern with a time from 1970 to 2099")
        case _:
            return InvalidInput(("at",), "would never fire", "an instant from 1970 to 2099")


def _check_jitter(trigger: Trigger) -> None:
    jitter_ms = trigger.jitter_ms
    if not jitter_ms:
        return
    if jitter_ms < 0:
        raise InvalidInput(("jitter",), "must not be negative", "0s or longer")
    if jitter_ms > JITTER_MAX_MS:
        raise InvalidInput(("jitter",), f"{format_duration(jitter_ms)} is too long", "at most 1d")
    shortest_ms = shortest_gap_ms(trigger)
    if shortest_ms is not None and jitter_ms >= shortest_ms:
        of = " of one pattern" if isinstance(trigger.pattern, AnyOf) else ""
        problem = f"{format_duration(jitter_ms)} is not shorter than the time between two fires{of}"
        raise InvalidInput(("jitter",), problem, f"less than {format_duration(shortest_ms)}")


def shortest_gap_ms(trigger: Trigger) -> int | None:
    """Return the shortest time between two fires of any one pattern; None if no pattern fires twice."""
    found = (_shortest_gap_of_part_ms(replace(trigger, pattern=part)) for part in trigger.parts)
    return min((gap_ms for gap_ms in found if gap_ms is not None), default=None)


def shortest_gap_of_rules_ms(trigger: Trigger) -> int | None:
    """Return the shortest time between the next fires of its cron expressions and intervals; None without any."""
    rules = tuple(part for part in trigger.parts if isinstance(part, Cron | Interval))
    if not rules:
        return None
    return _shortest_gap_of_part_ms(replace(trigger, pattern=rules[0] if len(rules) == 1 else AnyOf(rules)))


def _shortest_gap_of_part_ms(trigger: Trigger) -> int | None:
    match trigger.pattern:
        case Interval(every_ms):
            return every_ms
        case Times(at_ms):
            return min((after - before for before, after in pairwise(at_ms)), default=None)
        case Once():
            return None
        case Cron() | AnyOf():
            return _shortest_gap_of_next_ms(trigger)


def _shortest_gap_of_next_ms(trigger: Trigger) -> int | None:
    """Return the shortest gap in its next hundred times: four days of an hourly one, a century of a yearly one."""
    shortest: int | None = None
    before = next_nominal(trigger, -1)
    for _ in range(_GAPS_LOOKED_AT):
        after = None if before is None else next_nominal(trigger, before)
        if before is None or after is None:
            break
        shortest = after - before if shortest is None else min(shortest, after - before)
        before = after
    return shortest
