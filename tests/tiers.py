"""How thorough a run of the tests is; the environment's ``TESTS_TIER`` says it, and the Makefile sets it.

    check     after each edit: random tests take fewer examples, and the longest tables some of their rows, spread
              over them; what is marked ``slow`` is left out
    test      before a change lands: all rows, random tests with half of their examples, the longest ones with fewer;
              also what plain ``pytest`` does
    long      each night, and before a release: everything in full

Each test that runs in one runs in all above; tests/unit/house/test_tiers.py holds the Makefile to it.

Why a test is ``slow``: it starts an interpreter or a toolchain, and what it asks is asked nowhere else (processes that
are killed, scripts, pages, images, traces of whole processes); or it tells long stories, of which ``check`` tells one
of each kind (simulated clusters of several shards, planted bugs that show late, moves that fail at each exchange).
"""

import os
from collections.abc import Iterable
from typing import TypeVar

_Row = TypeVar("_Row")

TIERS = ("check", "test", "long")
TIER = os.environ.get("TESTS_TIER", "test")
assert TIER in TIERS, f"TESTS_TIER={TIER}: not one of {', '.join(TIERS)}"

_EXAMPLES_MIN = 4


def in_tier(*, check: int, test: int, long: int | None = None) -> int:
    """The number that this run has; long's is test's unless it has its own."""
    return {"check": check, "test": test, "long": test if long is None else long}[TIER]


def examples(full: int) -> int:
    """How many examples a random test takes: ``full`` of them in full, half before a change lands, and after
    each edit a sixteenth, but no fewer than four."""

    def part(divisor: int) -> int:
        return min(full, max(_EXAMPLES_MIN, full // divisor))

    return in_tier(check=part(16), test=part(2), long=full)


def spread(rows: Iterable[_Row], *, check: int) -> list[_Row]:
    """All of them, but ``check`` of them after each edit: the first, and others at even distances."""
    everything = list(rows)
    count = in_tier(check=min(check, len(everything)), test=len(everything))
    return [everything[n * len(everything) // count] for n in range(count)]
