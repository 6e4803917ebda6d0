"""``hascheduler job cancel``, ``reprioritize`` and ``retry``: by id, or all that match, but never unseen."""

import pytest

from hascheduler.model.collection import Collection
from tests.unit.api.doubles import NOW, World
from tests.unit.cli.invoking import Replica

A, B = "job:0001", "job:0002"


async def two_jobs(replica: Replica) -> None:
    await replica.done("job", "submit", "log", "--label", "team=a")
    await replica.done("job", "submit", "log", "--label", "team=b", "--tenant", "acme")


async def test_each_of_several_ids_has_its_answer(replica: Replica, world: World) -> None:
    await two_jobs(replica)
    world.rewrite(Collection.JOBS, B, state="running")
    ended = await replica.run("job", "cancel", A, B, "job:9")
    assert (ended.status, ended.out) == (2, f"cancelled {A}\n{B} runs, and was asked to stop\n")
    assert ended.err == "hascheduler: no job 'job:9'\n"
    answer = await replica.json("job", "cancel", A, B)
    assert [(one["job"], one["answer"]) for one in answer["results"]] == [(A, "already_done"), (B, "already_running")]


async def test_a_priority_is_given_to_one_job_or_to_all_that_match(replica: Replica, world: World) -> None:
    await two_jobs(replica)
    assert (await replica.done("job", "reprioritize", A, "9")).out == f"reprioritized {A}\n"
    assert world.job(A)["priority"] == 9
    assert (await replica.done("job", "reprioritize", "8", "--tenant", "acme", "--yes")).out == "reprioritized 1 job\n"
    assert (world.job(A)["priority"], world.job(B)["priority"]) == (9, 8)
    world.rewrite(Collection.JOBS, A, state="running")
    assert (await replica.done("job", "reprioritize", A, "7")).out == f"{A} is with a processor already\n"


async def test_a_failed_job_runs_again_alone_or_with_all_others(replica: Replica, world: World) -> None:
    await two_jobs(replica)
    assert (await replica.done("job", "retry", A)).out == f"{A} has not ended\n"
    for id in (A, B):
        world.rewrite(Collection.JOBS, id, state="failed", finished_at_ms=NOW, error="it broke", failures=5)
    assert (await replica.done("job", "retry", A)).out == f"{A} waits again\n"
    assert (await replica.done("job", "retry", "--definition", "log", "--yes")).out == "retrying 1 job\n"
    assert {world.job(id)["state"] for id in (A, B)} == {"pending"}


async def test_what_failed_with_a_job_is_retried_with_it(replica: Replica, world: World) -> None:
    await replica.done("job", "submit", "log")
    for _ in range(2):
        await replica.done("job", "submit", "log", "--depends-on", A)
    world.rewrite(Collection.JOBS, A, state="failed", error="it broke")
    world.rewrite(Collection.JOBS, B, state="failed", error=f"its dependency {A} failed")
    world.rewrite(Collection.JOBS, "job:0003", state="failed", error="expired")
    retried = await replica.done("job", "retry", A, "--with-dependents")
    assert retried.out.splitlines() == [
        f"{A} waits again",
        f"  {B} waits for it again",
        "  job:0003 stays as it is: how it ended has another reason",
    ]
    answer = await replica.json("job", "retry", A, "--with-dependents")
    assert (answer["answer"], answer["dependents"][0]) == ("not_ended", {"job": B, "answer": "not_ended"})
    once = ("--with-dependents", "--idempotency-key", "k")
    world.rewrite(Collection.JOBS, A, state="failed")
    for _ in range(2):
        assert (await replica.done("job", "retry", A, *once)).out.startswith(f"{A} waits again")
        world.rewrite(Collection.JOBS, A, state="cancelled")
    assert world.job(A)["revivals"] == 2
    for option in (once[:1], once[1:], ("--idempotency-key", "a b")):
        refused = await replica.run("job", "retry", "--definition", "log", *option)
        assert (refused.status, option[0] in refused.err) == (2, True)
    world.rewrite(Collection.JOBS, A, state="cancelled")
    assert (await replica.done("job", "retry", "--state", "cancelled", "--yes")).out == "retrying 1 job\n"


async def test_all_that_match_are_counted_before_anything_is_done(replica: Replica, world: World) -> None:
    await two_jobs(replica)
    world.view.never_to_run = {A}
    asked = ("job", "cancel", "--definition", "log")
    assert (await replica.done(*asked, "--dry-run")).out == "would cancel 2 jobs\n"
    assert (await replica.done(*asked, "--label", "team=a", "--dry-run")).out == "would cancel 1 job\n"
    for options, count in ((f"--id {B}", 1), ("--unschedulable", 1), ("--until 2030-01-01T00:00:00Z", 0)):
        told = (await replica.done("job", "cancel", *options.split(), "--dry-run")).out
        assert told == ("would cancel 1 job\n" if count else "There are no such jobs.\n"), options
    unasked = await replica.run(*asked)
    assert (unasked.status, unasked.out) == (2, "")
    assert "Cancel 2 jobs?" in unasked.err
    assert {world.job(id)["state"] for id in (A, B)} == {"pending"}
    world.rewrite(Collection.JOBS, B, state="running")
    assert (await replica.done(*asked, "--yes")).out == "cancelled 1 job, asked 1 to stop\n"
    world.rewrite(Collection.JOBS, B, state="succeeded")
    assert (await replica.done(*asked, "--yes")).out == "There are no such jobs.\n"


async def test_all_that_match_are_changed_by_as_many_requests_as_it_takes(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.api.jobs.all_that_match.CHANGED_MAX", 1)
    await two_jobs(replica)
    answer = await replica.json("job", "cancel", "--definition", "log", "--yes")
    assert answer == {
        "matched": 2, "exact": True, "changed": 2, "asked_to_stop": 0, "refused": 0, "error": None, "complete": True
    }  # fmt: skip
    assert {world.job(id)["state"] for id in (A, B)} == {"cancelled"}
