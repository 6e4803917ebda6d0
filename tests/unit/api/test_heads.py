"""HEAD is answered wherever GET is: with the same head, and without a body."""

import asyncio

import httpx
import pytest

from tests.unit.api.doubles import World, description
from tests.unit.api.requests import check_problem, create

STREAMS = ("/v1/events", "/v1/cluster/live", "/v1/cluster/recording")
READ = [path for path, operations in description()["paths"].items() if "get" in operations and path not in STREAMS]
CHANGING = ("x-request-id", "date")


@pytest.mark.parametrize("path", [*READ, "/livez", "/metrics", "/openapi.json", "/docs", "/v1/nowhere"])
async def test_a_head_is_that_of_the_get(client: httpx.AsyncClient, path: str) -> None:
    await create(client)
    path = path.replace("{name}", "tick").replace("{id}", "job:1")
    read, asked = await client.get(path), await client.head(path)
    heads = [{name: value for name, value in one.headers.items() if name not in CHANGING} for one in (read, asked)]
    if path == "/metrics":  # it counts the requests, so it gets longer
        heads = [{**one, "content-length": ""} for one in heads]
    assert (asked.status_code, heads[1]) == (read.status_code, heads[0])
    assert asked.content == b""


@pytest.mark.parametrize("path", STREAMS[:2])
async def test_a_head_of_a_stream_ends_and_gives_its_place_back(
    client: httpx.AsyncClient, world: World, path: str
) -> None:
    async with asyncio.timeout(30):
        answer = await client.head(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [world.limits[kind].in_use for kind in ("followers", "viewers", "in_flight")] == [0, 0, 0]


async def test_a_path_without_get_has_no_head_either(client: httpx.AsyncClient) -> None:
    answer = await client.head("/v1/jobs:batch")
    assert answer.status_code == 405
    check_problem(await client.get("/v1/jobs:batch"), 405)
