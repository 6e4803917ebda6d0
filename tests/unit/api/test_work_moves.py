"""Work over HTTP in a deployment of several shards: what a worker is answered that is to go to another one."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from typing import Any

import httpx
import pytest

from hascheduler.api.admission import worker_moves
from hascheduler.api.admission.worker_moves import WorkerMoves
from hascheduler.api.edge import Edge
from hascheduler.api.work import routes
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports.next_shard import REST_MS, TURN_MS
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem, post
from tests.unit.api.test_worker_moves import SHARDS, Demands, looked
from tests.unit.api.work import attempt, promised, started


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_moves, "_PAUSE_S", 0)
    monkeypatch.setattr(worker_moves, "_PAUSE_FACTOR", 0)


class Deployment:
    def __init__(self, client: httpx.AsyncClient, world: World) -> None:
        self.client = client
        self.world = world
        self.demands = Demands()
        self.now_ms = 0
        world.clock.mono_ms = lambda: MonoMs(self.now_ms)  # type: ignore[method-assign]
        self.moves = WorkerMoves(SHARDS, self.demands, world.clock, lambda: 0)

    async def registered(self) -> str:
        body = {"name": "far", "definitions": ["log"], "slots": 2}
        return str((await post(self.client, "/v1/work/processors", body, 201))["processor"])

    async def fetched(self, processor: str, **changes: Any) -> httpx.Response:
        body = {"processor": processor, "wait": 0, **changes}
        answer = await self.client.post("/v1/work/fetch", json=body)
        await looked()
        return answer

    async def passed(self, processor: str, ms: int, **changes: Any) -> None:
        """Time, and then a fetch: it has a picture taken."""
        self.now_ms += ms
        assert (await self.fetched(processor, **changes)).status_code == 200

    async def refused(self, processor: str) -> None:
        """Its fetch, as soon as it is seen to hold nothing for a moment."""
        await self.passed(processor, 0)
        self.now_ms += 1_000
        check_problem(await self.fetched(processor), 404)

    def stored(self, processor: str) -> dict[str, Any]:
        return self.world.stored(Collection.PROCESSORS, processor)


@pytest.fixture
async def deployment(client: httpx.AsyncClient, app: Edge, world: World) -> AsyncIterator[Deployment]:
    deployment = Deployment(client, world)
    services = world.services()
    terms = replace(services.work_terms, choose_shard=lambda _: SHARDS[0])
    app.services = replace(services, work_terms=terms, worker_moves=deployment.moves)
    yield deployment
    if deployment.moves._looking is not None:
        deployment.moves._looking.cancel()


async def test_an_idle_one_registers_again_and_gets_to_where_jobs_wait(deployment: Deployment) -> None:
    processor = await deployment.registered()
    await deployment.passed(processor, 0)
    place = SHARDS.index(processor.rpartition("@")[2])
    to = (place + 1) % len(SHARDS)
    deployment.demands.wanted(to)
    await deployment.passed(processor, REST_MS + 1_000)
    # The picture is there; it is told, and the stream of this replica shows it at once.
    answer = await deployment.fetched(processor, wait="5s")
    check_problem(answer, 404)
    assert answer.json()["type"] == "urn:hascheduler:problem:not-registered"
    assert not deployment.world.everything()["processors"]
    assert (await deployment.registered()).endswith(f"@{SHARDS[to]}")


async def test_a_busy_one_ends_what_it_has_and_gets_nothing_new(
    deployment: Deployment, client: httpx.AsyncClient, world: World
) -> None:
    processor = await deployment.registered()
    runs = await started(client, world, processor)
    running = {"processor": processor, "running": [attempt(runs)]}
    for index, shard in enumerate(SHARDS):
        if not processor.endswith(f"@{shard}"):
            deployment.demands.wanted(index)
    await post(client, "/v1/work/heartbeat", running)
    for _ in range(2):
        deployment.now_ms += TURN_MS
        await post(client, "/v1/work/heartbeat", running)
        await looked()
        deployment.now_ms += 1_000
        await post(client, "/v1/work/heartbeat", running)
    stored = deployment.stored(processor)
    assert (stored["moving"], stored["draining"]) == (True, True)
    # It goes on saying that it wants jobs, and that changes nothing; what runs goes on.
    await post(client, "/v1/work/heartbeat", {**running, "draining": False})
    assert deployment.stored(processor)["draining"]
    answer = await deployment.fetched(processor, running=[attempt(runs)])
    assert (answer.status_code, answer.json()) == (200, {"attempts": [], "cancelled": [], "revoked": []})
    assert (await deployment.fetched(processor)).status_code == 200, "the store knows that it runs something"
    await post(client, "/v1/work/finish", {**runs, "outcome": "succeeded"})
    await deployment.refused(processor)
    assert world.job(runs["job"])["state"] == "succeeded"


async def test_what_was_promised_to_one_that_moves_is_its_to_start(
    deployment: Deployment, client: httpx.AsyncClient, world: World
) -> None:
    processor = await deployment.registered()
    await world.work.set_moving(processor, moving=True)
    named = await promised(client, world, processor)
    assert (await deployment.fetched(processor)).json()["attempts"] == [attempt(named)]
    await post(client, "/v1/work/start", named)
    await post(client, "/v1/work/finish", {**named, "outcome": "succeeded"})
    await deployment.refused(processor)


async def test_what_it_says_to_run_keeps_its_registration_before_the_stream_shows_it(
    deployment: Deployment, client: httpx.AsyncClient, world: World
) -> None:
    processor = await deployment.registered()
    runs = await started(client, world, processor)
    await world.work.set_moving(processor, moving=True)
    world.view.occupied = lambda _: 0
    assert (await deployment.fetched(processor, running=[attempt(runs)])).status_code == 200
    await deployment.refused(processor)


async def test_what_it_said_to_run_when_it_asked_does_not_keep_it_for_as_long_as_it_waits(
    deployment: Deployment, client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_LOOK_AGAIN_S", 0.01)
    processor = await deployment.registered()
    runs = await started(client, world, processor)
    await world.work.set_moving(processor, moving=True)
    await post(client, "/v1/work/finish", {**runs, "outcome": "succeeded"})
    passing = count(0, 600)
    world.clock.mono_ms = lambda: MonoMs(next(passing))  # type: ignore[method-assign]
    check_problem(await deployment.fetched(processor, running=[attempt(runs)], wait="30s"), 404)


async def test_a_heartbeat_takes_no_registration_away(deployment: Deployment, client: httpx.AsyncClient) -> None:
    processor = await deployment.registered()
    await deployment.world.work.set_moving(processor, moving=True)
    await post(client, "/v1/work/heartbeat", {"processor": processor})
    assert deployment.stored(processor)["moving"]
    await deployment.refused(processor)
    check_problem(await client.post("/v1/work/heartbeat", json={"processor": processor}), 404)


async def test_one_that_is_not_lacked_any_more_gets_jobs_again(
    deployment: Deployment, client: httpx.AsyncClient, world: World
) -> None:
    processor = await deployment.registered()
    runs = await started(client, world, processor)
    await world.work.set_moving(processor, moving=True)
    for ms in (0, 5_000, 1_000):
        assert deployment.stored(processor)["moving"]
        await deployment.passed(processor, ms, running=[attempt(runs)])
    stored = deployment.stored(processor)
    assert (stored["moving"], stored["draining"]) == (False, False)


async def test_without_a_picture_a_registration_gets_a_shard_all_the_same(
    deployment: Deployment,
) -> None:
    deployment.demands.now = []
    assert (await deployment.registered()).endswith(f"@{SHARDS[0]}")
