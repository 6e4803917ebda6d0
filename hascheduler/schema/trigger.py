"""When a schedule fires, as a value; `hascheduler.triggers` computes its nominal times.

A `Trigger` is a pattern and its bounds. Triggers compare by value, so equal triggers share their cache entries.
"""

from dataclasses import dataclass, field

from hascheduler.model.values.frozen import compact, fast_frozen
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.calendar import Calendar


@fast_frozen
@dataclass(frozen=True, slots=True)
class Interval:
    """Every ``every_ms``, at ``anchor_ms`` plus whole multiples, so the phase survives restarts and failovers."""

    every_ms: int
    anchor_ms: WallMs


@dataclass(frozen=True, slots=True)
class Cron:
    """The wall times that ``expression`` names in ``timezone`` (an IANA name)."""

    expression: str
    timezone: str = "UTC"


@fast_frozen
@dataclass(frozen=True, slots=True)
class Times:
    """At each of these instants: ascending, no two alike, at least one."""

    at_ms: tuple[WallMs, ...]


@fast_frozen
@dataclass(frozen=True, slots=True)
class Once:
    """At ``at_ms``, and never again."""

    at_ms: WallMs


Part = Interval | Cron | Times | Once

EVERY_MIN_MS = 100
TIMES_MAX = 10_000
PARTS_MIN, PARTS_MAX = 2, 10


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At each time of any of ``parts`` (`PARTS_MIN` to `PARTS_MAX`); a time that several of them name is one."""

    parts: tuple[Part, ...]


Pattern = Part | AnyOf


@dataclass(frozen=True, slots=True)
class Window:
    """From ``from_ms`` until before ``to_ms``."""

    from_ms: WallMs
    to_ms: WallMs


@dataclass(frozen=True, slots=True)
class CalendarDays:
    """The calendars that a `CalendarUse` names, as they are at present; ``bits`` has the days that count, as
    `Calendar.bits`."""

    only: tuple[Calendar, ...]
    excluding: tuple[Calendar, ...]
    bits: int


@dataclass(frozen=True, slots=True)
class CalendarUse:
    """A day counts if it is in each calendar of ``only`` and in none of ``excluding``, both by their names.

    ``timezone`` says whose days: None is the zone of the cron expressions, and UTC where there is none. ``days`` is
    filled in by `hascheduler.triggers.with_calendars` and never stored; without it no question can be answered.
    """

    only: tuple[str, ...] = ()
    excluding: tuple[str, ...] = ()
    timezone: str | None = None
    days: CalendarDays | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return self.only + self.excluding


@compact("jitter_ms", "start_at_ms", "end_at_ms", "max_fires", "exclude", "calendars")
@dataclass(frozen=True, slots=True)
class Trigger:
    """A pattern, from ``start_at_ms`` through ``end_at_ms`` (both included; None: no bound).

    Each nominal time is due up to ``jitter_ms`` later, by an amount that the schedule's name and the nominal time fix.
    Those in a window of ``exclude`` (ascending, apart from each other) do not fire, nor those on a day that
    ``calendars`` leaves out. After ``max_fires`` fires of the schedule there are no more.
    """

    pattern: Pattern
    jitter_ms: int = 0
    start_at_ms: WallMs | None = None
    end_at_ms: WallMs | None = None
    max_fires: int | None = None
    exclude: tuple[Window, ...] = ()
    calendars: CalendarUse | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its pattern, or those that it is any of."""
        return self.pattern.parts if isinstance(self.pattern, AnyOf) else (self.pattern,)

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones of its cron expressions, each once."""
        return tuple(dict.fromkeys(part.timezone for part in self.parts if isinstance(part, Cron)))

    @property
    def zone(self) -> str:
        """The one zone of its cron expressions; UTC where there is none, or several."""
        zones = self.zones
        return zones[0] if len(zones) == 1 else "UTC"
