"""Changes of leadership: the latest beside the cluster, all of them in a list, the same for every tenant."""

import httpx
import pytest
from pydantic import BaseModel

from hascheduler.api.ops.cluster import ClusterResponse
from hascheduler.api.ops.failovers import FailoverResponse, FailoversResponse
from hascheduler.model.failover import Cause, FailoverEnd
from tests.factories import make_failover
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem

PATH = "/v1/cluster/failovers"


async def test_the_latest_is_shown_beside_the_cluster(client: httpx.AsyncClient, world: World) -> None:
    assert (await client.get("/v1/cluster")).json()["failover"] is None
    world.view.failover = make_failover(
        holder="replica-2.5f2c9a01", previous_holder="replica-1.3f9a0c11", began_seq=1042
    )
    shown = (await client.get("/v1/cluster")).json()["failover"]
    [example] = FailoverResponse.model_json_schema()["examples"]
    assert shown == example
    FailoverResponse.model_validate(shown)


@pytest.mark.parametrize("model", [ClusterResponse, FailoversResponse])
def test_examples_are_what_they_are_examples_of(model: type[BaseModel]) -> None:
    [example] = model.model_json_schema()["examples"]
    shown = model.model_validate(example).model_dump(mode="json", by_alias=True)
    assert shown == example


async def test_all_are_listed_the_latest_first(client: httpx.AsyncClient, world: World) -> None:
    assert (await client.get(PATH)).json() == {"items": []}
    bare = make_failover(
        1, cause=Cause.FIRST, previous_term=None, previous_holder=None, last_sign_at_ms=None, last_decision_at_ms=None,
        deciding_at_ms=None, first_decision_at_ms=None, first_dispatch_at_ms=None, ended=FailoverEnd.TERM_ENDED,
    )  # fmt: skip
    for failover in (bare, make_failover(2), make_failover(3), make_failover(9, shard="other")):
        await world.failovers.save(failover)
    items = (await client.get(PATH)).json()["items"]
    assert [item["term"] for item in items] == [3, 2, 1]
    assert items[2]["cause"] == "first"
    spans = ("detection_ms", "takeover_ms", "first_decision_ms", "gap_ms")
    assert {items[2][name] for name in spans} == {None}
    assert [item["term"] for item in (await client.get(f"{PATH}?limit=2")).json()["items"]] == [3, 2]


@pytest.mark.parametrize("limit", ["0", "51", "-1", "many", ""])
async def test_a_limit_that_is_none_is_refused(client: httpx.AsyncClient, limit: str) -> None:
    check_problem(await client.get(f"{PATH}?limit={limit}"), 422, "limit")


async def test_an_unknown_parameter_is_refused(client: httpx.AsyncClient) -> None:
    check_problem(await client.get(f"{PATH}?after=3"), 422, "after")


async def test_without_a_database_the_list_is_away_and_the_latest_is_not(
    client: httpx.AsyncClient, world: World
) -> None:
    world.view.failover = make_failover()
    world.go_away()
    check_problem(await client.get(PATH), 503, None)
    assert (await client.get("/v1/cluster")).json()["failover"]["term"] == 8
