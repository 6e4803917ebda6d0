"""Expressions that name hardly any time, or nearly all, in zones with the most changes: each answer takes few steps.

Steps are calls of Python functions, so that a busy machine changes nothing.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import LATEST_MS, parse_instant
from hascheduler.schema.trigger import Cron, Trigger
from hascheduler.triggers import check_trigger, clock_changes, count_nominal, latest_nominal, next_nominal, remarks
from hascheduler.triggers.cron import _read
from tests.tiers import spread

STEPS_MAX = 250_000
"""A search through all the months of 130 years in which the clock changes takes 120,000."""

NOW = parse_instant("2027-01-01T00:00Z")
HOSTILE = [
    # once in four years, once in twenty-eight, never
    "0 0 29 2 *", "59 59/60 29 2 *", "0 0 29 2 ?", "0 0 29W 2 *", "0 0 L-28 2 *", "0 0 L-29 2 *",
    "0 0 31W 2,4,6,9,11 *", "0 0 30 2 *", "0 0 L-30 2,4 *", "0 0 29 2 1#5", "0 0 * 2 0#5", "* * * 2 6#5 59",
    "59 23 31W 2 * 59",
    # always
    "* * * * * *", "*/1 */1 */1 */1 */1 */1", "0-58,59 * * * * 0-58,59", "* * 1-31 * 0-6 *",
    "* * L,LW,1W,L-1,L-2W * 0-6 *",
    # only in wall times that a change of the clock leaves out, or brings twice
    "30 2 * 3 0#5 0", "*/30 */2 28 3 * *", "* * 29-31 3 * 59", "59 */23 31W 3,10 * 59",
    # long ones
    ",".join(["1-59/2"] * 36) + " * * * *",
    ",".join(["50-10"] * 40) + " * * * *", "0 0 " + ",".join(["15W"] * 60) + " * *",
    "0 0 " + ",".join(["L-30W"] * 40) + " 2 *", "0 0 * * " + ",".join(["5L"] * 80), "* " * 120, "? " * 6, "?" * 250,
    "0 0 12 " + "?," * 100 + "? * ?", "@every " + "9" * 240, "@every " + "1s" * 120, "@every 1e9h", "tz=" * 80,
    "* * * * * " * 40, "L " * 6, "W W W W W", "LWLW * * * *", "0 0 L--3 * *", "0 0 -3L * *", "0 0 15W15W * *",
]  # fmt: skip
ZONES = spread(
    ["Africa/Casablanca", "UTC", "Australia/Lord_Howe", "Antarctica/Troll", "pacific/APIA", "x" * 10_240], check=2
)


@pytest.mark.parametrize("expression", HOSTILE, ids=lambda text: text[:30])
def test_each_answer_is_found_or_refused_in_few_steps(expression: str) -> None:
    for zone in ZONES:
        trigger = Trigger(Cron(expression, zone))
        for ask in (
            check_trigger,
            remarks,
            lambda trigger: next_nominal(trigger, NOW),
            lambda trigger: next_nominal(trigger, -1),
            lambda trigger: next_nominal(trigger, LATEST_MS - 2_000),
            lambda trigger: latest_nominal(trigger, NOW),
            lambda trigger: count_nominal(trigger, -1, LATEST_MS),
            lambda trigger: list(clock_changes(trigger, NOW, NOW + 400 * 86_400_000)),
        ):
            _read.cache_clear()
            assert _steps(ask, trigger) < STEPS_MAX


def _steps(ask: Callable[[Trigger], object], trigger: Trigger) -> int:
    """How many functions were called; a long search is cut off there."""
    steps = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal steps
        steps += event in {"call", "c_call"}
        if steps >= STEPS_MAX:
            raise _TooManyError

    sys.setprofile(count)
    try:
        ask(trigger)
    except (InvalidInput, _TooManyError):
        pass
    finally:
        sys.setprofile(None)
    return steps


class _TooManyError(Exception):
    pass


def test_steps_are_counted() -> None:
    assert _steps(lambda _: [len(text) for text in ["1"] * STEPS_MAX], Trigger(Cron("* * * * *"))) == STEPS_MAX
