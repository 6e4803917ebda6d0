"""Three questions, never mixed up: alive, ready, leading. And a process that ends says so before it does."""

import asyncio
from dataclasses import dataclass

import httpx2
import pytest

from hascheduler.api.ops.health_port import health_application
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.processor import NOT_CONSUMING
from hascheduler.processor import health as of_processors
from hascheduler.telemetry.health import (
    ABOUT_TO_END,
    NOT_LEADING,
    NOT_TURNING,
    WAITING_FOR_DATABASE,
    Health,
    ReplicaHealth,
    Vitals,
)
from hascheduler.telemetry.registry import new_registry
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.leadership import MemoryLeaseStore
from tests.unit.api.doubles import StandingView
from tests.unit.daemon.in_memory import replica_in_memory
from tests.unit.processor.world import until

Answers = dict[str, tuple[int, str]]


async def answers(health: Health, *, leads: bool = True) -> Answers:
    """The status and the reason of each question."""
    application = health_application(health, new_registry(), leads=leads)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(application), base_url="http://health") as client:
        found = {}
        for path, name in (("/livez", "alive"), ("/readyz", "ready"), ("/leaderz", "leading")):
            answer = await client.get(path)
            if answer.status_code != 404:
                assert answer.json()[name] is (answer.status_code == 200)
                found[path] = answer.status_code, answer.json()["reason"]
        assert (await client.get("/metrics")).headers["content-type"].startswith("text/plain; version=")
        return found


YES = (200, "")
INCOMPLETE = (503, "the mirror is incomplete")


@pytest.mark.parametrize(
    ("view", "alive", "ready", "leading"),
    [
        (StandingView(), YES, YES, YES),
        (StandingView(leading=False), YES, YES, (503, NOT_LEADING)),
        (StandingView(ready=False, leading=False), YES, INCOMPLETE, (503, NOT_LEADING)),
        (StandingView(stopping=True), YES, (503, ABOUT_TO_END), YES),
        (StandingView(stopping=True, ready=False), YES, (503, ABOUT_TO_END), YES),
        (StandingView(alive=False), (503, NOT_TURNING), YES, YES),
    ],
)
async def test_what_a_replica_says(
    view: StandingView, alive: tuple[int, str], ready: tuple[int, str], leading: tuple[int, str]
) -> None:
    assert await answers(ReplicaHealth(view)) == {"/livez": alive, "/readyz": ready, "/leaderz": leading}


async def test_a_process_that_waits_for_its_database_lives_and_is_not_ready() -> None:
    vitals = Vitals()
    waiting = {"/livez": YES, "/readyz": (503, WAITING_FOR_DATABASE), "/leaderz": (503, NOT_LEADING)}
    assert await answers(vitals) == waiting
    vitals.become(ReplicaHealth(StandingView()))
    assert await answers(vitals) == {"/livez": YES, "/readyz": YES, "/leaderz": YES}


@dataclass
class At:
    """`Heartbeat`, `Fence` and `Deliveries`, as far as their health goes; the clock stands at 100 s."""

    turned_at_ms: int = 99_000
    checked_at_ms: int = 99_900
    registered_offer: object = "shown"
    trusted: bool = True
    consuming: bool = True

    def mono_ms(self) -> int:
        return 100_000


@pytest.mark.parametrize(
    ("at", "draining", "alive", "ready"),
    [
        (At(), False, YES, YES),
        (At(), True, YES, (503, of_processors.DRAINING)),
        (At(registered_offer=None, trusted=False, consuming=False), False, YES, (503, of_processors.NOT_REGISTERED)),
        (At(trusted=False), False, YES, (503, of_processors.FENCED)),
        (At(consuming=False), False, YES, (503, NOT_CONSUMING)),
        (At(turned_at_ms=40_000), False, (503, NOT_TURNING), YES),
        (At(checked_at_ms=40_000), False, (503, NOT_TURNING), YES),
        (At(turned_at_ms=40_001, trusted=False), False, YES, (503, of_processors.FENCED)),
    ],
)
async def test_what_a_processor_says(at: At, draining: bool, alive: tuple[int, str], ready: tuple[int, str]) -> None:
    event = asyncio.Event()
    if draining:
        event.set()
    health = of_processors.ProcessorHealth(
        clock=at,  # type: ignore[arg-type]  # one double for four, as the fields say
        attempts=at,  # type: ignore[arg-type]
        fence=at,  # type: ignore[arg-type]
        heartbeat=at,  # type: ignore[arg-type]
        receipts=at,  # type: ignore[arg-type]
        deliveries=at,  # type: ignore[arg-type]
        draining=event,
    )
    assert await answers(health, leads=False) == {"/livez": alive, "/readyz": ready}


class HeldRelease(MemoryLeaseStore):
    """A release waits until it is let through."""

    def __init__(self, connection: MemoryConnection) -> None:
        super().__init__(connection)
        self.asked = asyncio.Event()
        self.let_through = asyncio.Event()

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        if not proposed.holder:
            self.asked.set()
            await self.let_through.wait()
        return await super().update(expected, proposed)


async def test_a_leader_that_ends_is_not_ready_at_once_and_gives_up_its_lease_after() -> None:
    connection = MemoryConnection(MemoryDatabase())
    leases = HeldRelease(connection)
    async with replica_in_memory("r1", connection, leases=leases) as (replica, running):
        await until(lambda: replica.view.leading)
        health = ReplicaHealth(replica.view)
        assert await answers(health) == {"/livez": YES, "/readyz": YES, "/leaderz": YES}
        replica.stop()
        assert health.not_ready() == ABOUT_TO_END
        async with asyncio.timeout(10):
            await leases.asked.wait()
        # Handing over: it decides no more, has the lease still, and answers all that ask it.
        assert await answers(health) == {"/livez": YES, "/readyz": (503, ABOUT_TO_END), "/leaderz": (503, NOT_LEADING)}
        assert replica.view.ready
        held = await leases.get("default")
        assert held is not None
        assert held.holder == "r1"
        leases.let_through.set()
        async with asyncio.timeout(10):
            await running
        given_up = await leases.get("default")
        assert given_up is not None
        assert given_up.holder == ""
