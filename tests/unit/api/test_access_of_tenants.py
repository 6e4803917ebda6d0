"""A token of one tenant: other tenants' jobs and schedules are invisible to it."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from tests.unit.api.doubles import World
from tests.unit.api.requests import TICK, Client, check_problem, create, post


async def test_it_acts_for_no_other(acme: Client, world: World) -> None:
    body = {**TICK, "job": {**TICK["job"], "tenant": "other"}}
    check_problem(await acme.post("/v1/schedules", json=body), 403, "job.tenant")
    await create(acme)
    replacement = {part: value for part, value in body.items() if part != "name"}
    check_problem(await acme.put("/v1/schedules/tick", json=replacement), 403, "job.tenant")
    check_problem(await acme.patch("/v1/schedules/tick", json={"job": {"tenant": "other"}}), 403, "job.tenant")
    check_problem(await acme.post("/v1/schedules/tick/preview", json={"job": {"tenant": "other"}}), 403, "job.tenant")
    assert world.schedule()["job"]["tenant"] == "acme"
    assert world.schedule()["rev"] == 1


async def test_an_edit_does_not_move_a_schedule_to_another_tenant(acme: Client, world: World) -> None:
    await create(acme)
    for answer in (
        await acme.patch("/v1/schedules/tick", json={"job": {"priority": 7}}),
        await acme.patch("/v1/schedules/tick", json={"job": {"tenant": None}}),
        await acme.put("/v1/schedules/tick", json={"trigger": TICK["trigger"], "job": {"definition": "sleep"}}),
    ):
        assert answer.status_code == 200, answer.text
        assert answer.json()["job"]["tenant"] == "acme"
    assert world.schedule()["job"]["tenant"] == "acme"


BACKFILL = {"from": "2029-12-31T00:00:00Z", "to": "2029-12-31T00:00:01Z"}


@pytest.mark.parametrize("headers", [{}, {"If-Match": '"7"'}])
async def test_a_schedule_of_another_is_not_found_whatever_is_done_to_it(
    acme: Client, other: Client, world: World, headers: dict[str, str]
) -> None:
    await create(other)
    before = world.everything()
    for method, path, body in (
        ("GET", "", None), ("PATCH", "", {"overlap": "skip"}), ("DELETE", "", None), ("POST", "/pause", {}),
        ("POST", "/resume", {}), ("POST", "/trigger", {}), ("POST", "/backfill", BACKFILL), ("GET", "/preview", None),
        ("POST", "/preview", {"overlap": "skip"}), ("GET", "/verdicts", None),
    ):  # fmt: skip
        of_another = await acme.request(method, f"/v1/schedules/tick{path}", json=body, headers=headers)
        missing = await acme.request(method, f"/v1/schedules/none{path}", json=body, headers=headers)
        check_problem(of_another, 404)
        # Word for word what is said of one that does not exist.
        assert of_another.text == missing.text.replace("none", "tick"), path
        assert world.everything() == before, path


@pytest.mark.parametrize(("if_match", "status"), [(None, 409), ('"1"', 412), ("*", 412)])
async def test_the_name_of_a_schedule_of_another_is_taken(
    acme: Client, other: Client, world: World, if_match: str | None, status: int
) -> None:
    await create(other)
    before = world.everything()
    headers = {} if if_match is None else {"If-Match": if_match}
    body = {"trigger": TICK["trigger"], "job": TICK["job"]}
    check_problem(await acme.put("/v1/schedules/tick", json=body, headers=headers), status)
    assert world.everything() == before


@pytest.mark.parametrize(("method", "body"), [("DELETE", None), ("PATCH", {"overlap": "skip"})])
async def test_one_that_is_taken_away_meanwhile_is_left_alone(
    acme: Client, boss: Client, world: World, method: str, body: object
) -> None:
    await create(acme)

    async def taken_away() -> None:
        await boss.patch("/v1/schedules/tick", json={"job": {"tenant": "other"}})

    world.schedules.overtakers.append(taken_away)
    check_problem(await acme.request(method, "/v1/schedules/tick", json=body), 404)
    assert world.schedule()["job"]["tenant"] == "other"
    assert world.schedule()["policy"]["overlap"] == "allow"


@pytest.mark.parametrize("broken", [None, "text", {}, {"tenant": None}, {"tenant": ["acme"]}])
async def test_a_corrupted_schedule_belongs_to_no_tenant(
    acme: Client, boss: Client, world: World, broken: object
) -> None:
    await create(acme)
    world.rewrite(Collection.SCHEDULES, "tick", job=broken)
    check_problem(await acme.get("/v1/schedules/tick"), 404)
    check_problem(await boss.get("/v1/schedules/tick"), 409)


async def test_it_sees_its_own_tenant_alone(acme: Client, boss: Client) -> None:
    assert (await acme.get("/v1/tenants")).json()["items"] == []
    for name in ("acme", "other"):
        assert (await boss.put(f"/v1/tenants/{name}", json={"max_running": 3})).status_code == 201
    listed = (await acme.get("/v1/tenants")).json()
    assert ([item["name"] for item in listed["items"]], listed["next"]) == (["acme"], None)
    assert (await acme.get("/v1/tenants?after=acme")).json()["items"] == []
    assert (await acme.get("/v1/tenants/acme")).json()["max_running"] == 3
    of_another, missing = await acme.get("/v1/tenants/other"), await acme.get("/v1/tenants/none")
    check_problem(of_another, 404)
    assert of_another.text == missing.text.replace("none", "other")
    assert [item["name"] for item in (await boss.get("/v1/tenants")).json()["items"]] == ["acme", "other"]


async def test_a_batch_of_another_tenant_does_not_exist_and_of_a_mixed_one_its_own_jobs_alone(
    acme: Client, other: Client, boss: Client, world: World
) -> None:
    async def submitted(*tenants: str) -> Any:
        jobs = [{"definition": "log", "tenant": tenant} for tenant in tenants]
        return await post(boss, "/v1/jobs:batch", {"jobs": jobs})

    async def waits_for(client: Client, batch: str) -> list[str]:
        id = (await post(client, "/v1/jobs", {"definition": "log", "depends_on": [batch]}, 201))["id"]
        return sorted(set(world.job(id)["waits_for"]) - {id})

    of_other = (await submitted("other"))["batch"]
    check_problem(
        await acme.post("/v1/jobs", json={"definition": "log", "depends_on": [of_other]}), 422, "depends_on.0"
    )
    assert await waits_for(other, of_other) == await waits_for(boss, of_other) == [of_other]
    mixed = await submitted("acme", "other", "acme")
    ids = [result["job"] for result in mixed["results"]]
    assert await waits_for(acme, mixed["batch"]) == [ids[0], ids[2]]
    assert await waits_for(other, mixed["batch"]) == [ids[1]]
    assert await waits_for(boss, mixed["batch"]) == ids
