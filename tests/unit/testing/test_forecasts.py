"""A forecast and the timeline of a whole scheduler, beside what happens in it then."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

from hascheduler.processor import JobContext
from hascheduler.testing import VirtualScheduler


def test_what_is_forecast_comes_about() -> None:
    with VirtualScheduler(start="2030-01-01T02:00:00Z", slots=4) as scheduler:

        async def five_minutes(job: JobContext) -> None:
            await asyncio.sleep(300)

        scheduler.handle("report", five_minutes)
        for number in range(12):
            trigger = {"type": "cron", "expression": "0 3 * * *"}
            scheduler.add_schedule(f"nightly-{number:02}", trigger=trigger, job={"definition": "report"})
        scheduler.advance("24h")  # now it is known how long they take
        forecast: Any = scheduler.request("GET", "/v1/forecast?ahead=2h&bucket=30m")
        (peak,) = forecast["peaks"]
        assert peak["at"] == "2030-01-02T03:00:00.000Z"
        assert (peak["jobs"], peak["slots"], peak["waiting"], peak["other_jobs"]) == (12, 4, 8, 7)
        assert [bucket["jobs"] for bucket in forecast["buckets"]][:4] == [0, 0, 12, 0]
        before = len(scheduler.calls())
        scheduler.advance("2h")
        began = [call.at - datetime.fromisoformat(peak["at"]) for call in scheduler.calls()[before:]]
        assert len(began) == 12
        # A few milliseconds of each job are not its own.
        assert abs(max(began) - timedelta(milliseconds=peak["lasts_ms"])) < timedelta(minutes=2)

        timeline: Any = scheduler.request("GET", "/v1/timeline?behind=2h&ahead=24h&limit=20")
        rows = timeline["items"]
        assert len(rows) == 12
        assert {row["ahead_count"] for row in rows} == {1}
        assert all(abs(row["expected_ms"] - 300_000) < 1_000 for row in rows)
        assert sum(fired for row in rows for _, fired, _ in row["fired"]) == 12
        assert sum(late for row in rows for _, _, late in row["fired"]) == 8


def test_what_runs_and_waits_now_is_in_it() -> None:
    with VirtualScheduler(slots=2) as scheduler:

        async def long(job: JobContext) -> None:
            await asyncio.sleep(600)

        scheduler.handle("long", long)
        scheduler.put_definition("long", default_cost="10m")
        for _ in range(5):
            scheduler.submit("long")
        scheduler.advance("1s")
        forecast: Any = scheduler.request("GET", "/v1/forecast?ahead=1h")
        assert (forecast["buckets"][0]["jobs"], forecast["buckets"][0]["waiting"]) == (3, 3)
        (peak,) = forecast["peaks"]
        assert (peak["jobs"], peak["slots"]) == (5, 2)
        assert 18 * 60_000 <= peak["lasts_ms"] <= 22 * 60_000
