"""Registrations are memory in every replica and draw jobs to them: one worker token could make any number of them, and
speak for those of all others."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hascheduler.api.admission import worker_registrations
from hascheduler.api.admission.worker_registrations import WorkTerms
from hascheduler.api.edge import Edge
from hascheduler.model.collection import Collection
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem, post
from tests.unit.api.tokens import Guarded
from tests.unit.api.work import registered

MOST = 3


@pytest.fixture
def guarded(app: Edge, world: World) -> Guarded:
    guarded = Guarded(app, world)
    app.services = replace(app.services, work_terms=WorkTerms("default", 1_000, 4_000, MOST))
    return guarded


@pytest.fixture
async def worker(guarded: Guarded) -> AsyncIterator[httpx2.AsyncClient]:
    async with await guarded.client("worker") as client:
        yield client


@pytest.fixture
async def stranger(guarded: Guarded) -> AsyncIterator[httpx2.AsyncClient]:
    async with await guarded.client("worker") as client:
        yield client


async def asked(client: httpx2.AsyncClient, **changes: Any) -> httpx2.Response:
    return await client.post("/v1/work/processors", json={"name": "far", "definitions": ["log"], **changes})


async def test_a_token_registers_so_many_processors_and_no_more(
    worker: httpx2.AsyncClient, stranger: httpx2.AsyncClient, world: World
) -> None:
    first, *_ = [await registered(worker) for _ in range(MOST)]
    refused = await asked(worker)
    check_problem(refused, 429)
    assert int(refused.headers["retry-after"]) >= 1
    # Another's room is its own, and who leaves makes room.
    await registered(stranger)
    assert (await worker.delete(f"/v1/work/processors/{first}")).status_code == 204
    await registered(worker)
    assert len(world.everything()["processors"]) == MOST + 1


async def test_registrations_that_the_stream_has_not_shown_count(worker: httpx2.AsyncClient, world: World) -> None:
    world.view.processors = lambda: ()
    for _ in range(MOST):
        await registered(worker)
    check_problem(await asked(worker), 429)
    world.clock.mono = 10_000  # what never came is forgotten
    await registered(worker)


@pytest.mark.parametrize(
    ("limit", "claim"),
    [
        ("SLOTS_OF_TOKEN_MAX", {"slots": 6}),
        ("DEFINITIONS_OF_TOKEN_MAX", {"definitions": ["a", "b", "c", "d", "e", "f"]}),
    ],
)
async def test_so_do_the_slots_and_definitions_that_they_claim(
    worker: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, limit: str, claim: dict[str, Any]
) -> None:
    monkeypatch.setattr(worker_registrations, limit, 10)
    assert (await asked(worker, **claim)).status_code == 201
    check_problem(await asked(worker, **claim), 429)
    assert (await asked(worker)).status_code == 201


async def test_there_is_a_limit_for_all_tokens_together(
    worker: httpx2.AsyncClient, stranger: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_registrations, "IN_ALL_MAX", 2)
    await registered(worker)
    await registered(stranger)
    check_problem(await asked(stranger), 429)


async def test_a_processor_of_another_token_is_not_there(
    worker: httpx2.AsyncClient, stranger: httpx2.AsyncClient, boss: httpx2.AsyncClient, world: World
) -> None:
    processor = await registered(worker)
    job_id = (await post(boss, "/v1/jobs", {"definition": "log"}, 201))["id"]
    await world.dispatch(job_id, processor)
    named = {"processor": processor, "job": job_id, "attempt": 1}
    before = world.stored(Collection.PROCESSORS, processor)
    check_problem(await stranger.post("/v1/work/fetch", json={"processor": processor, "wait": "0s"}), 404)
    check_problem(await stranger.post("/v1/work/heartbeat", json={"processor": processor}), 404)
    check_problem(await stranger.post("/v1/work/start", json=named), 404)
    check_problem(await stranger.post("/v1/work/finish", json={**named, "outcome": "succeeded"}), 404)
    check_problem(await stranger.delete(f"/v1/work/processors/{processor}"), 404)
    assert world.stored(Collection.PROCESSORS, processor) == before
    assert (await worker.post("/v1/work/start", json=named)).status_code == 200
