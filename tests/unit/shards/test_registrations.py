"""A worker over HTTP registers where it is lacked, and an idle one is let go for a shard that lacks it."""

from typing import Any

import pytest

from hascheduler.model.token import ALL_TENANTS, Role
from hascheduler.shards import registrations
from tests.unit.shards.gateways import Ring, Sent, only

REGISTER, FETCH = "POST /v1/work/processors", "POST /v1/work/fetch"
WORKER = only(ALL_TENANTS, Role.WORKER)


def worker(id: str = "http:a.1@default", *, occupied: int = 0, slots: int = 2, **changes: Any) -> dict[str, Any]:
    base = {"id": id, "definitions": ["log"], "slots": slots, "occupied": occupied, "alive": True, "draining": False}
    return {**base, **changes}


def tell(ring: Ring, index: int, workers: list[dict[str, Any]], **waiting: int) -> None:
    """Have a shard tell so of its workers, and how many jobs wait by definition."""

    def count(sent: Sent) -> tuple[int, Any]:
        query = sent.scope["query_string"].decode()
        assert "state=pending" in query
        named = [count for name, count in waiting.items() if f"definition={name}" in query]
        return 200, {"pending": sum(named if "definition=" in query else waiting.values())}

    ring.places[index].answers |= {"/v1/processors": (200, {"items": workers}), "/v1/jobs:counts": count}


@pytest.fixture
def ring() -> Ring:
    ring = Ring()
    for index in range(len(ring.places)):
        tell(ring, index, [worker()])
    return ring


async def registered(ring: Ring, definitions: object = ("log",), slots: object = 1) -> str:
    await ring.ask(REGISTER, {"name": "a", "definitions": definitions, "slots": slots}, caller=WORKER)
    return [sent.shard for sent in ring.log if sent.path == "/v1/work/processors"][-1]


async def test_it_registers_where_it_is_lacked_the_most(ring: Ring) -> None:
    tell(ring, 2, [])
    assert await registered(ring) == "0002", "the fewest slots"
    ring = Ring()
    tell(ring, 0, [worker()], log=5)
    tell(ring, 1, [worker(occupied=2)], log=5)
    tell(ring, 2, [worker(slots=4)], log=6)
    assert await registered(ring) == "0001", "the most jobs without a slot"
    ring = Ring()
    tell(ring, 0, [worker()], log=50)
    tell(ring, 1, [worker(draining=True), worker(alive=False), worker(definitions=["mail"])], log=3)
    tell(ring, 2, [worker()])
    assert await registered(ring) == "0001", "jobs that nobody runs"


@pytest.mark.parametrize("definitions", [None, 7, {"log": 1}, [7], "log"])
async def test_a_registration_that_is_refused_is_looked_up_nowhere(ring: Ring, definitions: object) -> None:
    assert await registered(ring, definitions) == "default"
    assert len(ring.log) == 1


# Letting go


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registrations, "IDLE_S", 0.0)


FETCHED = {"processor": "http:a.1@default", "running": []}


async def fetched(ring: Ring, **changes: Any) -> bool:
    """Fetch once; return whether the worker is told to register again."""
    answer = await ring.ask(FETCH, FETCHED | changes, caller=WORKER)
    is_told = answer.status == 404 and answer.json["type"].endswith("not-registered")
    deleted = [sent for sent in ring.log if sent.method == "DELETE"]
    assert [sent.shard for sent in deleted] == ["default"] * is_told
    return is_told


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize(
    ("here", "waiting_here", "waiting_there"),
    [
        (worker(), 0, 0),  # nobody lacks it
        (worker(), 3, 3),  # its own shard lacks it too
        (worker(occupied=1), 0, 3),  # it has work
        (worker("http:b.1@default"), 0, 3),  # it is not known there
    ],
)
async def test_a_worker_stays(ring: Ring, here: dict[str, Any], waiting_here: int, waiting_there: int) -> None:
    tell(ring, 0, [here], log=waiting_here)
    tell(ring, 1, [], log=waiting_there)
    assert not await fetched(ring)


@pytest.mark.usefixtures("_at_once")
async def test_an_idle_worker_is_deregistered_if_another_shard_lacks_it(ring: Ring) -> None:
    tell(ring, 1, [], log=3)
    assert not await fetched(ring, running=[{"job": "a", "attempt": 1}])
    assert await fetched(ring)


@pytest.mark.usefixtures("_at_once")
async def test_another_ones_worker_is_not_let_go(ring: Ring) -> None:
    tell(ring, 1, [], log=3)
    ring.places[0].answers["/v1/work/processors/http:a.1@default"] = (404, {})
    answer = await ring.ask(FETCH, FETCHED, caller=WORKER)
    assert answer.json == {"shard": "default"}
