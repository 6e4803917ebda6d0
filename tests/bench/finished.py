"""A great many jobs that have ended: what it takes to look at one, and to list them, and which index each list uses.

They are written straight into the database, 1,000,000 of them by default: 50 definitions, 20 tenants, a fifth of them
fired by 200 schedules, nine in ten succeeded. Lists are a page of 100, from a random place.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
from pymongo import AsyncMongoClient

from hascheduler.api.routing.queries import place_text
from hascheduler.embedded.stack import Stack
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.jobs.lists import job_ranges
from hascheduler.mongo.queries import job_query
from hascheduler.ports import JobSelection, ListPosition
from hascheduler.simulate.report import percentile
from tests.bench.stacks import now_ms, write_documents
from tests.factories import make_job

_AGE_MS = 6 * 86_400_000
_FILTERS: dict[str, JobSelection] = {
    "all": JobSelection(),
    "state": JobSelection(states=(JobState.FAILED,)),
    "definition": JobSelection(definition="definition-7"),
    "tenant": JobSelection(tenant="tenant-7"),
    "schedule": JobSelection(schedule="schedule-7"),
    "tenant_and_state": JobSelection(states=(JobState.FAILED,), tenant="tenant-7"),
    "definition_and_state": JobSelection(states=(JobState.FAILED,), definition="definition-7"),
    "target": JobSelection(target="target-7"),
    "batch": JobSelection(batch="batch:7"),
}


async def measure_finished(stack: Stack, database: str, count: int, requests: int) -> dict[str, Any]:
    chance = random.Random(1)
    url = next(iter(stack.urls.values()))
    figures: dict[str, Any] = {"jobs": count, "requests_each": requests}
    async with (
        AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client,
        httpx.AsyncClient(base_url=url, timeout=60) as http,
    ):
        jobs, began, now = client[database]["jobs"], time.monotonic(), now_ms()
        await write_documents(jobs, _documents(count, chance, now))
        figures["written_in_s"] = round(time.monotonic() - began)

        def anywhere() -> int:
            return chance.randrange(count)

        figures |= await _timed("get", http, requests, lambda: f"/v1/jobs/{_id(anywhere())}")
        figures |= await _timed("why", http, requests, lambda: f"/v1/jobs/{_id(anywhere())}/why")
        for name, which in _FILTERS.items():
            asked = "&".join(f"{field}={value}" for field, value in job_query(which).items())
            figures |= await _timed(
                f"list_by_{name}", http, requests, partial(_page, asked, lambda: _place(now, anywhere(), count))
            )
            figures[f"list_by_{name}_plan"] = await _plan(jobs, which, _place(now, anywhere(), count))
    lists = [value for name, value in figures.items() if name.startswith("list_") and name.endswith("_p99_ms")]
    return {**figures, "slowest_list_p99_ms": max(lists)}


async def _timed(name: str, http: httpx.AsyncClient, requests: int, path: Callable[[], str]) -> dict[str, float]:
    took: list[int] = []
    for _ in range(requests):
        began = time.perf_counter_ns()
        (await http.get(path())).raise_for_status()
        took.append((time.perf_counter_ns() - began) // 1_000)
    return {f"{name}_p{part}_ms": round(percentile(took, part) / 1_000, 1) for part in (50, 99)}


async def _plan(jobs: Any, which: JobSelection, after: ListPosition) -> str:
    """The stages that the planner has chosen, the last first; what it went through for a page, and what came of it."""
    range = job_ranges(which)[0]
    found = range.find(jobs, range.matching(range.query(after, None, None) or {})).limit(101)
    told = await found.explain()
    stage = told["queryPlanner"]["winningPlan"]
    stage = stage.get("queryPlan", stage)
    names: list[str] = []
    while stage:
        names.append(stage.get("indexName", stage["stage"]))
        stage = stage.get("inputStage") or next(iter(stage.get("inputStages", ())), None)
    did = told["executionStats"]
    read = f"{did['totalKeysExamined']} keys, {did['totalDocsExamined']} read, {did['nReturned']} returned"
    return f"{' < '.join(names)}; {read}"


def _page(asked: str, anywhere: Callable[[], ListPosition]) -> str:
    return "/v1/jobs?" + "&".join(filter(None, (asked, f"after={place_text(anywhere())}")))


def _id(number: int) -> str:
    return f"job:{number:017x}bench"


def _submitted_at(now: int, number: int, count: int) -> WallMs:
    return WallMs(now - _AGE_MS + number * _AGE_MS // count)


def _place(now: int, number: int, count: int) -> ListPosition:
    return ListPosition(_submitted_at(now, number, count), _id(number))


def _documents(count: int, chance: random.Random, now: int) -> Iterator[dict[str, Any]]:
    keep_until = datetime.now(UTC) + timedelta(days=7)
    for number in range(count):
        at_ms = _submitted_at(now, number, count)
        tenant = f"tenant-{chance.randrange(20)}"
        job = make_job(
            _id(number),
            definition=f"definition-{chance.randrange(50)}",
            target=f"target-{chance.randrange(10_000)}",
            payload={"url": "https://example.org/a/long/enough/path", "number": number},
            tenant=tenant,
            fairness_key=tenant,
            labels={"team": "abcd"[number % 4]},
            submitted_at_ms=at_ms,
        )
        if number % 5 == 0:
            job = replace(job, schedule=f"schedule-{chance.randrange(200)}", nominal_ms=at_ms)
        if number % 10 == 1:
            job = replace(job, batch=f"batch:{chance.randrange(1_000)}")
        succeeded = chance.random() < 0.9
        attempt = {
            "processor": "processor-1.aa",
            "dispatched_at_ms": at_ms + 5,
            "started_at_ms": at_ms + 10,
            "finished_at_ms": at_ms + 1_010,
            "error": None if succeeded else "the other side did not answer",
        }
        yield {
            **new_job_document(job),
            "rev": 4,
            "state": "succeeded" if succeeded else "failed",
            **attempt,
            "attempt": 1,
            "first_started_at_ms": attempt["started_at_ms"],
            "expire_at": keep_until,
            "result": {"bytes": 1_234} if succeeded else None,
            "attempts": [{**attempt, "number": 1, "outcome": "succeeded" if succeeded else "failed"}],
        }
