"""Which nominal times a backfill is about: at most a thousand, however long the span is."""

from collections.abc import Iterator
from itertools import islice

from hascheduler.api.counting import count_firing
from hascheduler.errors import InvalidInput
from hascheduler.model.instants import WallMs, format_instant
from hascheduler.model.trigger import Trigger
from hascheduler.triggers import excluded_until, next_nominal

TIMES_MAX = 1_000


def backfill_times(trigger: Trigger, from_ms: int, to_ms: int) -> list[WallMs]:
    """The nominal times from ``from_ms`` through ``to_ms`` that are not excluded.

    `InvalidInput` where there are too many, saying how many, and up to when there are not.
    """
    times = list(islice(_times(trigger, from_ms, to_ms), TIMES_MAX + 1))
    if len(times) > TIMES_MAX:
        problem = f"{count_firing(trigger, from_ms, to_ms)} nominal times, and at most {TIMES_MAX} are made at once"
        raise InvalidInput(("to",), problem, f"at most {format_instant(times[TIMES_MAX] - 1)}, which makes {TIMES_MAX}")
    return times


def _times(trigger: Trigger, from_ms: int, to_ms: int) -> Iterator[WallMs]:
    nominal_ms = next_nominal(trigger, from_ms - 1)
    while nominal_ms is not None and nominal_ms <= to_ms:
        until_ms = excluded_until(trigger, nominal_ms)
        if until_ms is None:
            yield nominal_ms
        nominal_ms = next_nominal(trigger, nominal_ms if until_ms is None else until_ms - 1)
