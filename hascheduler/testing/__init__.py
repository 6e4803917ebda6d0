"""Tests of your own jobs and schedules: a whole scheduler in the test's process, on virtual time, without servers.

The API, the leader and a processor of production run on stores in memory (`hascheduler.testing.memory`), in one event
loop whose clock jumps.

The pytest fixture ``virtual_scheduler`` gives one to a test (`hascheduler.pytest_plugin`). The scheduler is imported on
first use of one of the names below, so that the stores in memory need neither the API nor the daemon.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hascheduler.testing.instrumented import Call
    from hascheduler.testing.scheduler import StillWaiting, VirtualScheduler
    from hascheduler.testing.virtual_loop import ClockStuck

__all__ = ["Call", "ClockStuck", "StillWaiting", "VirtualScheduler"]

_MODULES = {
    "Call": "instrumented",
    "ClockStuck": "virtual_loop",
    "StillWaiting": "scheduler",
    "VirtualScheduler": "scheduler",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
