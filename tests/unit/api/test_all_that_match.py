"""What is counted, grouped by its fault, or changed of all jobs or schedules that match a filter, and of no others."""

import asyncio
from collections.abc import Collection as SomeOf
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.jobs import all_that_match as of_jobs
from hascheduler.api.schedules import all_that_match as of_schedules
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.partition import partition_of
from hascheduler.model.values.error_patterns import NO_ERROR, error_pattern, error_regex, text_of_pattern
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import DELETED_IN_MS
from tests.factories import ERRORS, make_job
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import Client, check_problem, create, get, post
from tests.unit.api.test_schedule_lists import some as some_schedules
from tests.unit.api.tokens import Guarded

STATES = ("pending", "dispatched", "running", "succeeded", "failed", "cancelled")


def put(world: World, id: str, state: str = "pending", error: str | None = None, **fields: Any) -> None:
    document = {**new_job_document(make_job(id, tenant="acme")), "state": state, "error": error, **fields}
    assert world.database.insert(Collection.JOBS, document)


def some(world: World) -> None:
    for number, state in enumerate((*STATES, "failed")):
        put(world, f"job:{number:04d}", state, submitted_at_ms=NOW + number, labels={"even": str(number % 2 == 0)})
    put(world, f"fire:tick:{NOW}", "failed", schedule="tick", definition="sleep", submitted_at_ms=NOW + 10)
    put(world, f"fire:tick-2:{NOW}", "running", schedule="tick-2", tenant="other", submitted_at_ms=NOW + 11)


async def counts(client: Client, query: str = "") -> dict[str, int]:
    answer = await get(client, f"/v1/jobs:counts?{query}")
    assert (answer.pop("exact"), answer.pop("at_least")) == (True, [])
    assert answer["matched"] == sum(answer[state] for state in STATES)
    return {state: answer[state] for state in STATES if answer[state]}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("label=even=True", {"pending": 1, "running": 1, "failed": 2}),
        ("state=failed&state=running", {"failed": 3, "running": 7}),
        ("id=fire:", {"failed": 1, "running": 1}),
        ("error=^$", {"failed": 3}),
        ("failed_since=2030-01-01T00:00:00Z", {}),
        ("schedule=tick", {"failed": 1}),
        ("since=2030-01-01T00:00:00.005Z", {"cancelled": 1, "failed": 2, "running": 1}),
        ("definition=log&tenant=acme&until=2030-01-01T00:00:00.002Z", {"pending": 1, "dispatched": 1}),
        ("unschedulable=true", {"pending": 1}),
        ("", {"pending": 9, "running": 7, "succeeded": 1, "failed": 3, "cancelled": 1}),
        ("tenant=acme", {"pending": 5, "succeeded": 1, "failed": 3, "cancelled": 1}),
        ("definition=sleep", {"running": 4, "failed": 1}),
    ],
)
async def test_jobs_are_counted_by_state(client: Client, world: World, query: str, expected: dict[str, int]) -> None:
    """What the mirror counts is told apart by its numbers."""
    some(world)
    world.view.never_to_run = {"job:0000"}
    world.view.live = {
        (None, None): {"pending": 9, "running": 7},
        (None, "acme"): {"pending": 5},
        ("sleep", None): {"running": 4},
    }
    assert await counts(client, query) == expected


async def test_where_there_may_be_more_a_count_says_so(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.api.jobs.read.COUNTED_MAX", 1)
    some(world)
    answer = await get(client, "/v1/jobs:counts?state=failed&state=succeeded")
    assert (answer["failed"], answer["succeeded"]) == (1, 1)
    assert (answer["exact"], answer["at_least"]) == (False, ["failed"])


def failures(world: World) -> None:
    for number in range(5):
        put(
            world,
            f"job:{number}",
            "failed",
            f"TimeoutError: no answer in {number} s\nat line {number}",
            finished_at_ms=NOW + 1_000 * number,
            submitted_at_ms=NOW + number,
            target=f"host-{number % 2}",
        )
    put(world, "job:5", "failed", "TimeoutError: no answer in 9 s", definition="sleep", submitted_at_ms=NOW)
    put(world, "job:6", "failed", None, definition="sleep", tenant="other", submitted_at_ms=NOW)
    put(world, "job:7", "succeeded", None)


async def test_equal_faults_of_one_definition_are_one_group(client: Client, world: World) -> None:
    failures(world)
    answer = await get(client, "/v1/jobs:errors")
    assert [(group["definition"], group["fault"], group["count"]) for group in answer["groups"]] == [
        ("log", "TimeoutError: no answer in <n> s", 5),
        ("sleep", "TimeoutError: no answer in <n> s", 1),
        ("sleep", "no error reported", 1),
    ]
    assert answer["groups"][0] == {
        "definition": "log",
        "fault": "TimeoutError: no answer in <n> s",
        "count": 5,
        "first_at": "2030-01-01T00:00:00.000Z",
        "last_at": "2030-01-01T00:00:04.000Z",
        "job": "job:4",
        "error": "TimeoutError: no answer in 4 s",
        "filter": {
            "state": "failed", "definition": "log", "tenant": "acme", "schedule": None, "target": None, "batch": None,
            "error": "^TimeoutError: no answer in <n> s$", "failed_since": None, "ended_before": None,
            "id": None, "since": None, "until": None, "unschedulable": False, "labels": {},
        },
    }  # fmt: skip
    assert (answer["others"], answer["examined"], answer["complete"]) == ({"groups": 0, "count": 0}, 7, True)


async def test_the_largest_groups_are_shown_and_the_rest_summed(client: Client, world: World) -> None:
    for number in range(60):
        word = "".join(chr(ord("g") + int(digit)) for digit in str(number))
        for twice in range(1 + (number == 59)):
            put(world, f"job:{number}-{twice}", "failed", f"fault {word}", submitted_at_ms=NOW + number)
    answer = await get(client, "/v1/jobs:errors")
    assert [group["count"] for group in answer["groups"]] == [2, *[1] * 49]
    assert answer["others"] == {"groups": 10, "count": 10}


async def test_hostile_errors_are_shown_as_short_text(client: Client, world: World) -> None:
    put(world, "job:1", "failed", "\x1b[31m\u202e" + "a" * 1_000_000)
    put(world, "job:2", "failed", "mongodb://user:secret@host/ refused hsk_" + "x" * 43)
    world.rewrite_job("job:1", definition=["broken"], finished_at_ms="soon", submitted_at_ms=None)
    answer = await client.get("/v1/jobs:errors")
    assert answer.status_code == 200, answer.text
    assert len(answer.content) < 4_000
    assert "secret" not in answer.text
    assert "xxx" not in answer.text
    assert not {"\x1b", "\u202e"} & set(answer.text)


async def test_a_token_of_one_tenant_counts_and_groups_its_own(acme: Client, world: World) -> None:
    some(world)
    world.view.live = {(None, None): {"pending": 9, "running": 9}, (None, "acme"): {"pending": 1}}
    assert await counts(acme) == {"pending": 1, "succeeded": 1, "failed": 3, "cancelled": 1}
    assert await counts(acme, "id=fire:") == {"failed": 1}
    assert [job["id"] for job in (await get(acme, "/v1/jobs?id=fire:"))["items"]] == [f"fire:tick:{NOW}"]
    world.rewrite_job(f"fire:tick-2:{NOW}", state="failed", finished_at_ms=WallMs(NOW))
    assert (await get(acme, "/v1/jobs:errors"))["examined"] == 3
    for path in ("/v1/jobs:counts", "/v1/jobs:errors"):
        check_problem(await acme.get(f"{path}?tenant=other"), 403, "tenant")


@pytest.mark.parametrize(
    ("errors", "pattern"),
    [
        (("timed out after 30 s", "timed out after 1.5 s"), "timed out after <n> s"),
        (("Timeout: 10.0.0.1:27017 is away", "Timeout: 192.168.1.20:27018 is away"), "Timeout: <n> is away"),
        (('no file "a b.png"', "no file `c`", "no file ''"), 'no file "…"'),
        (("object at 0x7f3a9c2d1e50", "object at 0x1"), "object at <id>"),
        (
            ("no job job:0194f3a1b2c3000001deadbeef01", "no job job:0194ffffb2c3000001deadbeef02"),
            "no job job:<id>",
        ),
        (("id 123e4567-e89b-12d3-a456-426614174000", "id deadbeef-e89b-42d3-a456-426614174001"), "id <id>"),
        (("first\nsecond 1", "first\nthird", "\n \t\r\n first \n"), "first"),
        (("", " \n\t", "\x1b[2J", "\u202e\u200b"), NO_ERROR),
    ],
)  # fmt: skip
def test_equal_faults_have_one_pattern(errors: tuple[str, ...], pattern: str) -> None:
    assert {error_pattern(error) for error in errors} == {pattern}


def test_the_text_of_a_pattern_finds_its_errors_and_no_others() -> None:
    """Only a pattern that was cut finds those that begin alike."""
    for error in ERRORS:
        pattern = error_pattern(error)
        text = text_of_pattern(pattern, pattern, error)
        found = {each for each in ERRORS if error_regex(text).search(each)}
        equal = {each for each in ERRORS if error_pattern(each) == pattern}
        assert found == (equal if text[-1] == "$" else {each for each in ERRORS if each.startswith(error[:199])}), text
    hidden = error_regex(text_of_pattern("no host://u:p@h", "no host://***@h", "no host://u:p@h"))
    assert [bool(hidden.search(each)) for each in ("no host://a:b@h", "no host", "a no host://a:b@h")] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("query", ["", "since=2030-01-01T00:00:00.002Z", "error=in 3 s", "error=answer"])
async def test_the_filter_of_a_group_retries_exactly_the_group(client: Client, world: World, query: str) -> None:
    failures(world)
    put(world, "job:8", "failed", "a TimeoutError: no answer in 1 s", finished_at_ms=NOW)
    put(world, "job:9", "succeeded", "TimeoutError: no answer in 1 s", finished_at_ms=NOW)
    world.clock.now = type(world.clock.now)(NOW + 10_000)
    group = (await get(client, f"/v1/jobs:errors?{query}&definition=log"))["groups"][0]
    assert (await post(client, "/v1/jobs:retry", {"filter": group["filter"]}))["changed"] == group["count"]
    states = [job["state"] for job in world.everything()["jobs"] if job["_id"] < "job:5"]
    assert (
        states.count("pending")
        == group["count"]
        == {"error=in 3 s": 1, "since=2030-01-01T00:00:00.002Z": 3}.get(query, 5)
    )


LOG = {"filter": {"definition": "log"}}
AT = "2030-01-01T00:00:00.00{}Z"


async def submit(client: Client, count: int) -> list[str]:
    answer = await post(client, "/v1/jobs:batch", {"jobs": [{"definition": "log"}] * count})
    return [one["job"] for one in answer["results"]]


def some_jobs(world: World) -> None:
    """Submitted a millisecond apart; the odd ones have ended."""
    for number, (id, state) in enumerate(
        [
            ("fire:tick:1", "pending"), ("fire:tick:2", "failed"), ("fire:tock:1", "running"), ("job:03", "failed"),
            ("job:04", "pending"), ("job:05", "cancelled"), ("job:14", "pending"),
        ]
    ):  # fmt: skip
        put(world, id, state, None, submitted_at_ms=NOW + number, schedule=id.split(":")[1] if "fire" in id else None)
    world.view.never_to_run = {"fire:tick:1", "job:14"}
    world.clock.now = type(world.clock.now)(NOW + 1_000)


@pytest.mark.parametrize(
    ("verb", "filter", "meant"),
    [
        ("cancel", {"id": "fire:"}, {"fire:tick:1", "fire:tock:1"}),
        ("cancel", {"since": AT.format(2), "until": AT.format(5)}, {"fire:tock:1", "job:04"}),
        ("cancel", {"unschedulable": True, "id": "job:"}, {"job:14"}),
        ("cancel", {"state": "failed"}, set()),
        ("retry", {"since": AT.format(2)}, {"job:03"}),
        ("retry", {"id": "job:", "state": "cancelled"}, {"job:05"}),
        ("reprioritize", {"unschedulable": True, "since": AT.format(1)}, {"job:14"}),
    ],
)
async def test_jobs_are_meant_by_all_that_the_list_takes(
    client: Client, world: World, *, verb: str, filter: Any, meant: set[str]
) -> None:
    some_jobs(world)
    listed = await client.get("/v1/jobs", params={name: str(value) for name, value in filter.items()})
    assert meant <= {job["id"] for job in listed.json()["items"]}
    before = {job["_id"]: job for job in world.everything()["jobs"]}
    body = {"filter": filter, **({"priority": 9} if verb == "reprioritize" else {})}
    counted = await post(client, f"/v1/jobs:{verb}", {**body, "dry_run": True})
    assert (counted["matched"], counted["exact"], counted["complete"]) == (len(meant), True, True)
    for expected in (len(meant), 0):  # the second request finds none that is not as asked
        answer = await post(client, f"/v1/jobs:{verb}", body)
        assert (answer["changed"] + answer["asked_to_stop"], answer["complete"]) == (expected, True)
    assert {job["_id"] for job in world.everything()["jobs"] if job != before[job["_id"]]} == meant


async def test_ended_jobs_are_deleted_but_for_those_that_show_what_became_of_a_schedules_times(
    guarded: Guarded, world: World
) -> None:
    """They are gone after ten minutes, like all ended jobs at the end of their retention."""
    client, acme = [guarded.showing(await guarded.token("operator", tenant)) for tenant in ("*", "acme")]
    await create(client, name="tick")
    put(world, "job:1", "failed", "a 5", finished_at_ms=NOW - 2)
    put(world, "job:2", "failed", "a 5", finished_at_ms=NOW)
    put(world, "job:3", "succeeded", finished_at_ms=NOW - 2)
    put(world, "job:4", "pending")
    put(world, "job:5", "cancelled", finished_at_ms=NOW - 2, tenant="other")
    put(world, "fire:tick:1", "failed", "a 5", finished_at_ms=NOW - 2, schedule="tick")
    put(world, "fire:gone:1", "failed", "a 5", finished_at_ms=NOW - 2, schedule="gone")

    async def deleted(client: Client, **filter: Any) -> set[str]:
        before = {job["_id"] for job in world.everything()["jobs"]}
        counted = await post(client, "/v1/jobs:delete", {"filter": filter, "dry_run": True})
        for changed in (counted["matched"], 0):
            answer = await post(client, "/v1/jobs:delete", {"filter": filter})
            assert (answer["matched"], answer["changed"]) == (changed, changed)
        world.clock.now = type(world.clock.now)(world.clock.wall_ms() + DELETED_IN_MS - 1)
        world.database.pass_time_to(world.clock.wall_ms())
        assert {job["_id"] for job in world.everything()["jobs"]} == before
        world.clock.now = type(world.clock.now)(world.clock.wall_ms() + 1)
        world.database.pass_time_to(world.clock.wall_ms())
        return before - {job["_id"] for job in world.everything()["jobs"]}

    assert await deleted(acme, error="a <n>", ended_before="2030-01-01T00:00:00Z") == {"job:1", "fire:gone:1"}
    assert await deleted(acme, schedule="tick") == set()
    assert await deleted(acme, until="2031-01-01T00:00:00Z") == {"job:2", "job:3"}
    await client.delete("/v1/schedules/tick")
    assert await deleted(client, until="2031-01-01T00:00:00Z") == {"job:5", "fire:tick:1"}


async def test_a_request_ends_when_its_time_is_over(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_jobs, "_SLICE", 1)
    monkeypatch.setattr(of_jobs, "BUSY_MS_MAX", 0)
    await submit(client, 3)
    answers = [await post(client, "/v1/jobs:cancel", LOG) for _ in range(4)]
    assert [(one["changed"], one["complete"]) for one in answers] == [(1, False)] * 3 + [(0, True)]


SCHEDULES: list[tuple[str, dict[str, Any], str, set[str]]] = [
    ("pause", {"state": "ended"}, "state=ended", {"c-once", "d-ended"}),
    ("pause", {"state": "paused"}, "", set()),
    ("pause", {"verdict": "missed", "tenant": "acme"}, "verdict=missed&tenant=acme", set()),
    ("pause", {"state": "active", "labels": {"team": "x"}}, "state=active&label=team=x", {"a.nightly", "f"}),
    ("resume", {"text": "NIGHT"}, "text=night&state=paused", {"B-Nightly"}),
]


@pytest.mark.parametrize(("verb", "filter", "query", "meant"), SCHEDULES)
@pytest.mark.parametrize("share", [1, 20_000])
async def test_schedules_are_meant_by_all_that_the_list_takes(
    client: Client,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    *,
    verb: str,
    filter: Any,
    query: str,
    meant: set[str],
    share: int,
) -> None:
    monkeypatch.setattr(of_schedules, "CHANGED_MAX", share)
    await some_schedules(client, world)
    if query:
        assert {one["name"] for one in (await get(client, f"/v1/schedules?{query}"))["items"]} == meant
    before = {one["_id"]: one["paused_at_ms"] for one in world.everything()["schedules"]}
    changed, after, complete = 0, None, False
    counted = await post(client, f"/v1/schedules:{verb}", {"filter": filter, "dry_run": True})
    assert counted["matched"] == len(meant)
    while not complete:
        answer = await post(client, f"/v1/schedules:{verb}", {"filter": filter, "after": after})
        changed, after, complete = changed + answer["changed"], answer["next"], answer["complete"]
    assert changed == len(meant)
    found = {one["_id"] for one in world.everything()["schedules"] if one["paused_at_ms"] != before[one["_id"]]}
    assert found == meant
    assert (await post(client, f"/v1/schedules:{verb}", {"filter": filter}))["changed"] == 0


async def test_under_one_key_each_schedule_is_triggered_once(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_schedules, "CHANGED_MAX", 2)
    names = [f"nightly-{number}" for number in range(5)]
    for name in names:
        await create(client, name=name)
    await client.patch(f"/v1/schedules/{names[3]}", json={"overlap": "skip"})
    await post(client, f"/v1/schedules/{names[3]}/trigger", status=201)

    async def all_of_them(key: str) -> tuple[int, int]:
        changed, refused, after = 0, 0, None
        while True:
            body = {"filter": {"text": "nightly"}, "after": after}
            answer = await client.post("/v1/schedules:trigger", json=body, headers={"Idempotency-Key": key})
            one = answer.json()
            assert answer.status_code == 200, one
            changed, refused, after = changed + one["changed"], refused + one["refused"], one["next"]
            if one["refused"]:
                assert "overlap is skip" in one["error"]
            if one["complete"]:
                return changed, refused

    world.connection.fail_next(of="jobs.submit", carried_out=True)
    await client.post("/v1/schedules:trigger", json={"filter": {"text": "nightly"}}, headers={"Idempotency-Key": "k"})
    made = len(world.everything()["jobs"])
    assert await all_of_them("k") == (5 - made, 1)
    assert await all_of_them("k") == (0, 1)
    assert sorted(job["schedule"] for job in world.everything()["jobs"]) == names
    assert await all_of_them("other") == (4, 1)
    without = await client.post("/v1/schedules:trigger", json={"filter": {"text": "nightly"}})
    check_problem(without, 422, "Idempotency-Key")


async def test_a_count_that_grew_is_a_conflict_and_a_count_leaves_no_record(client: Client, world: World) -> None:
    await submit(client, 12)
    assert (await post(client, "/v1/jobs:cancel", {**LOG, "dry_run": True}))["changed"] == 0
    problem = check_problem(await client.post("/v1/jobs:cancel", json={**LOG, "expected": 10}), 409)
    assert "12 match now, but 10 were expected" in problem["detail"]
    assert {job["state"] for job in world.everything()["jobs"]} == {"pending"}
    await world.audit_writer.flush()
    statuses = [each["status"] for each in world.everything()["audit"] if each["path"] == "/v1/jobs:cancel"]
    assert statuses == [409]
    assert (await post(client, "/v1/jobs:cancel", {**LOG, "expected": 11}))["changed"] == 12


async def test_a_token_of_one_tenant_reaches_its_tenant_alone(guarded: Guarded, world: World) -> None:
    admin = guarded.showing(await guarded.token())
    acme = guarded.showing(await guarded.token("operator", "acme"))
    for tenant in ("acme", "umbrella"):
        await create(admin, name=f"of-{tenant}", job={"definition": "log", "tenant": tenant})
        await post(admin, "/v1/jobs", {"definition": "log", "tenant": tenant}, 201)
    for path, body in (("/v1/jobs:cancel", LOG), ("/v1/schedules:pause", {"filter": {"text": "of-"}})):
        assert (await post(acme, path, body))["changed"] == 1
        others = {"filter": {**body["filter"], "tenant": "umbrella"}}
        check_problem(await acme.post(path, json=others), 403)
    assert {job["tenant"]: job["state"] for job in world.everything()["jobs"]} == {
        "acme": "cancelled", "umbrella": "pending"
    }  # fmt: skip
    assert not (await get(admin, "/v1/schedules/of-umbrella"))["paused"]


async def test_a_token_has_one_such_request_at_a_time(
    guarded: Guarded, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = guarded.showing(await guarded.token("operator", "acme"))
    admin = guarded.showing(await guarded.token())
    begun, goes_on = asyncio.Event(), asyncio.Event()
    cancel = world.jobs.cancel_some

    async def slow(*arguments: Any) -> Any:
        begun.set()
        await goes_on.wait()
        return await cancel(*arguments)

    monkeypatch.setattr(world.jobs, "cancel_some", slow)
    under_way = asyncio.create_task(acme.post("/v1/jobs:cancel", json=LOG))
    await begun.wait()
    assert check_problem(await acme.post("/v1/jobs:cancel", json=LOG), 429)["type"].endswith(":share-used-up")
    assert (await acme.post("/v1/jobs:cancel", json={**LOG, "dry_run": True})).status_code == 200
    assert (await admin.post("/v1/jobs:retry", json=LOG)).status_code == 200
    goes_on.set()
    assert (await under_way).json()["complete"]
    assert (await acme.post("/v1/jobs:cancel", json=LOG)).status_code == 200


async def test_copies_are_neither_counted_nor_changed(app: Edge, world: World, client: Client) -> None:
    async def tenants_in(partition: int) -> SomeOf[str]:
        return {"acme"} if partition == partition_of("acme") else ()

    app.services = replace(world.services(), tenants_in=tenants_in)
    world.view.copied = frozenset({partition_of("acme")})
    put(world, "job:a", tenant="acme")
    put(world, "job:b", tenant="other")
    await create(client, name="a", job={"definition": "log", "tenant": "acme"})
    await create(client, name="b", job={"definition": "log", "tenant": "other"})
    for path, filter in (("/v1/jobs:cancel", {"definition": "log"}), ("/v1/schedules:pause", {"state": "active"})):
        for dry_run in (True, False):
            assert (await post(client, path, {"filter": filter, "dry_run": dry_run}))["matched"] == 1
    stored = world.everything()
    assert {job["_id"]: job["state"] for job in stored["jobs"]} == {"job:a": "pending", "job:b": "cancelled"}
    assert [one["_id"] for one in stored["schedules"] if one["paused_at_ms"]] == ["b"]
