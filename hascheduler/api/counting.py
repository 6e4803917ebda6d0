"""How many nominal times fire, without going through them."""

from hascheduler.model.trigger import Trigger
from hascheduler.triggers import count_nominal


def count_firing(trigger: Trigger, from_ms: int, through_ms: int) -> int:
    """Those from ``from_ms`` through ``through_ms`` that lie in no exclusion window."""
    if through_ms < from_ms:
        return 0
    excluded = (
        count_nominal(trigger, max(from_ms, window.from_ms) - 1, min(through_ms, window.to_ms - 1))
        for window in trigger.exclude
        if window.to_ms > from_ms and window.from_ms <= through_ms
    )
    return count_nominal(trigger, from_ms - 1, through_ms) - sum(excluded)
