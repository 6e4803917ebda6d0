"""A lane that is not defined is taken, with the defaults of one, and answered with a warning: it may be misspelt."""

import httpx
import pytest

from tests.unit.api.requests import TICK, create

BATCH_LANE = {"weight": 2}


def warnings(answer: httpx.Response) -> list[str]:
    assert answer.is_success, answer.text
    return answer.headers.get_list("warning")


@pytest.fixture
async def with_lane(client: httpx.AsyncClient) -> httpx.AsyncClient:
    await client.put("/v1/lanes/bulk", json=BATCH_LANE)
    return client


async def test_a_submit_to_an_undefined_lane_names_the_nearest(with_lane: httpx.AsyncClient) -> None:
    answer = await with_lane.post("/v1/jobs", json={"definition": "log", "lane": "bluk"})
    [warning] = warnings(answer)
    assert warning == "299 - \"lane: no lane 'bluk' is defined, so it has the defaults of one; expected bulk\""


async def test_schedules_are_warned_of_when_they_are_written(with_lane: httpx.AsyncClient) -> None:
    body = {**TICK, "job": {"definition": "log", "lane": "bulk2"}}
    assert len(warnings(await with_lane.post("/v1/schedules", json=body))) == 1
    assert len(warnings(await with_lane.put("/v1/schedules/tick", json=body))) == 1
    assert len(warnings(await with_lane.patch("/v1/schedules/tick", json={"labels": {"a": "b"}}))) == 1
    assert warnings(await with_lane.get("/v1/schedules/tick")) == []
    assert warnings(await with_lane.patch("/v1/schedules/tick", json={"job": {"lane": "bulk"}})) == []


async def test_a_batch_warns_once_of_each_lane_and_not_of_hundreds(with_lane: httpx.AsyncClient) -> None:
    jobs = [{"definition": "log", "lane": lane} for lane in ("a", "a", "bulk", "b")]
    assert len(warnings(await with_lane.post("/v1/jobs:batch", json={"jobs": jobs}))) == 2
    many = [{"definition": "log", "lane": f"lane-{number}"} for number in range(300)]
    assert len(warnings(await with_lane.post("/v1/jobs:batch", json={"jobs": many}))) == 10


async def test_a_name_that_no_header_can_hold(client: httpx.AsyncClient) -> None:
    await create(client)
    [warning] = warnings(await client.post("/v1/jobs", json={"definition": "log", "lane": 'ü"\\'}))
    assert warning.isascii()
    assert warning.startswith('299 - "lane: ')
    assert warning.endswith('"')
