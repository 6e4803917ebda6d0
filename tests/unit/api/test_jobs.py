"""Jobs: how they are stored, shown, listed, changed and retried with what failed as they had, and why one waits."""

from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import httpx2
import pytest

from hascheduler.dispatch.explanation import Block, BlockReason, CriterionValue, Explanation, Overdue, QueuePosition
from hascheduler.model.collection import Collection
from hascheduler.model.policy import Criterion
from hascheduler.model.values.instants import WallMs
from tests.factories import make_processor
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import Client, check_problem, create, get, post
from tests.unit.api.tokens import Guarded


async def test_every_field_of_a_submit_is_stored(client: Client, world: World) -> None:
    body = {
        "definition": "sleep", "target": "demo", "payload": [{"seconds": 1.5}], "priority": 0, "tenant": "acme",
        "fairness_key": "k", "lane": "slow", "mode": "on_demand", "resources": {"cpu": 2}, "labels": {"a": "b"},
        "not_before": "2030-01-01T00:00:01.5Z",
    }  # fmt: skip
    shown = (await client.post("/v1/jobs", json=body)).json()
    assert {name: shown[name] for name in body} == {**body, "not_before": "2030-01-01T00:00:01.500Z"}
    stored = world.job("job:0001")
    assert (stored["not_before_ms"], stored["tenant"], stored["resources"]) == (NOW + 1500, "acme", {"cpu": 2})


async def test_a_job_is_shown_with_its_attempts_whatever_its_handler_stored(client: Client, world: World) -> None:
    await client.post("/v1/jobs", json={"definition": "log"})
    attempt = {
        "number": 1, "processor": "p-1", "dispatched_at_ms": NOW, "started_at_ms": None, "finished_at_ms": NOW + 1,
        "outcome": "lost", "error": "the processor died",
    }  # fmt: skip
    result = {"when": datetime(2030, 1, 1, tzinfo=UTC), "ratio": float("nan"), "nested": [{"a": 1}]}
    changes = {"attempts": [attempt], "result": result, "expire_at": datetime.now(UTC)}
    world.rewrite(Collection.JOBS, "job:0001", **changes)
    shown = (await client.get("/v1/jobs/job:0001")).json()
    assert shown["result"] == {"when": "2030-01-01T00:00:00+00:00", "ratio": "nan", "nested": [{"a": 1}]}
    assert shown["attempts"] == [
        {
            "number": 1, "processor": "p-1", "dispatched_at": "2030-01-01T00:00:00.000Z", "started_at": None,
            "finished_at": "2030-01-01T00:00:00.001Z", "outcome": "lost", "error": "the processor died",
            "traceback": None,
        }
    ]  # fmt: skip


LOG = {"definition": "log"}


async def job_in(client: Client, world: World, state: str, **body: Any) -> str:
    id = str((await post(client, "/v1/jobs", {**LOG, **body}, 201))["id"])
    world.rewrite_job(id, state=state)
    return id


@pytest.mark.parametrize(
    ("state", "cancel", "reprioritize", "retry"),
    [
        ("pending", "cancelled", "ok", "not_ended"),
        ("dispatched", "cancelled", "already_running", "not_ended"),
        ("running", "already_running", "already_running", "not_ended"),
        ("succeeded", "already_done", "already_done", "not_failed"),
        ("failed", "already_done", "already_done", "ok"),
        ("cancelled", "already_done", "already_done", "ok"),
    ],
)
async def test_each_answer_says_which_state_it_met(
    client: Client, world: World, *, state: str, cancel: str, reprioritize: str, retry: str
) -> None:
    ids = [await job_in(client, world, state) for _ in range(3)]
    assert (await post(client, f"/v1/jobs/{ids[0]}/cancel"))["answer"] == cancel
    assert (await post(client, f"/v1/jobs/{ids[1]}/reprioritize", {"priority": 9}))["answer"] == reprioritize
    assert (await post(client, f"/v1/jobs/{ids[2]}/retry"))["answer"] == retry
    assert (await get(client, f"/v1/jobs/{ids[1]}"))["priority"] == (9 if reprioritize == "ok" else 5)
    assert (await get(client, f"/v1/jobs/{ids[2]}"))["state"] == ("pending" if retry == "ok" else state)


def warnings(answer: httpx2.Response) -> list[str]:
    assert answer.is_success, answer.text
    return answer.headers.get_list("warning")


async def test_a_submit_to_an_undefined_lane_names_the_nearest(client: Client) -> None:
    await client.put("/v1/lanes/bulk", json={"weight": 2})
    answer = await client.post("/v1/jobs", json={"definition": "log", "lane": "bluk"})
    [warning] = warnings(answer)
    assert warning == "299 - \"lane: no lane 'bluk' is defined, so it has the default values; expected bulk\""


async def test_a_definition_that_no_processor_runs_is_named_with_those_that_resemble_it(
    client: Client, world: World
) -> None:
    world.view.processors = lambda: [make_processor("p", ("resize", "mail")), make_processor("q", ("log",))]
    jobs = [{"definition": name} for name in ("log", "resise", *(f"x{number}" for number in range(20)))]
    warned = warnings(await client.post("/v1/jobs:batch", json={"jobs": jobs}))
    assert len(warned) == 9
    assert warned[:2] == [
        "299 - \"definition: no processor runs 'resise' now, so its jobs wait; they run resize\"",
        "299 - \"definition: no processor runs 'x0' now, so its jobs wait\"",
    ]
    assert warnings(await client.post("/v1/jobs", json=jobs[0])) == []
    assert warnings(await client.post("/v1/jobs", json=jobs[1])) == warned[:1]
    schedule = {"name": "tick", "trigger": {"type": "interval", "every": "1s"}, "job": jobs[1]}
    assert warnings(await client.post("/v1/schedules", json=schedule)) == warned[:1]


async def test_a_definition_that_reports_failures_and_that_no_processor_runs_is_named(
    client: Client, world: World
) -> None:
    world.view.processors = lambda: [make_processor("p", ("log", "mail"))]
    expected = "299 - \"on_failure: no processor runs 'mial' now, so its jobs wait; they run mail\""
    schedule = {"name": "tick", "trigger": {"type": "interval", "every": "1s"}, "job": {"definition": "log"}}
    assert warnings(await client.post("/v1/schedules", json={**schedule, "on_failure": "mial"})) == [expected]
    assert warnings(await client.put("/v1/schedules/tick", json={**schedule, "on_failure": "mail"})) == []
    assert warnings(await client.patch("/v1/schedules/tick", json={"on_failure": "mial"})) == [expected]
    assert warnings(await client.put("/v1/definitions/log", json={"on_failure": "mial"})) == [expected]
    assert warnings(await client.patch("/v1/definitions/log", json={"on_failure": "mail"})) == []
    assert warnings(await client.patch("/v1/definitions/log", json={"on_failure": "mial"})) == [expected]


async def test_a_name_that_no_header_can_hold(client: Client) -> None:
    await create(client)
    [warning] = warnings(await client.post("/v1/jobs", json={"definition": "log", "lane": 'ü"\\'}))
    assert warning.isascii()
    assert warning.startswith('299 - "lane: ')
    assert warning.endswith('"')


ID = "job:0001"
WHY = f"/v1/jobs/{ID}/why"
CAP = Block(
    BlockReason.DEFINITION, "3 of 3 jobs of log run", "one of them ends", {"running": 3, "jobs": ["a", "b", "c"]}
)
NOT_YET = Block(BlockReason.NOT_BEFORE, "it may not run yet", "time", {}, WallMs(NOW + 1_500))


def standing(ahead: int, *, exact: bool = True) -> QueuePosition:
    deciding = Criterion.TIER if ahead else None
    return QueuePosition(
        ahead, exact, "job:0000" if ahead else ID, deciding, (CriterionValue(Criterion.TIER, "1", "2"),)
    )


async def test_the_blocks_of_a_job_are_shown_with_their_numbers(client: Client, world: World) -> None:
    world.view.explanations[ID] = Explanation(ID, "waiting", blocks=(CAP, NOT_YET), position=standing(2))
    assert await get(client, WHY) == {
        "job": ID,
        "state": "pending",
        "seen": True,
        "summary": "it waits: 3 of 3 jobs of log run; it may not run yet; 2 jobs go before it",
        "processor": None,
        "finished_at": None,
        "error": None,
        "blocks": [
            {"rule": "definition", "because": "3 of 3 jobs of log run", "unblocked_by": "one of them ends",
             "numbers": {"running": 3, "jobs": ["a", "b", "c"]}, "until": None},
            {"rule": "not_before", "because": "it may not run yet", "unblocked_by": "time", "numbers": {},
             "until": "2030-01-01T00:00:01.500Z"},
        ],
        "standing": {
            "ahead": 2, "exact": True, "first": "job:0000", "deciding": "tier",
            "criteria": [{"criterion": "tier", "value": "1", "first": "2"}],
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("explanation", "summary"),
    [
        (Explanation(ID, "waiting", position=standing(0)), "nothing holds it back, and it is next"),
        (Explanation(ID, "waiting", position=standing(1)), "nothing holds it back, 1 job goes before it"),
        (
            Explanation(ID, "waiting", position=standing(9, exact=False)),
            "nothing holds it back, at least 9 jobs go before it",
        ),
        (
            Explanation(ID, "running", "p.1", overdue=Overdue(2, WallMs(NOW))),
            "attempt 2 timed out at 2030-01-01T00:00:00.000Z; its thread on p.1 has not ended yet and "
            "still holds its slot and conflict groups",
        ),
        (Explanation(ID, "dispatched", "p-1"), "it is dispatched to p-1, which has not started it yet"),
        (Explanation(ID, "running", "p-1"), "it is running on p-1"),
    ],
)
async def test_the_summary_is_one_sentence(
    client: Client, world: World, explanation: Explanation, summary: str
) -> None:
    world.view.explanations[ID] = explanation
    shown = await get(client, WHY)
    assert shown["summary"] == summary
    assert shown["state"] == explanation.state.replace("waiting", "pending")


@pytest.mark.parametrize(
    ("stored", "is_ready", "summary"),
    [
        ({"state": "succeeded", "finished_at_ms": NOW + 5}, True, "it succeeded at 2030-01-01T00:00:00.005Z"),
        ({"state": "cancelled"}, True, "it was cancelled"),
        ({}, True, "it is pending, but this replica has not seen it yet"),
        ({}, False, "it is pending, but this replica has not seen it yet: the mirror is incomplete"),
        ({"state": "running", "processor": "p"}, True, "it is running, but this replica has not seen it yet"),
    ],
)
async def test_a_job_that_the_replica_does_not_know_is_read_from_the_database(
    client: Client, world: World, stored: dict[str, Any], is_ready: bool, summary: str
) -> None:
    await client.post("/v1/jobs", json={"definition": "log"})
    world.rewrite(Collection.JOBS, ID, **stored)
    world.view.ready = is_ready
    shown = await get(client, WHY)
    assert (shown["summary"], shown["state"], shown["seen"]) == (summary, stored.get("state", "pending"), False)
    assert (shown["blocks"], shown["standing"]) == ([], None)


async def test_an_unknown_job_is_not_found_and_an_unreadable_one_is_named(client: Client, world: World) -> None:
    check_problem(await client.get(WHY), 404)
    await client.post("/v1/jobs", json={"definition": "log"})
    world.rewrite(Collection.JOBS, ID, priority="high")
    assert "priority" in check_problem(await client.get(WHY), 500)["detail"]


async def batch(client: Client, **depends_on: str) -> dict[str, str]:
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


async def retried(client: Client, ids: dict[str, str], name: str = "a") -> tuple[str, dict[str, str]]:
    answer = await post(client, f"/v1/jobs/{ids[name]}/retry", {"with_dependents": True})
    names = {id: name for name, id in ids.items()}
    assert answer["complete"]
    return answer["answer"], {names[one["job"]]: one["answer"] for one in answer["dependents"]}


async def test_a_diamond_waits_again_as_it_did(client: Client, world: World) -> None:
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


async def test_what_ended_for_another_reason_stays_as_it_is(client: Client, world: World) -> None:
    ids = await batch(client, a="", own="a", after="own", done="a", next="done", other="", both="a other")
    fail(world, ids, a="", own="", after="own", next="a", other="", both="a")
    world.rewrite_job(ids["done"], state="succeeded")
    answer, dependents = await retried(client, ids)
    kept = {"own": "kept", "done": "kept", "both": "dependency_failed"}
    assert (answer, dependents) == ("ok", {**kept, "next": "ok"})
    assert world.job(ids["next"])["waits_for"] == []
    assert [world.job(ids[name])["state"] for name in ("own", "after", "both")] == ["failed"] * 3


async def test_so_many_are_looked_at_and_no_more(client: Client, world: World) -> None:
    ids = await batch(client, a="", b="a", c="a", d="b")
    fail(world, ids, a="", b="a", c="a", d="b")
    for most, found in ((1, 1), (2, 2), (3, 3)):
        with patch("hascheduler.api.jobs.changes.DEPENDENTS_MAX", most):
            answer = await post(client, f"/v1/jobs/{ids['a']}/retry", {"with_dependents": True})
        assert (len(answer["dependents"]), answer["complete"]) == (found, most == 3)


async def test_another_tenants_dependents_are_neither_shown_nor_touched(
    guarded: Guarded, acme: Client, world: World
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


async def test_a_repeated_retry_gets_the_first_answer_and_does_nothing(client: Client, world: World) -> None:
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
