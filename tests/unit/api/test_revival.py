"""A job is retried, once under one key, with what failed as it had failed. Each has its answer; others stay."""

from typing import Any
from unittest.mock import patch

import httpx

from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem, post
from tests.unit.api.tokens import Guarded


async def batch(client: httpx.AsyncClient, **depends_on: str) -> dict[str, str]:
    """``c="a b"``: a job that waits for two others. The ids by these names."""
    jobs = [
        {"ref": name, "definition": "log", "depends_on": [f"ref:{other}" for other in others.split()]}
        for name, others in depends_on.items()
    ]
    results = (await post(client, "/v1/jobs:batch", {"jobs": jobs}))["results"]
    return {name: one["job"] for name, one in zip(depends_on, results, strict=True)}


def fail(world: World, ids: dict[str, str], **because_of: str) -> None:
    """``b="a"``: it never ran, as that one failed; ``b=""``: for a reason of its own."""
    for name, other in because_of.items():
        error = f"its dependency {ids[other]} failed" if other else "it broke"
        world.rewrite_job(ids[name], state="failed", error=error, waits_for=[])


async def retried(client: httpx.AsyncClient, ids: dict[str, str], name: str = "a") -> tuple[str, dict[str, str]]:
    answer = await post(client, f"/v1/jobs/{ids[name]}/retry", {"with_dependents": True})
    names = {id: name for name, id in ids.items()}
    assert answer["complete"]
    return answer["answer"], {names[one["job"]]: one["answer"] for one in answer["dependents"]}


async def test_a_diamond_waits_again_as_it_did(client: httpx.AsyncClient, world: World) -> None:
    # The longer way round is found last, and must be revived before the end.
    ids = await batch(client, a="", b="a", c="a", e="c", end="b e")
    fail(world, ids, a="", b="a", c="a", e="c", end="b")
    assert await retried(client, ids) == ("ok", dict.fromkeys(("b", "c", "e", "end"), "ok"))
    waits = {name: world.job(id)["waits_for"] for name, id in ids.items()}
    assert waits == {
        "a": [], "b": [ids["a"]], "c": [ids["a"]], "e": [ids["c"]], "end": [ids["b"], ids["e"]],
    }  # fmt: skip
    assert {world.job(id)["state"] for id in ids.values()} == {"pending"}
    before = world.everything()
    assert await retried(client, ids) == ("not_ended", dict.fromkeys(("b", "c", "e", "end"), "not_ended"))
    assert world.everything() == before


async def test_what_ended_for_another_reason_stays_as_it_is(client: httpx.AsyncClient, world: World) -> None:
    ids = await batch(client, a="", own="a", after="own", done="a", next="done", other="", both="a other")
    fail(world, ids, a="", own="", after="own", next="a", other="", both="a")
    world.rewrite_job(ids["done"], state="succeeded")
    answer, dependents = await retried(client, ids)
    kept = {"own": "kept", "done": "kept", "both": "dependency_failed"}
    assert (answer, dependents) == ("ok", {**kept, "next": "ok"})
    assert world.job(ids["next"])["waits_for"] == []
    assert [world.job(ids[name])["state"] for name in ("own", "after", "both")] == ["failed"] * 3


async def test_a_request_that_broke_off_is_repeated(client: httpx.AsyncClient, world: World) -> None:
    ids = await batch(client, a="", b="a", c="b")
    fail(world, ids, a="", b="a", c="b")
    assert (await post(client, f"/v1/jobs/{ids['a']}/retry"))["dependents"] == []
    world.rewrite_job(ids["a"], state="succeeded")
    assert await retried(client, ids) == ("not_failed", {"b": "ok", "c": "ok"})
    assert [world.job(ids[name])["waits_for"] for name in "bc"] == [[], [ids["b"]]]


async def test_so_many_are_looked_at_and_no_more(client: httpx.AsyncClient, world: World) -> None:
    ids = await batch(client, a="", b="a", c="a", d="b")
    fail(world, ids, a="", b="a", c="a", d="b")
    for most, found in ((1, 1), (2, 2), (3, 3)):
        with patch("hascheduler.api.jobs.changes.DEPENDENTS_MAX", most):
            answer = await post(client, f"/v1/jobs/{ids['a']}/retry", {"with_dependents": True})
        assert (len(answer["dependents"]), answer["complete"]) == (found, most == 3)


async def test_another_tenants_dependents_are_neither_shown_nor_touched(
    guarded: Guarded, acme: httpx.AsyncClient, world: World
) -> None:
    async with await guarded.client("admin") as boss:
        submitted: list[Any] = [
            (await boss.post("/v1/jobs", json={"definition": "log", "tenant": "acme"})).json()["id"]
        ]
        for tenant in ("acme", "other"):
            body = {"definition": "log", "tenant": tenant, "depends_on": submitted[:1]}
            submitted.append((await boss.post("/v1/jobs", json=body)).json()["id"])
    a, ours, theirs = submitted
    ids = {"a": a, "ours": ours, "theirs": theirs}
    fail(world, ids, a="", ours="a", theirs="a")
    assert await retried(acme, ids) == ("ok", {"ours": "ok"})
    assert world.job(theirs)["state"] == "failed"


async def test_a_repeated_retry_gets_the_first_answer_and_does_nothing(client: httpx.AsyncClient, world: World) -> None:
    ids = await batch(client, a="", b="a", c="b")
    fail(world, ids, a="", b="a", c="b")
    path, body, once = f"/v1/jobs/{ids['a']}/retry", {"with_dependents": True}, {"Idempotency-Key": "k"}
    first = await client.post(path, json=body, headers=once)
    assert "idempotency-replayed" not in first.headers
    for name, state in (("a", "cancelled"), ("b", "succeeded"), ("c", "failed")):
        world.rewrite_job(ids[name], state=state)
    before = world.everything()
    again = await client.post(path, json=body, headers=once)
    assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")
    check_problem(await client.post(path, headers=once), 409)
    assert world.everything() == before
    assert (await client.post(path, headers={"Idempotency-Key": "other"})).json()["answer"] == "ok"
    check_problem(await client.post(path, headers={"Idempotency-Key": "a b"}), 422, "Idempotency-Key")


async def test_what_waited_for_the_batch_of_a_job_waits_for_it_again(client: httpx.AsyncClient, world: World) -> None:
    answer = await post(client, "/v1/jobs:batch", {"jobs": [{"definition": "log"}] * 3})
    first, second, third = (result["job"] for result in answer["results"])
    ids = {"a": first, "b": second, "c": third}
    for name, named in {"w": [answer["batch"]], "v": ["w"]}.items():
        body = {"definition": "log", "depends_on": [ids.get(each, each) for each in named]}
        ids[name] = (await post(client, "/v1/jobs", body, 201))["id"]
    fail(world, ids, a="", w="a", v="w")
    world.rewrite_job(third, state="succeeded")
    assert await retried(client, ids) == ("ok", {"w": "ok", "v": "ok"})
    assert world.job(ids["w"])["waits_for"] == [ids["w"], answer["batch"]]
    assert world.job(ids["v"])["waits_for"] == [ids["w"]]
    fail(world, ids, a="", b="", w="a", v="w")
    assert await retried(client, ids) == ("ok", {"w": "dependency_failed", "v": "dependency_failed"})
