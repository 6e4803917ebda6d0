"""Tests of your own jobs and schedules: a whole scheduler in the test's process, on virtual time, without servers.

The API, the leader and a processor of production run on stores in memory (`hascheduler.testing.memory`), in one event
loop whose clock jumps.

The pytest fixture ``virtual_scheduler`` gives one to a test (`hascheduler.pytest_plugin`).
"""

from hascheduler.testing.instrumented import Call
from hascheduler.testing.scheduler import StillWaiting, VirtualScheduler
from hascheduler.testing.virtual_loop import ClockStuck

__all__ = ["Call", "ClockStuck", "StillWaiting", "VirtualScheduler"]
