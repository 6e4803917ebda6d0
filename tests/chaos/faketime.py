"""A machine whose wall clock is wrong for everything in a process, drivers and libraries too, by libfaketime.

The monotonic clock stays true: Python's locks wait by it in a way that this library does not know of, and would wait
for as long as the clock is wrong. A wrong rate, of both clocks, is for `tests.chaos.skewed_clock`.
"""

from collections.abc import Mapping
from pathlib import Path

FILE = "faketime"
TRUE = "+0"
_PLACES = (
    "/usr/lib/*/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)


def find_faketime() -> Path | None:
    return next((found for place in _PLACES for found in sorted(Path("/").glob(place[1:]))), None)


def why_no_faketime() -> str:
    """Empty where there is one."""
    return "" if find_faketime() else "a process with a wrong clock needs libfaketime (apt-get install libfaketime)"


def faketime_environment(file: Path) -> Mapping[str, str]:
    """For a process whose wall clock is off by what ``file`` says, read every second: ``+86400`` is a day ahead."""
    return {
        "LD_PRELOAD": str(find_faketime()),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
