"""Why a job waits, and the metrics of waiting jobs."""

from typing import Any

import httpx
import pytest

from hascheduler.dispatch.explanation import Block, BlockReason, CriterionValue, Explanation, Overdue, QueuePosition
from hascheduler.model.collection import Collection
from hascheduler.model.policy import Criterion
from hascheduler.model.values.instants import WallMs
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem, get

ID = "job:0001"
WHY = f"/v1/jobs/{ID}/why"
CAP = Block(
    BlockReason.DEFINITION, "3 of 3 jobs of log run", "one of them ends", {"running": 3, "jobs": ["a", "b", "c"]}
)
NOT_YET = Block(BlockReason.NOT_BEFORE, "it may not run yet", "time", {}, WallMs(NOW + 1_500))


def standing(ahead: int, *, exact: bool = True) -> QueuePosition:
    deciding = Criterion.TIER if ahead else None
    return QueuePosition(
        ahead, exact, "job:0000" if ahead else ID, deciding, (CriterionValue(Criterion.TIER, "1", "2"),)
    )


async def test_the_blocks_of_a_job_are_shown_with_their_numbers(client: httpx.AsyncClient, world: World) -> None:
    world.view.explanations[ID] = Explanation(ID, "waiting", blocks=(CAP, NOT_YET))
    assert await get(client, WHY) == {
        "job": ID,
        "state": "pending",
        "seen": True,
        "summary": "it waits: 3 of 3 jobs of log run; it may not run yet",
        "processor": None,
        "finished_at": None,
        "error": None,
        "blocks": [
            {
                "rule": "definition",
                "because": "3 of 3 jobs of log run",
                "unblocked_by": "one of them ends",
                "numbers": {"running": 3, "jobs": ["a", "b", "c"]},
                "until": None,
            },
            {
                "rule": "not_before",
                "because": "it may not run yet",
                "unblocked_by": "time",
                "numbers": {},
                "until": "2030-01-01T00:00:01.500Z",
            },
        ],
        "standing": None,
    }


async def test_a_thread_that_outlives_its_timeout_is_named_with_what_it_holds(
    client: httpx.AsyncClient, world: World
) -> None:
    world.view.explanations[ID] = Explanation(ID, "running", "p.1", overdue=Overdue(2, WallMs(NOW)))
    told = await get(client, WHY)
    assert (told["state"], told["processor"]) == ("running", "p.1")
    assert told["summary"] == (
        "attempt 2 timed out at 2030-01-01T00:00:00.000Z; its thread at p.1 has not ended yet: its slot and conflict "
        "groups are held until then"
    )


@pytest.mark.parametrize(("attempt", "shown"), [(2, "2030-01-01T00:00:00.000Z"), (3, None)])
async def test_a_job_shows_since_when_its_running_attempt_is_overdue(
    client: httpx.AsyncClient, world: World, attempt: int, shown: str | None
) -> None:
    await client.post("/v1/jobs", json={"definition": "log"})
    world.rewrite(Collection.JOBS, ID, state="running", attempt=attempt, overdue_attempt=2, overdue_since_ms=NOW)
    assert (await get(client, f"/v1/jobs/{ID}"))["overdue_since"] == shown


async def test_a_job_without_blocks_has_its_place_in_the_queue(client: httpx.AsyncClient, world: World) -> None:
    world.view.explanations[ID] = Explanation(ID, "waiting", position=standing(2))
    shown = await get(client, WHY)
    assert shown["standing"] == {
        "ahead": 2,
        "exact": True,
        "first": "job:0000",
        "deciding": "tier",
        "criteria": [{"criterion": "tier", "value": "1", "first": "2"}],
    }


@pytest.mark.parametrize(
    ("explanation", "summary"),
    [
        (Explanation(ID, "waiting", position=standing(0)), "nothing holds it back, and it is next"),
        (Explanation(ID, "waiting", position=standing(1)), "nothing holds it back, 1 job goes before it"),
        (Explanation(ID, "waiting", position=standing(2)), "nothing holds it back, 2 jobs go before it"),
        (
            Explanation(ID, "waiting", position=standing(9, exact=False)),
            "nothing holds it back, at least 9 jobs go before it",
        ),
        (
            Explanation(ID, "waiting", blocks=(CAP,), position=standing(2)),
            "it waits: 3 of 3 jobs of log run; 2 jobs go before it",
        ),
        (Explanation(ID, "dispatched", "p-1"), "it is promised to p-1, which has not started it yet"),
        (Explanation(ID, "running", "p-1"), "it runs at p-1"),
    ],
)
async def test_the_summary_is_one_sentence(
    client: httpx.AsyncClient, world: World, explanation: Explanation, summary: str
) -> None:
    world.view.explanations[ID] = explanation
    shown = await get(client, WHY)
    assert shown["summary"] == summary
    assert shown["state"] == explanation.state.replace("waiting", "pending")


@pytest.mark.parametrize(
    ("stored", "is_ready", "summary"),
    [
        ({"state": "succeeded", "finished_at_ms": NOW + 5}, True, "it succeeded at 2030-01-01T00:00:00.005Z"),
        ({"state": "failed", "finished_at_ms": NOW}, True, "it failed at 2030-01-01T00:00:00.000Z"),
        ({"state": "cancelled"}, True, "it was cancelled"),
        ({}, True, "it is pending, and this replica has not seen it yet"),
        ({}, False, "it is pending, and this replica has not seen it yet: the mirror is not complete yet"),
        ({"state": "running", "processor": "p"}, True, "it is running, and this replica has not seen it yet"),
    ],
)
async def test_a_job_that_the_replica_does_not_know_is_read_from_the_database(
    client: httpx.AsyncClient, world: World, stored: dict[str, Any], is_ready: bool, summary: str
) -> None:
    await client.post("/v1/jobs", json={"definition": "log"})
    world.rewrite(Collection.JOBS, ID, **stored)
    world.view.ready = is_ready
    shown = await get(client, WHY)
    assert (shown["summary"], shown["state"], shown["seen"]) == (summary, stored.get("state", "pending"), False)
    assert (shown["blocks"], shown["standing"]) == ([], None)


async def test_an_unknown_job_is_not_found_and_an_unreadable_one_is_named(
    client: httpx.AsyncClient, world: World
) -> None:
    check_problem(await client.get(WHY), 404)
    await client.post("/v1/jobs", json={"definition": "log"})
    world.rewrite(Collection.JOBS, ID, priority="high")
    assert "priority" in check_problem(await client.get(WHY), 500)["detail"]
