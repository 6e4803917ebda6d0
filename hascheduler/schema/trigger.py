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
    """At `anchor` plus whole multiples of `every`."""

    every_ms: Annotated[int, _EVERY, Field(examples=["1s", "1m30s"])]
    """The span between two nominal times"""
    anchor_ms: Annotated[Instant, Field(examples=["2030-01-01T00:00:00.000Z"])]
    """Nominal times are this instant plus whole multiples of `every`, so the phase survives restarts; null: the instant
    of creation, and an edit keeps the stored one"""


@dataclass(frozen=True, slots=True)
class Cron:
    """The wall times that a cron expression names: five fields, or six with the seconds last.

    `@every 90s` is stored as an interval.
    """

    expression: Annotated[str, Field(examples=["*/5 * * * *", "30 2 * * mon-fri", "0 9 LW * ?"])]
    """Minute, hour, day of month, month, day of week; perhaps a second after them"""
    timezone: Annotated[str, Field(examples=["Europe/Paris"])] = "UTC"
    """An IANA time zone, in upper or lower case"""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Times:
    """At each of these instants, ascending."""

    at_ms: Annotated[tuple[Instant, ...], Listed, Field(examples=[[_TIME, "2030-02-28T09:30:00Z"]])]
    """The nominal times: ascending, no two alike, at least one"""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Once:
    """At one instant, and never again."""

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
    """At each time that any of several patterns names; one that two of them name is one nominal time.

    They come at most once a minute each, and an interval among them divides a day or is of whole days.
    """

    of: tuple[Single, ...]
    """The patterns; what narrows their times stands beside them, not in them"""


Pattern = Single | AnyOf


@dataclass(frozen=True, slots=True)
class Window:
    """From `from` until before `to`."""

    from_ms: Annotated[Instant, Field(examples=["2030-12-24T00:00:00+01:00"])]
    """The first instant in it"""
    to_ms: Annotated[Instant, Field(examples=["2030-12-27T00:00:00+01:00"])]
    """The first instant after it"""


@dataclass(frozen=True, slots=True)
class CalendarDays:
    """The current calendars that a `CalendarUse` names; ``bits`` has the days that count, as in `Calendar.bits`."""

    only: tuple[Calendar, ...]
    excluding: tuple[Calendar, ...]
    bits: int


@dataclass(frozen=True, slots=True)
class CalendarUse:
    """Which days count, by calendars of /v1/calendars: those in each of `only` and in none of `except`."""

    only: Annotated[tuple[Name, ...], Listed, Field(examples=[["business-days"]])] = ()
    """Only days that are in each of these calendars; at most 10"""
    excluding: Annotated[tuple[Name, ...], Listed, Field(examples=[["holidays-de"]])] = ()
    """No day that is in one of these calendars; at most 10"""
    timezone: Annotated[str | None, Field(examples=["Europe/Berlin"])] = None
    """Whose days, as an IANA time zone; null: that of the cron expressions, UTC if there is none; needed if they have
    several"""
    # `hascheduler.triggers.with_calendars` sets it; it is never stored, and without it no times can be computed.
    days: CalendarDays | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return self.only + self.excluding


@compact("jitter_ms", "start_at_ms", "end_at_ms", "max_fires", "exclude", "calendars")
@dataclass(frozen=True, slots=True)
class Trigger:
    """A pattern, and what narrows its times."""

    pattern: Pattern
    jitter_ms: Span = 0
    """Due up to this much later, by an amount that the name and the nominal time fix; default 0s"""
    start_at_ms: Instant | None = None
    """No nominal time before it; null: no bound"""
    end_at_ms: Instant | None = None
    """No nominal time after it; null: no bound"""
    max_fires: Annotated[int, _FIRES] | None = None
    """How often the schedule fires in its life; null: no limit"""
    exclude: tuple[Window, ...] = ()
    """Nominal times in these windows do not fire; ascending, apart from each other"""
    calendars: CalendarUse | None = None
    """Nominal times on local days that these leave out do not fire; null: all days count"""

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
        said = [each for option in options for each in getattr(option, "__metadata__", ()) if isinstance(each, Form)]
        if said:
            found[name] = said[0].read_stored
        elif getattr(hint, "__origin__", None) is str:
            found[name] = _stored_text
    return found


def _stored_text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput((), quoted(value), "a text")
    return shared(str(value))  # BSON has other types of text too
