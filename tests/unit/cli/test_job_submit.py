"""``hascheduler job submit`` and ``wait``: one job, once, and its end."""

import asyncio

import pytest

from hascheduler.daemon.outbound import waiters
from hascheduler.model.collection import Collection
from tests.unit.api.doubles import NOW, World
from tests.unit.api.test_waiting import end, until, waits
from tests.unit.cli.invoking import Replica

ID = "job:0001"


async def test_under_one_key_it_is_one_job(replica: Replica) -> None:
    asked = ("job", "submit", "log", "--idempotency-key", "order-1")
    assert (await replica.done(*asked)).out == f"submitted {ID}\n"
    assert (await replica.done(*asked)).out == f"known already: {ID}\n"
    ended = await replica.run(*asked, "--target", "other")
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "'order-1'" in ended.err


async def test_a_duplicate_says_of_which_job(replica: Replica) -> None:
    await replica.done("definition", "put", "log", "--on-duplicate", "keep_first")
    await replica.done("job", "submit", "log")
    said = f"not submitted: jobs of log are unique, and this is a duplicate of {ID}\n"
    assert (await replica.done("job", "submit", "log")).out == said
    shown = await replica.run("job", "submit", "log", "--json")
    assert (shown.json["id"], shown.err) == (ID, f"hascheduler: {said}")
    waited = await replica.run("job", "submit", "log", "--wait", "0s")
    assert waited.err.startswith(f"hascheduler: {said}")


async def test_a_replaced_job_says_by_which(replica: Replica) -> None:
    await replica.done("definition", "put", "log", "--on-duplicate", "replace")
    for _ in range(2):
        await replica.done("job", "submit", "log")
    assert "replaced by job:0002" in (await replica.done("job", "get", ID)).out
    assert "replaced by job:0002" in (await replica.done("why", ID)).out


async def test_what_is_waited_for_tells_its_result(replica: Replica, world: World) -> None:
    asked = ("job", "submit", "log", "--idempotency-key", "order-1")
    await replica.done(*asked)
    world.rewrite(Collection.JOBS, ID, state="succeeded", finished_at_ms=NOW, result={"n": 1})
    assert (await replica.done(*asked, "--wait", "30s")).out == f"{ID} succeeded\nresult:\n  n: 1\n"
    answer = await replica.json(*asked, "--wait", "30s")
    assert answer["result"] == {"n": 1}
    assert (await replica.done("job", "wait", ID)).out == f"{ID} succeeded\nresult:\n  n: 1\n"


@pytest.mark.parametrize(
    ("state", "error", "ended_as"),
    [("failed", "it broke", (3, f"{ID} failed\nit broke\n")), ("cancelled", None, (4, f"{ID} cancelled\n"))],
)
async def test_what_has_not_succeeded_has_a_status_that_says_how_it_ended(
    replica: Replica, world: World, state: str, error: str | None, ended_as: tuple[int, str]
) -> None:
    asked = ("job", "submit", "log", "--idempotency-key", "order-1")
    await replica.done(*asked)
    world.rewrite(Collection.JOBS, ID, state=state, finished_at_ms=NOW, error=error)
    for waiting in ((*asked, "--wait", "30s"), ("job", "wait", ID)):
        ended = await replica.run(*waiting)
        assert (ended.status, ended.out, ended.err) == (*ended_as, "")


async def test_what_has_not_ended_in_time_is_status_5_and_can_be_waited_for(replica: Replica) -> None:
    for waiting in (("job", "submit", "log", "--wait", "0s"), ("job", "wait", ID, "--timeout", "0s")):
        ended = await replica.run(*waiting)
        assert (ended.status, ended.out) == (5, f"{ID} pending\n")
        assert ended.err == f"hascheduler: {ID} has not ended; hascheduler job wait {ID} waits on\n"


async def test_waiting_ends_when_the_job_does(replica: Replica, world: World) -> None:
    await replica.done("job", "submit", "log")
    waiting = asyncio.create_task(replica.done("job", "wait", ID))
    await until(lambda: waits(world, ID))  # the replica holds its request back
    end(world, ID)
    assert (await waiting).out == f"{ID} succeeded\nresult:\n  ok: 1\n"


async def test_a_replica_that_holds_no_request_back_is_asked_again(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "WAITERS_MAX", 0)
    await replica.done("job", "submit", "log")
    waiting = asyncio.create_task(replica.done("job", "wait", ID))
    world.rewrite(Collection.JOBS, ID, state="succeeded", finished_at_ms=NOW)
    assert (await waiting).out == f"{ID} succeeded\n"


async def test_jobs_depend_on_others_and_expire(replica: Replica) -> None:
    await replica.done("job", "submit", "log")
    made = await replica.json("job", "submit", "log", "--depends-on", ID, "--on-dependency-failure", "ignore",
            "--expires-at", "2031-01-01T00:00:00Z")  # fmt: skip
    assert (made["depends_on"], made["on_dependency_failure"]) == ([ID], "ignore")
    assert made["expires_at"] == "2031-01-01T00:00:00.000Z"


async def test_what_the_server_warns_of_is_told_beside_the_answer(replica: Replica) -> None:
    ended = await replica.done("job", "submit", "log", "--lane", 'bu"lk', "--json")
    assert ended.json["lane"] == 'bu"lk'
    assert ended.err == (
        "warning: lane: no lane 'bu\"lk' is defined, so it has the defaults of one;"
        " expected default, or a lane of /v1/lanes\n"
    )
