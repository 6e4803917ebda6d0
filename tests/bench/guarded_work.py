"""The work that `tests.bench.guard` compares; a program of its own, as it runs on the code of other commits too.

The API, the leader and a processor of production, in one process, on stores in memory and on virtual time: however
busy the machine is, the same steps are taken. Prints the CPU of a submitted job and of a nominal time, in ms, as JSON.
"""

import json
import sys
import time

from hascheduler.testing import VirtualScheduler

_SUBMITTED = 300
_AT_ONCE = 30
_FIRED = 300


def _submit(scheduler: VirtualScheduler, count: int) -> None:
    for _ in range(count // _AT_ONCE):
        for _ in range(_AT_ONCE):
            scheduler.submit("noop")
        scheduler.drain()


def _main() -> None:
    with VirtualScheduler() as scheduler:

        @scheduler.handler("noop")
        async def noop(job: object) -> None:
            return None

        _submit(scheduler, _AT_ONCE)
        began_s = time.process_time()
        _submit(scheduler, _SUBMITTED)
        submitted_s = time.process_time()
        every = {"type": "interval", "every": "1s"}
        scheduler.add_schedule("tick", trigger=every, job={"definition": "noop"})
        scheduler.advance(f"{_FIRED}s")
        fired_s = time.process_time()
    found = {
        "submitted": 1_000 * (submitted_s - began_s) / _SUBMITTED,
        "fired": 1_000 * (fired_s - submitted_s) / _FIRED,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    _main()
