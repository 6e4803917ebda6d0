"""The list of changes of leadership."""

import httpx
import pytest

from hascheduler.schema.failover import Failover
from hascheduler.schema.noun import example_of
from tests.factories import make_failover
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem

PATH = "/v1/cluster/failovers"


async def test_they_are_listed_the_latest_first(client: httpx.AsyncClient, world: World) -> None:
    assert (await client.get(PATH)).json() == {"items": []}
    bare = make_failover(1, gap_ms=None, first_decision_at_ms=None)
    for failover in (bare, make_failover(2), make_failover(8, holder="replica-2.5f2c9a01")):
        await world.failovers.save(failover)
    await world.failovers.save(make_failover(9, shard="other"))
    items = (await client.get(PATH)).json()["items"]
    assert [item["term"] for item in items] == [8, 2, 1]
    assert items[0] == example_of(Failover)
    assert (items[2]["gap_ms"], items[2]["first_decision_at"]) == (None, None)
    assert [item["term"] for item in (await client.get(f"{PATH}?limit=2")).json()["items"]] == [8, 2]


@pytest.mark.parametrize("query", ["limit=0", "limit=21", "limit=-1", "limit=many", "limit=", "after=3"])
async def test_a_parameter_that_is_none_is_refused(client: httpx.AsyncClient, query: str) -> None:
    check_problem(await client.get(f"{PATH}?{query}"), 422, query.partition("=")[0])


async def test_without_a_database_the_list_is_away(client: httpx.AsyncClient, world: World) -> None:
    world.go_away()
    check_problem(await client.get(PATH), 503, None)
