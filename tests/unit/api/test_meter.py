"""Every request is counted under its route's pattern, and every refused submit by its reason."""

import httpx
import pytest

from hascheduler.api.http.limits import Limit
from tests.unit.api.doubles import World
from tests.unit.telemetry.scraping import scrape


async def requests(world: World) -> dict[tuple[str, str, str], float]:
    """What was counted, by method, route and status."""
    told = scrape(world.metrics.registry).samples
    return {
        (dict(labels)["method"], dict(labels)["route"], dict(labels)["status"]): value
        for (name, labels), value in told.items()
        if name == "hascheduler_http_requests_total"
    }


@pytest.mark.parametrize(
    ("method", "path", "counted"),
    [
        ("GET", "/v1/jobs/job:1", ("GET", "/v1/jobs/{id}", "404")),
        ("GET", "/v1/jobs/job:1/why", ("GET", "/v1/jobs/{id}/why", "404")),
        ("GET", "/v1/schedules/tick", ("GET", "/v1/schedules/{name}", "404")),
        ("GET", "/v1/definitions", ("GET", "/v1/definitions", "200")),
        ("GET", "/livez", ("GET", "/livez", "200")),
        ("GET", "/metrics", ("GET", "/metrics", "200")),
        ("GET", "/no/such", ("GET", "none", "404")),
        ("BREW", "/v1/jobs", ("other", "/v1/jobs", "405")),
    ],
)
async def test_a_request_is_counted_under_its_pattern(
    client: httpx.AsyncClient, world: World, method: str, path: str, counted: tuple[str, str, str]
) -> None:
    await client.request(method, path)
    told = await requests(world)
    if path != "/metrics":
        assert told == {counted: 1}
    else:
        await client.request(method, path)
        assert (await requests(world))[counted] == 2


async def test_a_submit_is_counted_and_timed(client: httpx.AsyncClient, world: World) -> None:
    for _ in range(3):
        await client.post("/v1/jobs", json={"definition": "log"})
    assert await requests(world) == {("POST", "/v1/jobs", "201"): 3}
    told = scrape(world.metrics.registry)
    assert told.of("hascheduler_http_request_seconds_count", method="POST", route="/v1/jobs") == 3


async def test_a_connection_that_is_refused_unread_is_counted(client: httpx.AsyncClient, world: World) -> None:
    world.limits["in_flight"] = Limit("some", 0)
    assert (await client.get("/v1/jobs")).status_code == 503
    assert await requests(world) == {("GET", "none", "503"): 1}


async def test_a_scrape_and_the_probes_are_answered_whatever_is_in_flight(
    client: httpx.AsyncClient, world: World
) -> None:
    world.limits["in_flight"] = Limit("some", 0)
    for path in ("/metrics", "/livez", "/readyz", "/leaderz"):
        assert (await client.get(path)).status_code == 200, path


@pytest.mark.parametrize(
    ("path", "states", "status"),
    [
        ("/readyz", {"leading": False}, 200),
        ("/readyz", {"stopping": True}, 503),
        ("/livez", {"stopping": True}, 200),
        ("/leaderz", {"leading": True}, 200),
        ("/leaderz", {"leading": False}, 503),
    ],
)
async def test_the_api_port_and_the_health_port_give_the_same_answers(
    client: httpx.AsyncClient, world: World, path: str, states: dict[str, bool], status: int
) -> None:
    for name, value in states.items():
        setattr(world.view, name, value)
    answer = await client.get(path)
    assert answer.status_code == status
    assert bool(answer.json()["reason"]) == (status == 503)
