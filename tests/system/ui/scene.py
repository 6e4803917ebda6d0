"""A system with something to look at: schedules of every kind, jobs in every state, and names that mean harm."""

from dataclasses import dataclass

from tests.system.processes import Processes, eventually

ADMIN = "an-admin-token-of-the-settings"

HOSTILE = "<img src=x onerror=alert(1)>&lt;\"'`"
"""As much as names may hold: the API takes no control characters in them."""
HIDDEN = "\u202e\x1b[31m\x00"
"""In payloads they may be."""
EXACT = 9_007_199_254_740_993
"""An integer that a browser's numbers can't hold."""


@dataclass(frozen=True, slots=True)
class Scene:
    """``jobs`` are the ids of jobs by what they are."""

    processes: Processes
    jobs: dict[str, str]

    @property
    def url(self) -> str:
        return self.processes.any_url()


async def furnish(processes: Processes) -> dict[str, str]:
    """Ids of jobs by what they are. Returns once each of them is in its state."""
    await processes.post("/v1/jobs", {"definition": "log", "payload": {"message": HOSTILE + HIDDEN}, "target": HOSTILE})
    await processes.put("/v1/lanes/slow", {"weight": 2})
    await processes.put("/v1/tenants/acme", {"max_running": 3, "max_pending": 1_000})
    await processes.put("/v1/definitions/sleep", {"max_concurrency": 2})
    tick = {"name": "tick", "trigger": {"type": "interval", "every": "1m"}, "job": {"definition": "log"}}
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

    async def settled() -> bool:
        states = [(await processes.get(f"/v1/jobs/{found[name]}"))["state"] for name in ("failed", "running")]
        return states == ["failed", "running"]

    await eventually(settled, "the jobs of the scene are in their states")
    return found
