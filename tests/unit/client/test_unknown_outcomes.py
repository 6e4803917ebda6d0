"""A write that was answered 503, or not at all, although it was carried out: the SDK looks before it repeats it."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from hascheduler.client import AsyncScheduler, Conflict, Definition, Lane, Unavailable
from tests.unit.api.doubles import World, app_of
from tests.unit.client.faces import Face, answered_by, scheduler_over

EVERY: Any = {"type": "interval", "every": "60s"}
ANOTHER: Any = {"type": "interval", "every": "61s"}
LOG: Any = {"definition": "log", "payload": {"every": "60s"}}


class Losing(httpx2.AsyncBaseTransport):
    """A replica that carries out the first write and does not answer it: ``how`` says what the client hears instead."""

    def __init__(self, world: World, how: Exception | int | str) -> None:
        self._replica = httpx2.ASGITransport(app_of(world))
        self._world = world
        self._how: Exception | int | str | None = how
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(f"{request.method} {request.url.path}")
        if self._how is None or request.method == "GET":
            return await self._replica.handle_async_request(request)
        how, self._how = self._how, None
        if isinstance(how, str):
            self._world.connection.fail_next(of=how, carried_out=True)
            return await self._replica.handle_async_request(request)
        await self._replica.handle_async_request(request)
        if isinstance(how, int):
            return httpx2.Response(how, text="a proxy")
        raise how


LOST = [httpx2.ReadTimeout("slow"), 502]
Write = Callable[[AsyncScheduler], Awaitable[Any]]
NAME = "/v1/definitions/log"
WRITES: dict[str, tuple[str, Write, Callable[[Any], bool]]] = {
    "create a schedule": (
        "schedules.create",
        lambda scheduler: scheduler.schedules.create("nightly", EVERY, LOG, labels={"a": "b"}),
        lambda made: made["name"] == "nightly",
    ),
    "create a definition, if there is none": (
        "definitions.create",
        lambda scheduler: scheduler.definitions.put(
            Definition(name="log", max_concurrency=3, timeout_ms=90_000), if_none_match="*"
        ),
        lambda made: made.max_concurrency == 3,
    ),
    "replace a definition as it was read": (
        "definitions.replace",
        lambda scheduler: scheduler.definitions.put(Definition(name="there", max_concurrency=3), if_match=1),
        lambda made: made.max_concurrency == 3,
    ),
    "pause a schedule as it was read": (
        "schedules.edit",
        lambda scheduler: scheduler.schedules.pause("there", if_match=1),
        lambda made: made["paused"] is True,
    ),
    "delete a schedule": ("schedules.delete", lambda scheduler: scheduler.schedules.delete("there"), bool),
    "submit a job": ("jobs.submit", lambda scheduler: scheduler.submit("log"), lambda job: job.replayed),
    "trigger a schedule": (
        "jobs.submit", lambda scheduler: scheduler.schedules.trigger("there"), lambda job: job.replayed,
    ),
}  # fmt: skip


async def set_up(world: World) -> None:
    scheduler = scheduler_over(httpx2.ASGITransport(app_of(world)))
    await scheduler.schedules.create("there", EVERY, LOG)
    await scheduler.definitions.put(Definition(name="there"))
    await scheduler.lanes.put(Lane(name="there"))


def losing(world: World, how: Exception | int | str) -> AsyncScheduler:
    return scheduler_over(Losing(world, how), "http://api", "http://a")


@pytest.mark.parametrize("what", WRITES)
@pytest.mark.parametrize("how", [*LOST, None], ids=repr)
async def test_what_was_carried_out_is_not_refused_as_it_is_there(
    world: World, what: str, how: Exception | int | None
) -> None:
    exchange, write, is_right = WRITES[what]
    await set_up(world)
    made = await write(losing(world, exchange if how is None else how))
    assert is_right(made), made


@pytest.mark.parametrize("how", [*LOST, "schedules.create"], ids=repr)
async def test_a_name_that_another_has_taken_is_refused_all_the_same(world: World, how: Exception | int | str) -> None:
    await set_up(world)
    with pytest.raises(Conflict, match="409"):
        await losing(world, how).schedules.create("there", ANOTHER, LOG)


async def test_a_token_whose_secret_got_lost_is_revoked_before_another_is_made(world: World) -> None:
    scheduler = losing(world, "tokens.create")
    made = await scheduler.tokens.create("nightly", "viewer")
    assert [token["id"] async for token in scheduler.tokens.list()] == [made["id"]]


async def test_a_token_of_which_nothing_is_known_is_not_made_again(world: World) -> None:
    replica = Losing(world, httpx2.ReadTimeout("slow"))
    with pytest.raises(Unavailable):
        await scheduler_over(replica, "http://api", "http://a").tokens.create("nightly", "viewer")
    assert replica.asked == ["POST /v1/tokens"]


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_while_nobody_can_tell_nothing_is_sent_again(kind: str) -> None:
    """And what is raised in the end is that the outcome is unknown, with the id to ask by."""
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.method)
        told = {"type": "urn:hascheduler:problem:outcome-unknown", "detail": "outcome unknown", "id": "nightly"}
        return httpx2.Response(503, json=told if request.method == "POST" else {}, headers={"Retry-After": "0"})

    face: Face = answered_by(kind, answer, "http://a", "http://b", patience=1)
    with pytest.raises(Unavailable, match="outcome unknown") as unavailable:
        await face.ask.schedules.create("nightly", EVERY, LOG)
    assert unavailable.value.problem is not None
    assert unavailable.value.problem.id == "nightly"
    assert asked.count("POST") == 1
    assert asked.count("GET") > 0


@pytest.mark.parametrize("asked", [
    {"trigger": {"type": "interval", "every": 90.5}, "job": LOG},
    {"trigger": {"type": "interval", "every": "1m30s", "anchor": "2030-01-01T02:00:00+02:00"}, "job": LOG},
    {"trigger": {"type": "cron", "expression": "30 2 * * *", "timezone": "Europe/Paris"}, "job": LOG, "paused": True},
    {"trigger": {"type": "times", "at": ["2031-01-01T00:00:00Z", "2032-01-01T00:00:00+01:00"]}, "job": LOG},
    {"trigger": {"type": "once", "at": "2031-01-01T00:00:00Z"}, "job": {**LOG, "priority": 7, "target": None}},
    {"trigger": EVERY, "job": LOG, "misfire": {"catch_up": "all", "grace": 5}, "overlap": "skip"},
    {"trigger": EVERY, "jobs": [{"ref": "a", **LOG}, {"ref": "b", **LOG, "depends_on": ["a"]}], "labels": {"a": "b"}},
])  # fmt: skip
async def test_a_schedule_is_recognised_in_whatever_form_it_was_asked_for(world: World, asked: dict[str, Any]) -> None:
    scheduler = losing(world, httpx2.ReadTimeout("slow"))
    shown = await scheduler.schedules.create_document({"name": "nightly", **asked})
    assert shown["name"] == "nightly"
