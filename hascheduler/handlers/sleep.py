"""``sleep``: takes ``{"seconds": 1.5}``, sleeps that long and returns ``{"slept": 1.5}``. For trying things out."""

import asyncio

from hascheduler.processor import Handlers, JobContext, PermanentError

handlers = Handlers()
_SECONDS_MAX = 86_400


@handlers.handler("sleep")
async def sleep(job: JobContext) -> dict[str, float]:
    seconds = job.payload.get("seconds") if isinstance(job.payload, dict) else None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _SECONDS_MAX:
        raise PermanentError(f'the payload must be {{"seconds": a number from 0 to {_SECONDS_MAX}}}')
    loop = asyncio.get_running_loop()
    ends, left_s = loop.time() + seconds, float(seconds)
    while left_s > 0:
        job.progress(round(100 * (1 - left_s / seconds), 1), f"{left_s:.0f} s left")
        await asyncio.sleep(min(left_s, 1))
        left_s = ends - loop.time()
    return {"slept": seconds}
