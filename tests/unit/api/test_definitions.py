"""Definitions: what is stored, what is shown, what an edit keeps."""

from typing import Any

import httpx
import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.limit_keys import OnDuplicate
from hascheduler.schema.definition import ConflictScope, Definition, DefinitionBody, KeyLimit, RateLimit
from hascheduler.schema.noun import read_document
from hascheduler.schema.retry import RetryPolicy
from hascheduler.schema.uniqueness import Uniqueness
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem, complete, get

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


async def test_a_definition_is_created_then_replaced(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.put(LOG, json={"max_concurrency": 3})
    assert answer.status_code == 201
    assert answer.headers["location"] == LOG
    assert answer.json() == PLAIN | {"max_concurrency": 3}
    answer = await client.put(LOG, json={"retry": {"attempts": 2}})
    assert answer.status_code == 200
    assert answer.json() == PLAIN | {"rev": 2, "retry": RETRY | {"attempts": 2}}
    assert await get(client, LOG) == answer.json()
    assert (await get(client, "/v1/definitions"))["items"] == [answer.json()]
    assert (await client.delete(LOG)).status_code == 204
    check_problem(await client.delete(LOG), 404)
    assert world.everything() == World().everything()


async def test_everything_that_can_be_said_is_kept(client: httpx.AsyncClient, world: World) -> None:
    shown = (await client.put(LOG, json=FULL)).json()
    assert shown == {**PLAIN, **FULL}
    stored = world.stored(Collection.DEFINITIONS, "log")
    assert read_document(Definition, "log", stored) == Definition(
        name="log",
        rev=1,
        max_concurrency=3,
        default_cost_ms=20_000,
        conflict_group="git",
        tier=10,
        rate_limit=RateLimit(count=100, per_ms=1_000),
        resources=(("cpu", 2),),
        retry=RetryPolicy(
            attempts_max=2, backoff_ms=500, backoff_factor=1_500, backoff_max_ms=30_000, lost_attempts_max=3
        ),
        timeout_ms=300_000,
        total_timeout_ms=3_600_000,
        conflict_scope=ConflictScope.TENANT,
        owner="team-a",
        key_limits=(
            KeyLimit(key="payload.customer", max_concurrency=2, rate_limit=RateLimit(count=10, per_ms=60_000)),
            KeyLimit(key="target", max_concurrency=1),
        ),
        unique=Uniqueness(
            by=("payload.customer", "target"), on_duplicate=OnDuplicate.DEBOUNCE, period_ms=30_000, max_wait_ms=300_000
        ),
    )
    nulls = {name: None for name in FULL if name != "retry"}
    assert (await client.put(LOG, json=nulls)).json() == PLAIN | {"rev": 2}


async def test_with_if_none_match_it_is_created_only(client: httpx.AsyncClient) -> None:
    alone = {"if-none-match": "*"}
    assert (await client.put(LOG, json={"max_concurrency": 3}, headers=alone)).status_code == 201
    check_problem(await client.put(LOG, json={"max_concurrency": 4}, headers=alone), 412)
    assert (await get(client, LOG))["max_concurrency"] == 3


@pytest.mark.parametrize(
    ("patch", "shown"),
    [
        ({}, {"rev": 1}),
        ({"max_concurrency": 3}, {"rev": 1}),
        ({"retry": {"attempts": 7}}, {"rev": 2, "retry": FULL["retry"] | {"attempts": 7}}),
        ({"retry": {"attempts": None}}, {"rev": 2, "retry": FULL["retry"] | {"attempts": 5}}),
        ({"retry": {"factor": 2.0, "backoff": 1}}, {"rev": 2, "retry": FULL["retry"] | {"factor": 2, "backoff": "1s"}}),
        ({"retry": None, "max_concurrency": 1}, {"rev": 2, "max_concurrency": 1, "retry": RETRY}),
        ({"timeout": 300, "total_timeout": "60m"}, {"rev": 1}),
        ({"default_cost": None}, {"rev": 2, "default_cost": "1s"}),
        ({"rate_limit": {"count": 5}}, {"rev": 2, "rate_limit": {"count": 5, "per": "1s"}}),
        ({"key_limits": FULL["key_limits"][:1]}, {"rev": 2, "key_limits": FULL["key_limits"][:1]}),
        ({"key_limits": None}, {"rev": 2, "key_limits": []}),
        ({"unique": {"period": 30}}, {"rev": 1}),
        ({"unique": {"by": []}}, {"rev": 2, "unique": FULL["unique"] | {"by": []}}),
        (
            {"unique": {"max_wait": None, "period": "2s"}},
            {"rev": 2, "unique": FULL["unique"] | {"period": "2s", "max_wait": "20s"}},
        ),
        ({"resources": {"gpu": 1}}, {"rev": 2, "resources": {"cpu": 2, "gpu": 1}}),
        ({"resources": {"cpu": None}, "tier": None}, {"rev": 2, "resources": {}, "tier": None}),
    ],
)
async def test_a_patch_changes_what_it_names(
    client: httpx.AsyncClient, patch: dict[str, Any], shown: dict[str, Any]
) -> None:
    before = (await client.put(LOG, json=FULL)).json()
    answer = await client.patch(LOG, json=patch)
    assert answer.status_code == 200
    assert answer.json() == {**before, **shown}


@pytest.mark.parametrize(
    ("patch", "path"),
    [
        ([], ""),
        ({"retry": 3}, "retry"),
        ({"retry": {"attempts": 101}}, "retry.attempts"),
        ({"retry": {"lost_attempts": 101}}, "retry.lost_attempts"),
        ({"retry": {"backoff": "8d"}}, "retry.backoff"),
        ({"retry": {"backoff": "2m"}}, "retry"),
        ({"retry": {"factor": 1.0005}}, "retry.factor"),
        ({"unique": {"on_duplicate": "debounce"}}, "unique.period"),
        ({"unique": {"by": ["name"]}}, "unique.by.0"),
        ({"total_timeout": "29d"}, "total_timeout"),
        ({"rate_limit": {"count": 5}}, "rate_limit.per"),
        ({"name": "sleep"}, "name"),
    ],
)
async def test_a_patch_is_checked_like_a_replacement(
    client: httpx.AsyncClient, world: World, patch: object, path: str
) -> None:
    await client.put(LOG, json={})
    before = world.everything()
    check_problem(await client.patch(LOG, json=patch), 422, path)
    assert world.everything() == before


@pytest.mark.parametrize("patched", [False, True])
async def test_a_timeout_above_the_total_timeout_is_refused_at_both(
    client: httpx.AsyncClient, *, patched: bool
) -> None:
    wrong = {"timeout": "90m", "total_timeout": "1h"}
    if patched:
        await client.put(LOG, json={"total_timeout": "1h"})
        answer = await client.patch(LOG, json={"timeout": "90m"})
    else:
        answer = await client.put(LOG, json=wrong)
    problem = check_problem(answer, 422)
    said = {
        "problem": "the timeout 90m is longer than the total_timeout 1h",
        "expected": "a total_timeout as long",
    }
    assert [(error.pop("path"), error) for error in problem["errors"]] == [("timeout", said), ("total_timeout", said)]
    assert (await client.put(LOG, json={"timeout": "1h", "total_timeout": "1h"})).is_success


async def test_a_definition_of_0_2_0_goes_on_counting_losses_as_failures_until_it_says_otherwise(
    client: httpx.AsyncClient, world: World
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


async def test_what_changes_nothing_is_not_written(client: httpx.AsyncClient) -> None:
    for _ in range(2):
        assert (await client.put(LOG, json={"max_concurrency": 3})).json()["rev"] == 1


async def test_null_means_the_default_in_parts_too(client: httpx.AsyncClient) -> None:
    for retry in (None, {"attempts": None}):
        assert (await client.put(LOG, json={"retry": retry})).json() == PLAIN
