"""The values at limited keys are stored with every new job, however it is made."""

from typing import Any

import httpx
import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import format_instant
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import create, post

LOG = "/v1/definitions/log"
LIMITS = {"key_limits": [{"key": "payload.customer", "max_concurrency": 2}, {"key": "target", "max_concurrency": 1}]}


def acme(**more: Any) -> dict[str, Any]:
    return {"definition": "log", "target": "t", "payload": {"customer": "acme"}, **more}


async def out_of_touch(client: httpx.AsyncClient, world: World) -> None:
    """The mirror begins again, and has nothing yet."""
    await post(client, "/v1/jobs", {"definition": "other"}, 201)  # else it is not known how much waits
    world.view.ready, world.view.definitions = False, dict


@pytest.mark.parametrize("ready", [True, False])
async def test_a_submitted_job_has_its_values(client: httpx.AsyncClient, world: World, ready: bool) -> None:
    await client.put(LOG, json=LIMITS)
    if not ready:
        await out_of_touch(client, world)
    job = await post(client, "/v1/jobs", acme(), 201)
    assert world.job(job["id"])["limit_keys"] == [["payload.customer", "acme"], ["target", "t"]]
    batch = await post(client, "/v1/jobs:batch", {"jobs": [acme(), acme(payload={"customer": 7}), acme(payload=None)]})
    stored = [world.job(result["job"])["limit_keys"][0] for result in batch["results"]]
    assert stored == [["payload.customer", "acme"], ["payload.customer", "7"], ["payload.customer", ""]]


async def test_a_job_of_a_definition_without_keys_has_none(client: httpx.AsyncClient, world: World) -> None:
    job = await post(client, "/v1/jobs", acme(), 201)
    assert "limit_keys" not in world.job(job["id"])


async def test_before_the_mirror_is_complete_an_unreadable_definition_has_no_keys(
    client: httpx.AsyncClient, world: World
) -> None:
    await client.put(LOG, json=LIMITS)
    await out_of_touch(client, world)
    world.rewrite(Collection.DEFINITIONS, "log", key_limits="none")
    job = await post(client, "/v1/jobs", acme(), 201)
    assert "limit_keys" not in world.job(job["id"])


async def test_what_a_schedule_makes_has_the_values_of_its_rendered_payload(
    client: httpx.AsyncClient, world: World
) -> None:
    await client.put(LOG, json=LIMITS)
    await create(
        client,
        trigger={"type": "interval", "every": "1h"},
        job={"definition": "log", "payload": {"customer": "${label.customer}"}, "render": True},
        labels={"customer": "acme"},
    )
    made = [await post(client, "/v1/schedules/tick/trigger", None, 201)]
    made.append(await post(client, "/v1/schedules/tick/trigger", {"payload": {"customer": "other"}}, 201))
    past = format_instant(NOW - 3_600_000)
    backfilled = await post(client, "/v1/schedules/tick/backfill", {"from": past, "to": past})
    ids = [*(job["id"] for job in made), *backfilled["jobs"]]
    assert [world.job(id)["limit_keys"][0][1] for id in ids] == ["acme", "other", "acme"]
