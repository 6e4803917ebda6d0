"""Definitions, lanes, tenants and calendars: what is stored, what is shown, what an edit keeps."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.limit_keys import OnDuplicate
from hascheduler.schema.definition import ConflictScope, Definition, DefinitionBody, KeyLimit, RateLimit
from hascheduler.schema.noun import read_document
from hascheduler.schema.retry import RetryPolicy
from hascheduler.schema.uniqueness import Uniqueness
from tests.unit.api.doubles import World
from tests.unit.api.requests import Client, check_problem, complete, create, get

LOG = "/v1/definitions/log"
RETRY: dict[str, Any] = {"attempts": 5, "lost_attempts": 10, "backoff": "2s", "factor": 2, "max": "1m"}
PLAIN = complete(
    DefinitionBody,
    {
        "name": "log", "rev": 1, "default_cost": "1s", "max_concurrency": None, "conflict_group": None,
        "conflict_scope": "tenant", "tier": None, "rate_limit": None, "key_limits": [], "unique": None, "resources": {},
        "retry": RETRY,
        "timeout": None, "total_timeout": None, "owner": None,
    },
)  # fmt: skip
FULL: dict[str, Any] = {
    "default_cost": "20s", "max_concurrency": 3, "conflict_group": "git", "conflict_scope": "tenant", "tier": 10,
    "rate_limit": {"count": 100, "per": "1s"},
    "key_limits": [
        {"key": "payload.customer", "max_concurrency": 2, "rate_limit": {"count": 10, "per": "1m"}},
        {"key": "target", "max_concurrency": 1, "rate_limit": None},
    ],
    "unique": {"by": ["payload.customer", "target"], "on_duplicate": "debounce", "period": "30s", "max_wait": "5m"},
    "resources": {"cpu": 2},
    "retry": {"attempts": 2, "lost_attempts": 3, "backoff": "500ms", "factor": 1.5, "max": "30s"}, "timeout": "5m",
    "total_timeout": "1h", "owner": "team-a",
}  # fmt: skip


async def test_everything_that_can_be_said_is_kept(client: Client, world: World) -> None:
    shown = (await client.put(LOG, json=FULL)).json()
    assert shown == {**PLAIN, **FULL}
    stored = world.stored(Collection.DEFINITIONS, "log")
    assert read_document(Definition, "log", stored) == Definition(
        name="log", rev=1, max_concurrency=3, default_cost_ms=20_000, conflict_group="git", tier=10,
        rate_limit=RateLimit(count=100, per_ms=1_000), resources=(("cpu", 2),), timeout_ms=300_000,
        total_timeout_ms=3_600_000, conflict_scope=ConflictScope.TENANT, owner="team-a",
        retry=RetryPolicy(
            attempts_max=2, backoff_ms=500, backoff_factor=1_500, backoff_max_ms=30_000, lost_attempts_max=3
        ),
        key_limits=(
            KeyLimit(key="payload.customer", max_concurrency=2, rate_limit=RateLimit(count=10, per_ms=60_000)),
            KeyLimit(key="target", max_concurrency=1),
        ),
        unique=Uniqueness(
            by=("payload.customer", "target"), on_duplicate=OnDuplicate.DEBOUNCE, period_ms=30_000, max_wait_ms=300_000
        ),
    )  # fmt: skip
    nulls = {name: None for name in FULL if name != "retry"}
    assert (await client.put(LOG, json=nulls)).json() == PLAIN | {"rev": 2}


@pytest.mark.parametrize(
    ("patch", "shown"),
    [
        ({"max_concurrency": 3}, {"rev": 1}),
        ({"retry": {"attempts": None}}, {"rev": 2, "retry": FULL["retry"] | {"attempts": 5}}),
        ({"retry": {"factor": 2.0, "backoff": 1}}, {"rev": 2, "retry": FULL["retry"] | {"factor": 2, "backoff": "1s"}}),
        ({"retry": None, "max_concurrency": 1}, {"rev": 2, "max_concurrency": 1, "retry": RETRY}),
        ({"timeout": 300, "total_timeout": "60m"}, {"rev": 1}),
        ({"rate_limit": {"count": 5}}, {"rev": 2, "rate_limit": {"count": 5, "per": "1s"}}),
        ({"key_limits": FULL["key_limits"][:1]}, {"rev": 2, "key_limits": FULL["key_limits"][:1]}),
        ({"unique": {"by": []}}, {"rev": 2, "unique": FULL["unique"] | {"by": []}}),
        (
            {"unique": {"max_wait": None, "period": "2s"}},
            {"rev": 2, "unique": FULL["unique"] | {"period": "2s", "max_wait": "20s"}},
        ),
        ({"resources": {"cpu": None}, "tier": None}, {"rev": 2, "resources": {}, "tier": None}),
    ],
)
async def test_a_patch_changes_what_it_names(client: Client, patch: dict[str, Any], shown: dict[str, Any]) -> None:
    before = (await client.put(LOG, json=FULL)).json()
    answer = await client.patch(LOG, json=patch)
    assert answer.status_code == 200
    assert answer.json() == {**before, **shown}


async def test_a_definition_of_0_2_0_goes_on_counting_losses_as_failures_until_it_says_otherwise(
    client: Client, world: World
) -> None:
    await client.put(LOG, json={})
    stored = world.stored(Collection.DEFINITIONS, "log")
    del stored["lost_attempts_max"]
    world.database.replace(Collection.DEFINITIONS, stored)
    assert (await get(client, LOG))["retry"]["lost_attempts"] == 0
    patched = (await client.patch(LOG, json={"max_concurrency": 3})).json()
    assert patched["retry"]["lost_attempts"] == 0
    assert world.stored(Collection.DEFINITIONS, "log")["lost_attempts_max"] == 0
    assert (await client.patch(LOG, json={"retry": {"lost_attempts": None}})).json()["retry"]["lost_attempts"] == 10


BULK, ACME = "/v1/lanes/bulk", "/v1/tenants/acme"


@pytest.mark.parametrize(
    ("path", "broken"),
    [
        (BULK, {"weight": "heavy"}),
        (ACME, {"max_running": -1}),
        ("/v1/definitions/log", {"max_concurrency": "many"}),
    ],
)
async def test_one_that_cannot_be_read_is_repaired_by_a_replacement_alone(
    client: Client, world: World, path: str, broken: dict[str, Any]
) -> None:
    await client.put(path, json={})
    kind, name = path.split("/")[2:]
    world.rewrite(Collection(kind), name, **broken)
    check_problem(await client.get(path), 409)
    check_problem(await client.patch(path, json={}), 409)
    assert [one["id"] for one in (await get(client, f"/v1/{kind}"))["unreadable"]] == [name]
    assert (await client.put(path, json={})).json()["rev"] == 2


ON = {"type": "cron", "expression": "0 9 * * *", "timezone": "Europe/Berlin"}
USE = {"only": ["business-days"], "except": ["holidays-de"]}


GRAPH = [{"ref": "a", "definition": "log"}, {"ref": "b", "definition": "log"}]


@pytest.mark.parametrize(
    ("path", "body", "at", "problem"),
    [
        (LOG, {"timeout": "2m", "total_timeout": "90s"}, "timeout", "timeout 2m is longer than the total_timeout 90s"),
        (LOG, {"retry": {"factor": "much"}}, "retry.factor", "'much' is not a number"),
        (LOG, {"retry": {"factor": 0.5}}, "retry.factor", "0.5 is out of range"),
        (LOG, {"retry": {"backoff": "2m"}}, "retry", "the backoff 2m is longer than max 1m"),
        (LOG, {"key_limits": [{"key": "target"}]}, "key_limits.0", "the key has no limit"),
        (LOG, {"unique": {"by": [], "on_duplicate": "debounce"}}, "unique.period", "is required for debounce"),
        (
            LOG,
            {"unique": {"by": [], "on_duplicate": "debounce", "period": "1m", "max_wait": "30s"}},
            "unique.max_wait",
            "the max_wait 30s is shorter than the period 1m",
        ),
        ("/v1/jobs", {"definition": "log", "labels": {f"l{n}": "" for n in range(65)}}, "labels", "65 labels"),
        ("/v1/jobs", {"definition": "log", "priority": 2**60}, "priority", "is too large"),
        (
            "/v1/schedules",
            {"name": "s", "trigger": ON, "jobs": [GRAPH[0], {**GRAPH[1], "depends_on": ["b"]}]},
            "jobs.1.depends_on.0",
            "'b' depends on itself",
        ),
        (
            "/v1/schedules",
            {"name": "s", "trigger": ON, "jobs": [GRAPH[0], {**GRAPH[1], "depends_on": ["a", "a"]}]},
            "jobs.1.depends_on.1",
            "'a' is repeated",
        ),
        (
            "/v1/schedules",
            {"name": "s", "trigger": ON, "jobs": [{"ref": "a/b", "definition": "log"}, GRAPH[1]]},
            "jobs.0.ref",
            "'a/b' is not a ref",
        ),
    ],
)
async def test_values_that_do_not_fit_together_are_refused_by_their_path(
    client: Client, path: str, body: dict[str, Any], at: str, problem: str
) -> None:
    method = "PUT" if path == LOG else "POST"
    assert problem in check_problem(await client.request(method, path, json=body), 422, at)["detail"]


@pytest.fixture
async def calendars(client: Client) -> None:
    holidays = {"include": ["01-01", "--12-25", "2026-01-05/2026-01-06"]}
    for name, body in (("business-days", {"weekdays": ["mon-fri"]}), ("holidays-de", holidays)):
        assert (await client.put(f"/v1/calendars/{name}", json=body)).status_code == 201


@pytest.mark.usefixtures("calendars")
@pytest.mark.parametrize(
    ("use", "path", "expected"),
    [
        ({"only": ["busines-days"]}, "trigger.calendars.only.0", "business-days"),
        ({}, "trigger.calendars", "names in only or except, or no calendars field"),
        ({"only": ["business-days"], "timezone": "Europe/Berlim"}, "trigger.calendars.timezone", "Europe/Berlin"),
        ({"only": [f"c{n}" for n in range(11)]}, "trigger.calendars.only", "at most 10"),
    ],
)
async def test_a_use_that_makes_no_sense_is_refused(
    client: Client, use: dict[str, Any], path: str, expected: str
) -> None:
    body = {"name": "s", "trigger": {**ON, "calendars": use}, "job": {"definition": "log"}}
    problem = check_problem(await client.post("/v1/schedules", json=body), 422)
    assert [(error["path"], error["expected"]) for error in problem["errors"]] == [(path, expected)]
    check_problem(await client.post("/v1/schedules/preview", json={"trigger": body["trigger"]}), 422)


@pytest.mark.usefixtures("calendars")
async def test_a_calendar_that_is_used_is_not_deleted(client: Client, world: World) -> None:
    await create(client, name="s", trigger={**ON, "calendars": USE})
    problem = check_problem(await client.delete("/v1/calendars/holidays-de"), 409)
    assert "used by the schedules s;" in problem["detail"]
    assert (await client.delete("/v1/schedules/s")).status_code == 204
    world.view.schedules_on = lambda _: ["s"]  # the stream lags behind
    assert (await client.delete("/v1/calendars/holidays-de")).status_code == 204


@pytest.mark.usefixtures("calendars")
async def test_a_schedule_whose_calendar_is_gone_says_so_and_can_be_edited(client: Client, world: World) -> None:
    await create(client, name="s", trigger={**ON, "calendars": USE})
    world.database.delete(Collection.CALENDARS, "holidays-de")  # as a backup of before would
    shown = await get(client, "/v1/schedules/s")
    assert (shown["next_at"], shown["warnings"]) == (None, ["it does not fire: there is no calendar 'holidays-de'"])
    assert [one["name"] for one in (await get(client, "/v1/schedules"))["items"]] == ["s"]
    assert (await get(client, "/v1/schedules/s/verdicts"))["undecided"]["count"] == 0
    check_problem(await client.get("/v1/schedules/s/preview"), 422)
    assert (await client.patch("/v1/schedules/s", json={"overlap": "skip"})).status_code == 200
    patched = await client.patch("/v1/schedules/s", json={"trigger": {"calendars": {"except": None}}})
    assert patched.status_code == 200
    assert patched.json()["next_at"] is not None


async def test_a_lane_has_its_defaults(client: Client) -> None:
    answer = await client.put(BULK, json={})
    shown = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, BULK)
    assert (shown["weight"], shown["promote_after"], shown["policy"]) == (1, "1m", None)
    assert (await client.put(BULK, json={"weight": None, "promote_after": None, "policy": None})).json() == shown
    assert (await get(client, "/v1/lanes"))["items"] == [shown]


@pytest.mark.usefixtures("calendars")
async def test_a_schedule_on_calendars_shows_them_and_when_it_fires(client: Client) -> None:
    shown = await create(client, name="s", trigger={**ON, "calendars": USE})
    assert shown["trigger"]["calendars"] == {**USE, "timezone": None}
    preview = await get(client, "/v1/schedules/s/preview?count=14")
    left_out = [fire for fire in preview["fires"] if fire["weekday"] in ("Sat", "Sun")]
    assert left_out
    assert all(fire["excluded"] and fire["note"] == "the day is not in business-days" for fire in left_out)
    first = next(fire for fire in preview["fires"] if not fire["excluded"])
    assert shown["next_at"] == first["nominal_at"]
    # Sent back, it changes nothing; without calendars, each day counts.
    patched = await client.patch("/v1/schedules/s", json={"trigger": {"calendars": USE}})
    assert patched.json()["rev"] == 1
    compared = await client.post("/v1/schedules/s/preview?count=14", json={"trigger": {"calendars": None}})
    assert {fire["nominal_at"] for fire in left_out} <= {fire["nominal_at"] for fire in compared.json()["added"]}
    patched = await client.patch("/v1/schedules/s", json={"trigger": {"calendars": None}})
    assert patched.json()["trigger"]["calendars"] is None
