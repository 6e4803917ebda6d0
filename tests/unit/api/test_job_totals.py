"""``/v1/jobs:counts`` and ``/v1/jobs:errors``, and what equal faults have in common."""

from typing import Any

import pytest

from hascheduler.api.jobs.errors import NO_ERROR, error_pattern
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.values.instants import WallMs
from tests.factories import make_job
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import Client, check_problem, get

STATES = ("pending", "dispatched", "running", "succeeded", "failed", "cancelled")


def put(world: World, id: str, state: str = "pending", error: str | None = None, **fields: Any) -> None:
    """A job that is stored so."""
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
