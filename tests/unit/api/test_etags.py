"""``ETag``, ``If-Match`` and ``If-None-Match`` of all that is written by name; whoever races, no edit is lost."""

import asyncio
from typing import Any

import pytest

from hascheduler.model.collection import Collection
from tests.tiers import spread
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, Client, check_problem, create, patch

THINGS: dict[str, dict[str, Any]] = {
    "/v1/schedules/tick": TICK,
    "/v1/definitions/log": {"max_concurrency": 3},
    "/v1/lanes/bulk": {"weight": 3},
    "/v1/tenants/acme": {"max_running": 3},
}
CHANGES: dict[str, dict[str, Any]] = {
    "/v1/schedules/tick": {"overlap": "skip"},
    "/v1/definitions/log": {"max_concurrency": 4},
    "/v1/lanes/bulk": {"weight": 4},
    "/v1/tenants/acme": {"max_running": 4},
}
each_thing = pytest.mark.parametrize("path", THINGS)


async def made(client: Client, path: str) -> None:
    """It is there, at revision 1."""
    answer = await client.put(path, json=THINGS[path])
    assert answer.status_code == 201
    assert answer.headers["etag"] == '"1"'


@each_thing
@pytest.mark.parametrize(
    ("known", "status"),
    [
        ('"1"', 304), ('W/"1"', 304), ("*", 304), ('"0", "1"', 304), ('"2", "x", ""', 200), ("1", 422), (",", 422),
    ],
)  # fmt: skip
async def test_what_the_caller_has_is_not_sent_again(client: Client, path: str, known: str, status: int) -> None:
    await made(client, path)
    answer = await client.get(path, headers={"if-none-match": known})
    if status == 422:
        check_problem(answer, 422, "If-None-Match")
        return
    assert answer.status_code == status
    assert answer.headers["etag"] == '"1"'
    assert (answer.content == b"") == (status == 304)


REQUESTS: list[tuple[str, str, Any]] = [
    *(("PUT", path, body) for path, body in THINGS.items()),
    *(("PATCH", path, body) for path, body in CHANGES.items()),
    *(("DELETE", path, None) for path in THINGS),
    ("POST", "/v1/schedules/tick/pause", {"because": "x"}),
    ("POST", "/v1/schedules/tick/resume", {}),
]


@pytest.mark.parametrize("request_line", spread(REQUESTS, check=5), ids=lambda row: f"{row[0]} {row[1]}")
@pytest.mark.parametrize(
    ("tags", "is_meant"),
    [('"2"', True), ('"7", "2"', True), ("*", True), ('"1"', False), ('W/"2"', False), ('"x"', False)],
)
async def test_a_change_is_made_to_the_revision_that_it_is_meant_for_or_not_at_all(
    client: Client, world: World, request_line: tuple[str, str, Any], tags: str, is_meant: bool
) -> None:
    for path in THINGS:
        await made(client, path)
        await client.patch(path, json=CHANGES[path])
    before = world.everything()
    method, path, body = request_line
    answer = await client.request(method, path, json=body, headers={"if-match": tags})
    if is_meant:
        assert answer.status_code in (200, 204), answer.text
    else:
        problem = check_problem(answer, 412)
        assert problem["type"] == "urn:hascheduler:problem:revision-mismatch"
        assert "revision 2" in problem["detail"]
        assert world.everything() == before


@each_thing
@pytest.mark.parametrize(
    ("wanted", "known", "status"),
    [
        (None, "*", 412), (None, '"1"', 412), (None, 'W/"1"', 412), (None, '"2"', 200), (None, "1", 422),
        ('"1"', '"1"', 412), ('"1"', '"2"', 200), ("*", "*", 412), ('"2"', '"2"', 412), ('"1"', "*", 412),
    ],
)  # fmt: skip
async def test_a_replacement_keeps_to_both_headers(
    client: Client, world: World, path: str, *, wanted: str | None, known: str, status: int
) -> None:
    await made(client, path)
    before = world.everything()
    headers = {"if-none-match": known} | ({} if wanted is None else {"if-match": wanted})
    answer = await client.put(path, json=THINGS[path] | CHANGES[path], headers=headers)
    assert answer.status_code == status, answer.text
    assert (world.everything() == before) == (status != 200)


def overtaken(world: World, client: Client, path: str) -> None:
    """Another client is first with a change, once."""
    kind = path.split("/")[2]

    async def change() -> None:
        world.rewrite(Collection(kind), path.rpartition("/")[2], rev=2, labels={"first": "1"}, attempts_max=9)

    getattr(world, kind).overtakers.append(change)


@each_thing
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("wanted", ['"1"', "*"])
async def test_a_change_that_is_overtaken_is_made_only_if_any_revision_will_do(
    client: Client, world: World, path: str, method: str, wanted: str
) -> None:
    await made(client, path)
    overtaken(world, client, path)
    body = {"PUT": THINGS[path] | CHANGES[path], "PATCH": CHANGES[path], "DELETE": None}[method]
    answer = await client.request(method, path, json=body, headers={"if-match": wanted})
    if wanted == '"1"':
        check_problem(answer, 412)
        assert (await client.get(path)).headers["etag"] == '"2"'
        return
    assert answer.status_code == (204 if method == "DELETE" else 200)
    if method == "PATCH":
        shown = answer.json()
        assert shown["rev"] == 3
        assert shown.get("labels", {"first": "1"}) == {"first": "1"}
        assert shown.get("retry", {"attempts": 9})["attempts"] == 9


@each_thing
async def test_of_two_edits_of_one_revision_one_is_made(client: Client, path: str) -> None:
    await made(client, path)
    [(field, value)] = CHANGES[path].items()
    bodies = ({"labels": {"n": str(n)}} if "schedules" in path else {field: value + 1 + n} for n in range(2))
    answers = await asyncio.gather(*(client.patch(path, json=body, headers={"if-match": '"1"'}) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    assert (await client.get(path)).headers["etag"] == '"2"'


TICK_PATH = "/v1/schedules/tick"
KEY = {"Idempotency-Key": "deploy-7"}


async def test_of_puts_that_race_one_makes_it_and_the_others_replace_it(client: Client) -> None:
    bodies: list[dict[str, Any]] = [{**TICK, "labels": {"of": str(number)}} for number in range(3)]
    answers = await asyncio.gather(*(client.put(TICK_PATH, json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 201]
    assert (await client.get(TICK_PATH)).json()["rev"] == 3


async def test_a_put_that_loses_to_a_create_replaces_it(client: Client, world: World) -> None:
    create = world.schedules.create

    async def after_another(document: dict[str, Any]) -> Any:
        world.schedules.create = create  # type: ignore[method-assign]
        assert (await client.post("/v1/schedules", json=TICK)).status_code == 201
        return await create(document)

    world.schedules.create = after_another  # type: ignore[method-assign,assignment]
    answer = await client.put(TICK_PATH, json={**TICK, "overlap": "skip"})
    assert (answer.status_code, answer.json()["overlap"], answer.json()["rev"]) == (200, "skip", 2)


async def test_a_create_is_repeated_under_its_key(client: Client) -> None:
    made = await client.post("/v1/schedules", json=TICK, headers=KEY)
    again = await client.post("/v1/schedules", json=TICK, headers=KEY)
    assert (made.status_code, again.status_code, again.headers["idempotency-replayed"]) == (201, 200, "true")
    assert made.json() == again.json()
    check_problem(await client.post("/v1/schedules", json={**TICK, "overlap": "skip"}, headers=KEY), 409)
    check_problem(await client.post("/v1/schedules", json=TICK, headers={"Idempotency-Key": "other"}), 409)
    check_problem(await client.post("/v1/schedules", json=TICK), 409)


async def test_an_edit_that_loses_every_race_is_a_conflict(client: Client, world: World) -> None:
    await create(client)

    async def overtake() -> None:
        world.rewrite(Collection.SCHEDULES, "tick", rev=world.schedule()["rev"] + 1)

    world.schedules.overtakers = [overtake] * 5
    check_problem(await client.patch("/v1/schedules/tick", json={"overlap": "skip"}), 409)
    assert world.schedule()["policy"]["overlap"] == "allow"


async def test_a_fire_during_an_edit_is_no_conflict_and_stays(client: Client, world: World) -> None:
    await create(client)
    world.schedules.overtakers = [lambda: world.fire(NOW + 1_000)]
    shown = await patch(client, {"overlap": "skip"})
    assert (shown["rev"], shown["counts"]["fired"], shown["last_nominal_at"]) == (2, 1, "2030-01-01T00:00:01.000Z")
