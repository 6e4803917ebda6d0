"""The kinds of trigger, as values; what they mean (the next nominal time) is the room `hascheduler.triggers`."""

from dataclasses import dataclass

from hascheduler.model.instants import WallMs


@dataclass(frozen=True, slots=True)
class IntervalTrigger:
    """Every ``every_ms``, at ``anchor_ms`` plus whole multiples, so the phase survives restarts and failovers."""

    every_ms: int
    anchor_ms: WallMs


@dataclass(frozen=True, slots=True)
class OnceTrigger:
    """At ``at_ms``, and never again."""

    at_ms: WallMs


Trigger = IntervalTrigger | OnceTrigger
