"""Which nominal times of a schedule have a job already, of a fire or of a backfill."""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence

from hascheduler.api.services import ApiServices
from hascheduler.model.instants import WallMs
from hascheduler.model.job import backfill_job_id
from hascheduler.model.verdict import Verdict
from hascheduler.ports import JobFilter

EARLIEST_MS = 1_000_000_000_000
"""2001-09-09T01:46:40Z. From here on the ids of jobs are in the order of their nominal times, all of one length."""
_READ_AT_ONCE_MAX = 1_000


async def fired_times(schedule: str, times: Sequence[WallMs], services: ApiServices) -> set[WallMs]:
    """Those of ``times`` (ascending) whose fired job is still kept."""

    async def read(after_ms: WallMs, before_ms: WallMs) -> Sequence[WallMs]:
        records = await services.verdicts.list(schedule, {Verdict.FIRED}, after_ms, before_ms, _READ_AT_ONCE_MAX)
        return [record.run.first_ms for record in records]

    return await _found(times, read)


async def backfilled_times(schedule: str, times: Sequence[WallMs], services: ApiServices) -> set[WallMs]:
    """Those of ``times`` (ascending) whose job of an earlier backfill is still kept."""
    prefix = backfill_job_id(schedule, 0)[:-1]

    async def read(after_ms: WallMs, before_ms: WallMs) -> Sequence[WallMs]:
        before_id = backfill_job_id(schedule, before_ms)
        jobs = await services.jobs.list(JobFilter(schedule=schedule), before_id, _READ_AT_ONCE_MAX)
        tails = (job["_id"].removeprefix(prefix) for job in jobs)
        return [WallMs(int(tail)) for tail in tails if tail.isdecimal()]

    return await _found(times, read)


async def _found(times: Sequence[WallMs], read: Callable[[WallMs, WallMs], Awaitable[Sequence[WallMs]]]) -> set[WallMs]:
    """``read`` gives times strictly between two instants, the newest first. However many there are beside those that
    are asked for, each reading settles one of those at least."""
    found: set[WallMs] = set()
    rest = times
    while rest:
        newest_first = await read(WallMs(rest[0] - 1), WallMs(rest[-1] + 1))
        found.update(newest_first)
        if len(newest_first) < _READ_AT_ONCE_MAX:
            break
        rest = rest[: bisect_left(rest, newest_first[-1])]
    return found.intersection(times)
