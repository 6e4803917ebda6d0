"""What a page of another site makes a browser send: DNS rebinding and forged requests."""

import re
from collections.abc import Iterator

import httpx
import pytest

from hascheduler.api.app import OPEN_PATHS, PUBLIC_PAGES
from hascheduler.api.edge import Edge
from hascheduler.api.middleware.auth import AuthConfig
from tests.tiers import spread
from tests.unit.api.doubles import World, description
from tests.unit.api.requests import check_problem
from tests.unit.api.tokens import Guarded

EMPTY = World().everything()


def operations() -> Iterator[tuple[str, str]]:
    for pattern, path in description()["paths"].items():
        for method in path:
            yield method.upper(), re.sub(r"\{\w+\}", "any", pattern)


OPERATIONS = list(operations())
CHANGES = [operation for operation in OPERATIONS if operation[0] != "GET"]
PATHS = sorted({path for _, path in OPERATIONS} | OPEN_PATHS)
ENDING = [path for path in PATHS if path not in ("/v1/events", "/v1/cluster/live")]
"""Those whose answer to GET comes to an end."""


def listening(app: Edge, world: World, lock: AuthConfig) -> httpx.AsyncClient:
    """A client of a replica with that lock; the test says which Host it asks for."""
    world.auth = lock
    app.services = world.services()
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8080")


# Names


@pytest.mark.parametrize("path", PATHS)
async def test_a_name_that_was_made_to_lead_here_is_not_answered(app: Edge, world: World, path: str) -> None:
    async with listening(app, world, AuthConfig()) as client:
        problem = check_problem(await client.get(path, headers={"Host": "evil.example"}), 421)
    assert problem["type"] == "urn:hascheduler:problem:foreign-host"
    assert "HASCHEDULER_HTTP_ALLOWED_HOSTS" in problem["detail"]


LOOPBACK = AuthConfig(hosts=frozenset({"127.0.0.1", "scheduler.corp"}))
ANYWHERE = AuthConfig(hosts=frozenset({"0.0.0.0", "scheduler.corp"}), any_address=True)


@pytest.mark.parametrize(
    ("host", "on_loopback", "anywhere"),
    [
        ("127.0.0.1", True, True),
        ("127.0.0.1:8080", True, True),
        ("127.8.9.10:1", True, True),
        ("localhost", True, True),
        ("LocalHost:8080", True, True),
        ("localhost.", True, True),
        ("a.localhost:8080", True, True),
        ("[::1]", True, True),
        ("[::1]:8080", True, True),
        ("[0:0:0:0:0:0:0:1]:8080", True, True),
        ("[::ffff:127.0.0.1]:8080", True, True),
        ("scheduler.corp:8080", True, True),
        ("SCHEDULER.corp", True, True),
        ("10.1.2.3:8080", False, True),
        ("[fd00::1]:8080", False, True),
        ("0.0.0.0:8080", False, True),
        ("evil.example", False, False),
        ("evil.example:8080", False, False),
        ("127.0.0.1.evil.example", False, False),
        ("127.0.0.1@evil.example", False, False),
        ("localhost.evil.example", False, False),
        ("evil-localhost", False, False),
        ("xlocalhost", False, False),
        ("scheduler.corp.evil.example", False, False),
        ("localhost, evil.example", False, False),
        ("localhost:", False, False),
        ("localhost:x", False, False),
        ("[::1", False, False),
        ("::1", False, False),
        ("2130706433", False, False),
        ("0x7f.1", False, False),
        ("١٢٧.0.0.1", False, False),
        ("", False, False),
    ],
)
async def test_without_tokens_only_own_names_are_answered(
    app: Edge, world: World, host: str, on_loopback: bool, anywhere: bool
) -> None:
    for lock, answered in ((LOOPBACK, on_loopback), (ANYWHERE, anywhere)):
        async with listening(app, world, lock) as client:
            answer = await client.get("/v1/lanes", headers=[(b"host", host.encode())])
        assert answer.status_code == (200 if answered else 421), lock


async def test_two_hosts_are_none(app: Edge, world: World) -> None:
    async with listening(app, world, AuthConfig()) as client:
        answer = await client.get("/v1/lanes", headers=[("Host", "localhost"), ("Host", "evil.example")])
    check_problem(answer, 421)


# Other sites


@pytest.mark.parametrize("required", spread([False, True], check=1), ids="token required: {}".format)
@pytest.mark.parametrize(("method", "path"), CHANGES, ids=[f"{method} {path}" for method, path in CHANGES])
async def test_no_other_site_changes_anything(app: Edge, world: World, method: str, path: str, required: bool) -> None:
    guarded = Guarded(app, world, required=required)
    secret = await guarded.token("admin")
    before = world.everything()
    async with guarded.showing(secret) as client:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            problem = check_problem(await client.request(method, path, headers=headers), 403)
            assert problem["type"] == "urn:hascheduler:problem:foreign-origin"
            assert "expected" in problem["detail"]
    assert world.everything() == before


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ({}, True),
        ({"Origin": "http://127.0.0.1:8080"}, True),
        ({"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Host": "localhost", "Origin": "http://localhost"}, True),
        ({"Host": "localhost:80", "Origin": "http://localhost"}, True),
        ({"Host": "localhost", "Origin": "http://localhost:80"}, True),
        ({"Host": "localhost", "Origin": "https://localhost"}, True),  # behind something that speaks TLS
        ({"Host": "[::1]:8080", "Origin": "http://[::1]:8080"}, True),
        ({"Origin": "http://127.0.0.1:3000"}, False),
        ({"Origin": "http://127.0.0.1"}, False),
        ({"Origin": "http://localhost:8080"}, False),
        ({"Origin": "http://127.0.0.1:8080.evil.example"}, False),
        ({"Origin": "http://evil@127.0.0.1:8080"}, False),
        ({"Origin": "http://127.0.0.1:8080/"}, False),
        ({"Origin": "chrome-extension://127.0.0.1:8080"}, False),
        ({"Origin": "file://"}, False),
        ({"Origin": ""}, False),
        ({"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),  # another port of this host, a neighbour of this domain
        ({"Sec-Fetch-Site": "CROSS-SITE"}, False),
        ({"Sec-Fetch-Site": "brand-new"}, False),
    ],
)
async def test_a_change_is_asked_for_by_own_pages_and_by_programs(
    app: Edge, world: World, headers: dict[str, str], passes: bool
) -> None:
    async with listening(app, world, AuthConfig()) as client:
        answer = await client.post("/v1/schedules/none/pause", headers=headers)
    check_problem(answer, 404 if passes else 403)


async def test_a_second_origin_does_not_hide_behind_the_first(app: Edge, world: World) -> None:
    async with listening(app, world, AuthConfig()) as client:
        headers = [("Origin", "http://127.0.0.1:8080"), ("Origin", "https://evil.example")]
        check_problem(await client.post("/v1/schedules/none/pause", headers=headers), 403)


async def test_without_tokens_other_sites_do_not_read_either(app: Edge, world: World) -> None:
    """They could not see the answer; the waits would hold places open all the same."""
    async with listening(app, world, AuthConfig()) as client:
        for path in PATHS:
            answer = await client.get(path, headers={"Sec-Fetch-Site": "cross-site"})
            if path in PUBLIC_PAGES:  # a link to it may stand anywhere
                assert answer.status_code == (404 if path == "/" else 200)
            else:
                check_problem(answer, 403)


async def test_no_answer_lets_other_sites_read_it(app: Edge, world: World) -> None:
    async with listening(app, world, AuthConfig()) as client:
        for path in ENDING:
            answer = await client.options(path, headers={"Origin": "https://evil.example"})
            assert not [name for name in answer.headers if name.startswith("access-control-")]
            answer = await client.get(path)
            assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_no_answer_is_taken_for_another_type(app: Edge, world: World) -> None:
    async with listening(app, world, AuthConfig()) as client:
        for path in [*ENDING, "/nowhere"]:
            assert (await client.get(path)).headers.get_list("x-content-type-options") == ["nosniff"], path
        assert (await client.get("/", headers={"Host": "evil"})).headers["x-content-type-options"] == "nosniff"
