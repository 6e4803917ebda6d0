"""``/v1/events``: what is sent, from where on, to whom, and when it ends; over real connections where that matters."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hascheduler.api.http.server import ApiServer
from hascheduler.api.ops import events
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.model.collection import Collection
from hascheduler.model.event import EventType, position
from hascheduler.model.token import Role, digest_of
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import Client, check_problem
from tests.unit.api.test_server import plain_client, serving
from tests.unit.daemon.happenings import happened, log_of

PATH = "/v1/events"
LIMIT_S = 20


class Sent:
    """The stream of one client, piece by piece."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self._lines = answer.aiter_lines()

    async def next(self) -> dict[str, str]:
        """The next event, with its fields; a comment is one of ``""``."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(LIMIT_S):
            async for line in self._lines:
                if not line and fields:
                    return fields
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        raise EOFError

    async def data(self) -> Any:
        """Of the next event; the lines that keep a silent stream open are passed over."""
        while "data" not in (said := await self.next()):
            pass
        return json.loads(said["data"])

    async def types(self, count: int) -> list[str]:
        return [(await self.next())["event"] for _ in range(count)]

    async def to_the_end(self) -> list[dict[str, str]]:
        said = []
        with contextlib.suppress(EOFError):
            while True:
                said.append(await self.next())
        return said


@contextlib.asynccontextmanager
async def following(server: ApiServer, query: str = "", headers: dict[str, str] | None = None) -> AsyncIterator[Sent]:
    """A client of its own; what a stream begins with is read already."""
    url = f"{PATH}?{query}"
    async with (
        plain_client(server.port) as client,
        client.stream("GET", url, headers=headers, timeout=LIMIT_S) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        sent = Sent(answer)
        assert await sent.next() == {"retry": "2000"}
        yield sent


@pytest.fixture
def log(world: World) -> EventLog:
    """That of the replica: it has begun at second 10, and tells of 11 and 12."""
    world.events = log_of(11, 12, begun_at=10)
    return world.events


@pytest.fixture
async def server(world: World, log: EventLog) -> AsyncIterator[ApiServer]:
    async with serving(world) as server:
        yield server


async def until_nobody_follows(log: EventLog) -> None:
    async with asyncio.timeout(LIMIT_S):
        while log.followers:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("query", "headers", "first"),
    [
        (f"after={position(11, 1)}", {}, 12),
        ("", {"Last-Event-ID": position(11, 1)}, 12),
        (f"after={position(12, 1)}", {"Last-Event-ID": position(10, 1)}, 11),
    ],
)
async def test_a_client_that_reconnects_resumes_where_it_was(
    server: ApiServer, query: str, headers: dict[str, str], first: int
) -> None:
    """A browser repeats the URL it began with, so what it says it has read comes first."""
    async with following(server, query, headers) as sent:
        assert (await sent.next())["id"] == position(first, 1)


@pytest.mark.parametrize(("silence_ms", "asked"), [(20, ""), (60_000, "&keepalive=200ms")])
async def test_silence_is_broken_with_the_id_to_come_back_with_as_often_as_the_client_asks(
    server: ApiServer, log: EventLog, monkeypatch: pytest.MonkeyPatch, silence_ms: int, asked: str
) -> None:
    monkeypatch.setattr(events, "_SILENCE_MS", silence_ms)
    async with following(server, f"job=another{asked}") as sent:
        await sent.next()
        log.append([happened(13)], position(14, 7))
        while (said := await sent.next()) == {"": "still here", "id": position(12, 1)}:
            pass
        assert said == {"": "still here", "id": position(14, 7)}


async def test_a_slow_reader_gets_lagging_and_may_reconnect(world: World) -> None:
    world.events = log = log_of(11, begun_at=10, events_max=3)
    async with serving(world) as server, following(server) as sent:
        await sent.next()
        # All at once, so that it can't keep up.
        for second in range(12, 20):
            log.append([happened(second)], position(second, 1))
        lagging = await sent.next()
        assert (lagging["event"], json.loads(lagging["data"]), "id" in lagging) == ("lagging", {"missed": 5}, False)
        assert await sent.to_the_end() == []
        await until_nobody_follows(log)
        async with following(server, f"after={position(17, 1)}") as again:
            assert await again.types(2) == ["submitted"] * 2


async def test_a_client_that_takes_nothing_any_more_is_given_up(
    server: ApiServer, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_WRITE_PATIENCE_S", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1_024)
    writer.write(f"GET {PATH} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
    await reader.readuntil(b"retry: 2000")
    large = "x" * 100_000
    async with asyncio.timeout(LIMIT_S):
        second = 12
        while log.followers:
            second += 1
            log.append([happened(second, large)], position(second, 1))
            await asyncio.sleep(0.005)
    writer.transport.abort()


async def test_the_end_of_the_replica_ends_the_stream_as_it_should(server: ApiServer, log: EventLog) -> None:
    async with following(server) as sent:
        await sent.next()
        log.close()
        assert await sent.to_the_end() == []
    async with plain_client(server.port) as client:
        check_problem(await client.get(PATH), 503)


async def test_a_stream_does_not_go_on_for_ever(
    server: ApiServer, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "EVENTS_S_MAX", 0)
    async with following(server) as sent:
        assert await sent.to_the_end() == []


async def token(client: Client, tenant: str, role: Role = Role.VIEWER) -> tuple[str, dict[str, str]]:
    """Its id, and the header."""
    answer = await client.post("/v1/tokens", json={"name": "t", "role": role.value, "tenant": tenant})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], {"Authorization": f"Bearer {answer.json()['token']}"}


async def test_a_token_of_one_tenant_sees_the_events_of_its_jobs(server: ApiServer, log: EventLog) -> None:
    async with plain_client(server.port) as client:
        _, header = await token(client, "acme")
        assert (await client.get(f"{PATH}?tenant=other", headers=header)).status_code == 403
    async with following(server, headers=header) as sent:
        await sent.next()
        log.append([happened(13), happened(14, tenant=None), happened(15, tenant="acme")], position(15, 1))
        assert (await sent.data())["tenant"] == "acme"


async def test_a_session_that_ends_ends_its_streams(
    world: World, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_SILENCE_MS", 20)
    world.auth = replace(world.auth, required=True, admin_digest=digest_of("the settings' own"))
    boss = {"Authorization": "Bearer the settings' own"}
    async with serving(world) as server, plain_client(server.port) as client:
        client.headers.update(boss)
        _, header = await token(client, "*")
        secret = header["Authorization"].partition(" ")[2]
        answer = await client.post("/ui/session", json={"token": secret})
        client.cookies.clear()
        cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
        async with following(server, headers=cookie) as sent:
            await sent.next()
            log.append([happened(13, "job:1")], position(13, 1))
            assert (await sent.data())["job"] == "job:1"
            world.rewrite(Collection.TOKENS, digest_of(secret), expires_at_ms=NOW)
            assert all(set(said) == {"", "id"} for said in await sent.to_the_end())


async def test_only_what_is_asked_for_is_sent(
    server: ApiServer, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_SILENCE_MS", 20)
    after = f"after={position(12, 1)}"
    streams = {
        "type=failed&type=cancelled": ["failed", "cancelled"],
        "job=fire:tick:1": ["started"],
        "schedule=tick": ["started"],
        "definition=resize": ["cancelled"],
        "tenant=acme": ["failed"],
    }
    log.append(
        [
            happened(13, "fire:tick:1", type=EventType.STARTED, schedule="tick"),
            happened(14, type=EventType.FAILED, tenant="acme"),
            happened(15, type=EventType.CANCELLED, definition="resize"),
        ],
        position(15, 1),
    )
    for query, types in streams.items():
        async with following(server, f"{query}&{after}") as sent:
            assert await sent.types(len(types)) == types
            assert await sent.next() == {"": "still here", "id": position(15, 1)}
