"""Triggers as values; `hascheduler.triggers` computes their nominal times.

A `Trigger` is a pattern and its bounds. Triggers compare by value, so equal triggers share their cache entries. A
mirror holds a million of them, so they are plain dataclasses with slots (120 bytes; as a pydantic model 1,060). The
published form is made of the same fields and sentences, in `hascheduler.schema.trigger_bodies`; a field without a
sentence belongs to the core alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import Field

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import INTEGER_MAX, shared
from hascheduler.model.values.frozen import compact, fast_frozen
from hascheduler.model.values.instants import LONGEST_MS
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.forms import Form, Instant, Listed, Name, Span, span, whole

EVERY_MIN_MS = 100
TIMES_MAX = 10_000
PARTS_MIN, PARTS_MAX = 2, 10

# A request may hold 0s, which the check of the trigger refuses; a stored value must not.
_EVERY = replace(span(0, LONGEST_MS), read_stored=span(1, LONGEST_MS).read_stored)
_FIRES = whole(1, INTEGER_MAX, stored_least=-INTEGER_MAX)
_TIME = "2030-01-31T09:30:00Z"


@fast_frozen
@dataclass(frozen=True, slots=True)
class Interval:
    """Fires at `anchor` plus whole multiples of `every`."""

    every_ms: Annotated[int, _EVERY, Field(examples=["1s", "1m30s"])]
    """The interval between two nominal times"""
    anchor_ms: Annotated[Instant, Field(examples=["2030-01-01T00:00:00.000Z"])]
    """Nominal times are this instant plus whole multiples of `every`, so the phase survives restarts; null: the instant
    of creation, and an edit keeps the stored one"""


@dataclass(frozen=True, slots=True)
class Cron:
    """Fires at the wall times of a cron expression: five fields, or six with the seconds last.

    `@every 90s` is stored as an interval.
    """

    expression: Annotated[str, Field(examples=["*/5 * * * *", "30 2 * * mon-fri", "0 9 LW * ?"])]
    """Minute, hour, day of month, month, day of week; optionally followed by the second"""
    timezone: Annotated[str, Field(examples=["Europe/Paris"])] = "UTC"
    """An IANA time zone, in upper or lower case"""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Times:
    """Fires at each of a list of instants."""

    at_ms: Annotated[tuple[Instant, ...], Listed, Field(examples=[[_TIME, "2030-02-28T09:30:00Z"]])]
    """The nominal times, at least one: ascending, without repeats"""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Once:
    """Fires once, at one instant."""

    at_ms: Annotated[Instant, Field(examples=[_TIME])]
    """The nominal time"""


Single = Interval | Cron | Times | Once
KINDS: dict[str, type[Single]] = {"cron": Cron, "interval": Interval, "times": Times, "once": Once}
"""The types of patterns, as they are stored and written."""
ANY = "any"
"""The type of a trigger that is any of several patterns."""
_TYPES = {kind: type for type, kind in KINDS.items()}


def type_of(pattern: Single) -> str:
    """Return the type as it is stored and written."""
    return _TYPES[type(pattern)]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Fires at each time of any of several patterns; a time of two of them is one nominal time.

    Each fires at most once a minute, and an interval among them divides a day or is a number of whole days.
    """

    of: tuple[Single, ...]
    """The patterns; jitter, bounds and exclusions stand next to this field, not in the patterns"""


Pattern = Single | AnyOf


@dataclass(frozen=True, slots=True)
class Window:
    """A window from `from` until before `to`."""

    from_ms: Annotated[Instant, Field(examples=["2030-12-24T00:00:00+01:00"])]
    """The first instant in the window"""
    to_ms: Annotated[Instant, Field(examples=["2030-12-27T00:00:00+01:00"])]
    """The first instant after the window"""


@dataclass(frozen=True, slots=True)
class CalendarDays:
    """The current calendars that a `CalendarUse` names; ``bits`` has the days that count, as in `Calendar.bits`."""

    only: tuple[Calendar, ...]
    excluding: tuple[Calendar, ...]
    bits: int


@dataclass(frozen=True, slots=True)
class CalendarUse:
    """The days that count: those in every calendar of `only` and in none of `except`; see /v1/calendars."""

    only: Annotated[tuple[Name, ...], Listed, Field(examples=[["business-days"]])] = ()
    """Only days that are in each of these calendars; at most 10"""
    excluding: Annotated[tuple[Name, ...], Listed, Field(examples=[["holidays-de"]])] = ()
    """No days that are in any of these calendars; at most 10"""
    timezone: Annotated[str | None, Field(examples=["Europe/Berlin"])] = None
    """The IANA time zone of the days; null: that of the cron expressions, UTC if there are none; required if they
    have several"""
    # `hascheduler.triggers.with_calendars` sets it; it is never stored, and without it no times can be computed.
    days: CalendarDays | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return self.only + self.excluding


@compact("jitter_ms", "start_at_ms", "end_at_ms", "max_fires", "exclude", "calendars")
@dataclass(frozen=True, slots=True)
class Trigger:
    """A pattern and the restrictions on its times."""

    pattern: Pattern
    jitter_ms: Span = 0
    """The most by which fires are delayed; the schedule's name and the nominal time fix the delay; default 0s"""
    start_at_ms: Instant | None = None
    """The earliest nominal time; null: no bound"""
    end_at_ms: Instant | None = None
    """The latest nominal time; null: no bound"""
    max_fires: Annotated[int, _FIRES] | None = None
    """How often the schedule fires in all; null: no limit"""
    exclude: tuple[Window, ...] = ()
    """Windows in which nominal times do not fire; ascending, not overlapping"""
    calendars: CalendarUse | None = None
    """The calendars that decide on which local days nominal times fire; null: all days"""

    @property
    def parts(self) -> tuple[Single, ...]:
        """Return its pattern, or the patterns of which any one counts."""
        return self.pattern.of if isinstance(self.pattern, AnyOf) else (self.pattern,)

    @property
    def zones(self) -> tuple[str, ...]:
        """Return the zones of its cron expressions, each once."""
        return tuple(dict.fromkeys(part.timezone for part in self.parts if isinstance(part, Cron)))

    @property
    def zone(self) -> str:
        """Return the one zone of its cron expressions; UTC if there is none, or several."""
        zones = self.zones
        return zones[0] if len(zones) == 1 else "UTC"


def stored_forms(kind: type) -> dict[str, Callable[[Any], Any]]:
    """Return by name the reader of the stored form of each field that is one value."""
    found: dict[str, Callable[[Any], Any]] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        options = (hint, *get_args(hint))
        forms = [each for option in options for each in getattr(option, "__metadata__", ()) if isinstance(each, Form)]
        if forms:
            found[name] = forms[0].read_stored
        elif getattr(hint, "__origin__", None) is str:
            found[name] = _stored_text
    return found


def _stored_text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput((), quoted(value), "a text")
    return shared(str(value))  # BSON has other types of text too
