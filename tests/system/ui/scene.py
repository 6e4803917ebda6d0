"""A system with something to look at: schedules of every kind, jobs in every state, and names that mean harm."""

import asyncio
from typing import Any

from tests.system.processes import Processes, eventually

HOSTILE = "<img src=x onerror=alert(1)>&lt;\"'`"
"""As much as names may hold: the API takes no control characters in them."""
HIDDEN = "\u202e\x1b[31m\x00"
"""In payloads they may be."""
EXACT = 9_007_199_254_740_993
"""An integer that a browser's numbers can't hold."""


async def furnish(processes: Processes) -> dict[str, str]:
    """Ids of jobs by what they are. Returns once each of them is in its state."""
    await processes.post("/v1/jobs", {"definition": "log", "payload": {"message": HOSTILE + HIDDEN}, "target": HOSTILE})
    await _put(processes, "/v1/lanes/slow", {"weight": 2})
    await _put(processes, "/v1/tenants/acme", {"max_running": 3, "max_pending": 1_000})
    await _put(processes, "/v1/definitions/sleep", {"max_concurrency": 2})
    tick = {"name": "tick", "trigger": {"type": "interval", "every": "1s"}, "job": {"definition": "log"}}
    await processes.post("/v1/schedules", {**tick, "labels": {"team": "a", "harm": HOSTILE[:60]}})
    nightly = {"type": "cron", "expression": "30 2 * * *", "timezone": "Europe/Paris"}
    await processes.post("/v1/schedules", {"name": "nightly", "trigger": nightly, "job": {"definition": "log"}})
    await processes.post("/v1/schedules", {"name": "asleep", "trigger": nightly, "job": {"definition": "log"}})
    await processes.post("/v1/schedules/asleep/pause", {"because": "the report is being rewritten"})
    jobs = {
        "failed": {"definition": "sleep", "payload": {"seconds": "no"}},
        "running": {"definition": "sleep", "payload": {"seconds": 3_600}},
        "waiting": {"definition": "sleep", "payload": {"seconds": 1, "exact": EXACT}, "priority": 1},
    }
    found: dict[str, str] = {}
    for name in ("failed", "running", "running", "waiting"):
        found[name] = (await processes.post("/v1/jobs", jobs[name]))["id"]
        await asyncio.sleep(0)

    async def settled() -> bool:
        states = [(await processes.get(f"/v1/jobs/{found[name]}"))["state"] for name in ("failed", "running")]
        return states == ["failed", "running"]

    await eventually(settled, "the jobs of the scene are in their states")
    return found


async def _put(processes: Processes, path: str, body: dict[str, Any]) -> None:
    answer = await processes.http.put(processes.any_url() + path, json=body)
    assert answer.status_code < 300, answer.text
