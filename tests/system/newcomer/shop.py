"""The handlers of a shop, as a new user writes them."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any

from hascheduler.processor import Handlers, JobContext

handlers = Handlers()
running: Counter[str] = Counter()


async def work(job: JobContext) -> str:
    return "done"


for name in ("report", "fetch", "index", "check", "publish", "import"):
    handlers.handler(name)(work)


@handlers.handler("charge")
def charge(job: JobContext) -> str:
    if not Path(os.environ["SHOP_BANK_OPEN"]).exists():
        raise RuntimeError(f"the bank refused card {job.payload['card']}")
    return "paid"


@handlers.handler("notify")
async def notify(job: JobContext) -> dict[str, Any]:
    return {"told": job.payload["job"], "error": job.payload["error"]}


@handlers.handler("render")
async def render(job: JobContext) -> int:
    """Return how many jobs of the customer ran at once."""
    customer = job.payload["customer"]
    running[customer] += 1
    most = running[customer]
    await asyncio.sleep(0.2)
    running[customer] -= 1
    return most
