"""One nominal time."""

from hascheduler.model.instants import WallMs
from hascheduler.model.trigger import OnceTrigger


def next_nominal(trigger: OnceTrigger, after_ms: int) -> WallMs | None:
    return trigger.at_ms if trigger.at_ms > after_ms else None
