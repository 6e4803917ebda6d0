"""When a schedule fires, as a value; `hascheduler.triggers` computes its nominal times.

A `Trigger` is a pattern and its bounds. Triggers compare by value, so equal triggers share their cache entries.
"""

from dataclasses import dataclass

from hascheduler.model.fast_frozen import fast_frozen
from hascheduler.model.instants import WallMs


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


Pattern = Interval | Cron | Times | Once


@dataclass(frozen=True, slots=True)
class Window:
    """From ``from_ms`` until before ``to_ms``."""

    from_ms: WallMs
    to_ms: WallMs


@fast_frozen
@dataclass(frozen=True, slots=True)
class Trigger:
    """A pattern, from ``start_at_ms`` through ``end_at_ms`` (both included; None: no bound).

    Each nominal time is due up to ``jitter_ms`` later, by an amount that the schedule's name and the nominal time fix.
    Those in a window of ``exclude`` (ascending, apart from each other) do not fire. After ``max_fires`` fires of the
    schedule there are no more.
    """

    pattern: Pattern
    jitter_ms: int = 0
    start_at_ms: WallMs | None = None
    end_at_ms: WallMs | None = None
    max_fires: int | None = None
    exclude: tuple[Window, ...] = ()
