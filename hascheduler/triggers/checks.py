"""Whether a trigger makes sense: checked once, when a schedule is created or edited.

A mistake is an `InvalidInput` with the field's path as in the HTTP body. Every search here is bounded.
"""

from dataclasses import replace
from itertools import pairwise

from hascheduler.errors import InvalidInput
from hascheduler.model.durations import format_duration
from hascheduler.model.instants import format_instant
from hascheduler.model.trigger import Cron, Interval, Once, Times, Trigger
from hascheduler.triggers import cron
from hascheduler.triggers.days import CALENDARS_USED_MAX
from hascheduler.triggers.due import excluded_until
from hascheduler.triggers.interval import EVERY_MIN_MS
from hascheduler.triggers.nominal import next_nominal
from hascheduler.triggers.times import TIMES_MAX
from hascheduler.triggers.zones import zone_of

WINDOWS_MAX = 100
JITTER_MAX_MS = 86_400_000
_GAPS_LOOKED_AT = 100

Path = tuple[str | int, ...]


def check_trigger(trigger: Trigger, path: Path = ()) -> None:
    """`InvalidInput` at ``path`` and the field that is wrong."""
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
    match trigger.pattern:
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
                    problem = f"{format_instant(after)} does not come after the one before it"
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
            raise InvalidInput(("exclude", place, "to"), "it is not after from", "an instant after from")
    for place, (before, after) in enumerate(pairwise(windows), 1):
        if after.from_ms < before.to_ms:
            problem = "it begins before the window before it ends"
            raise InvalidInput(("exclude", place, "from"), problem, "ascending windows that do not overlap")


def _check_calendars(trigger: Trigger) -> None:
    use = trigger.calendars
    if use is None:
        return
    for field, names in (("only", use.only), ("except", use.excluding)):
        if len(names) > CALENDARS_USED_MAX:
            raise InvalidInput(("calendars", field), f"{len(names)} calendars", f"at most {CALENDARS_USED_MAX}")
    if not use.names:
        raise InvalidInput(("calendars",), "names no calendar", "names in only or except, or to be left out")
    if use.timezone is not None:
        try:
            zone_of(use.timezone)
        except InvalidInput as error:
            raise InvalidInput(("calendars", "timezone"), error.problem, error.expected) from None


def _check_that_it_fires(trigger: Trigger) -> None:
    trigger = replace(trigger, calendars=None)  # those change: what they leave out today is no mistake
    nominal_ms = next_nominal(trigger, -1)
    if nominal_ms is None:
        raise _never(trigger)
    # Each step passes a whole window, of which there are few.
    until_ms = excluded_until(trigger, nominal_ms)
    while until_ms is not None:
        nominal_ms = next_nominal(trigger, until_ms - 1)
        if nominal_ms is None:
            raise InvalidInput(("exclude",), "all of its times are excluded", "windows that leave some")
        until_ms = excluded_until(trigger, nominal_ms)


def _never(trigger: Trigger) -> InvalidInput:
    unbounded = Trigger(trigger.pattern)
    if next_nominal(unbounded, -1) is not None:
        field = "end_at" if trigger.end_at_ms is not None else "start_at"
        return InvalidInput((field,), "it would never fire: no time is within its bounds", "bounds that hold one")
    match trigger.pattern:
        case Cron(expression):
            problem = f"{expression[:64]!r} names no day that exists, so it would never fire"
            return InvalidInput(("expression",), problem, "an expression with a time before 2100")
        case Interval():
            return InvalidInput(("every",), "it would never fire", "an interval with a time from 1970 to 2099")
        case _:
            return InvalidInput(("at",), "it would never fire", "an instant from 1970 to 2099")


def _check_jitter(trigger: Trigger) -> None:
    jitter_ms = trigger.jitter_ms
    if not jitter_ms:
        return
    if jitter_ms < 0:
        raise InvalidInput(("jitter",), "it is negative", "0 or longer")
    if jitter_ms > JITTER_MAX_MS:
        raise InvalidInput(("jitter",), f"{format_duration(jitter_ms)} is too long", "at most 1d")
    shortest_ms = shortest_gap_ms(trigger)
    if shortest_ms is not None and jitter_ms >= shortest_ms:
        problem = f"{format_duration(jitter_ms)} is as long as the time between two fires, or longer"
        raise InvalidInput(("jitter",), problem, f"less than {format_duration(shortest_ms)}")


def shortest_gap_ms(trigger: Trigger) -> int | None:
    """Between two of its times; None where there are no two."""
    match trigger.pattern:
        case Interval(every_ms):
            return every_ms
        case Times(at_ms):
            return min((after - before for before, after in pairwise(at_ms)), default=None)
        case Once():
            return None
        case Cron():
            return _shortest_gap_of_cron_ms(trigger)


def _shortest_gap_of_cron_ms(trigger: Trigger) -> int | None:
    """Of its next hundred times: a month of an hourly one's days, a century of a yearly one."""
    shortest: int | None = None
    before = next_nominal(trigger, -1)
    for _ in range(_GAPS_LOOKED_AT):
        after = None if before is None else next_nominal(trigger, before)
        if before is None or after is None:
            break
        shortest = after - before if shortest is None else min(shortest, after - before)
        before = after
    return shortest
