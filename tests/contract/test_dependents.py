"""The jobs that depend on others: found by those, and revived together with them."""

from hascheduler.dispatch.decisions import Fail, Settlement
from hascheduler.model.documents.job import REVIVED_FIELDS
from hascheduler.model.job import JobState, dependency_error
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Dependent
from tests.contract.backends import Backend, on
from tests.contract.checks import applied
from tests.contract.job_states import stored
from tests.factories import NOW, make_job

pytestmark = on("memory", "pymongo", "motor")

AT = WallMs(NOW + 1_000)
WHY = dependency_error("a", JobState.FAILED)
D = "$b"
"""No value may be taken for the name of a field."""
OTHER = "t300"
"""Another tenant of the same slot: of several shards only such may wait for each other's jobs."""


async def jobs_that_depend(backend: Backend) -> None:
    await backend.jobs.submit(make_job("a"))
    await backend.jobs.submit(make_job(D, depends_on=("a", "z"), waits_for=("a",)))
    await backend.jobs.submit(make_job("c", depends_on=("a",), waits_for=("a",), ignores_failures=True))
    await backend.jobs.submit(make_job("d", depends_on=(D,), waits_for=(D,), tenant=OTHER))
    await backend.jobs.submit(make_job("e"))
    assert await applied(backend.claims, Fail(D, 0, WHY)) == [Settlement.DONE]


async def test_dependents_are_found_by_what_they_were_said_to_depend_on(backend: Backend) -> None:
    await jobs_that_depend(backend)
    b = Dependent(D, 2, JobState.FAILED, ("a", "z"), ignores_failures=False, failed_of_dependency=True)
    c = Dependent("c", 1, JobState.PENDING, ("a",), ignores_failures=True, failed_of_dependency=False)
    d = Dependent("d", 1, JobState.PENDING, (D,), ignores_failures=False, failed_of_dependency=False)
    jobs = backend.jobs
    assert list(await jobs.dependents(["a"], None, [], 9)) == [b, c]
    assert list(await jobs.dependents(["a"], None, [D], 9)) == [c]
    assert list(await jobs.dependents(["a", D, "e"], None, [], 9)) == [b, c, d]
    assert list(await jobs.dependents(["a", D, "e"], "tenant", [], 9)) == [b, c]
    assert list(await jobs.dependents(["a", D], None, [], 2)) == [b, c]
    assert list(await jobs.dependents(["e"], None, [], 9)) == []


async def test_dependents_are_found_by_the_batch_that_they_depend_on(backend: Backend) -> None:
    await backend.jobs.submit(make_job("m", batch="batch:x"))
    await backend.jobs.submit(make_job("n", batch="batch:x", depends_on=("m",), waits_for=("m",)))
    await backend.jobs.submit(make_job("w", depends_on=("batch:x",), waits_for=("batch:x",)))
    assert (await stored(backend, "w"))["waits_for"] == ["w", "batch:x"]
    assert await applied(backend.claims, Fail("w", 0, WHY)) == [Settlement.DONE]
    n, w = await backend.jobs.dependents(["m", "batch:x"], None, [], 9)
    assert (n.id, n.batch, w.id, w.batch, w.depends_on) == ("n", "batch:x", "w", None, ("batch:x",))
    assert await backend.jobs.retry_dependent(w, ["batch:x"], AT)
    assert (await stored(backend, "w"))["waits_for"] == ["w", "batch:x"]


async def test_of_a_batch_is_known_in_which_states_its_jobs_are_and_whose(backend: Backend) -> None:
    for number in range(3):
        await backend.jobs.submit(make_job(f"m{number}", batch="batch:x"))
    await backend.jobs.submit(make_job("o", batch="batch:x", tenant=OTHER))
    await backend.jobs.submit(make_job("p", batch="batch:y"))
    assert await backend.jobs.cancel("m0", AT)
    known = await backend.jobs.known(["batch:x", "batch:nobody", "p", "nobody"])
    assert sorted((row.id, row.tenant, row.state.value) for row in known) == [
        ("batch:x", OTHER, "pending"), ("batch:x", "tenant", "cancelled"), ("batch:x", "tenant", "pending"),
        ("p", "tenant", "pending"),
    ]  # fmt: skip


async def test_a_revived_dependent_waits_again(backend: Backend) -> None:
    await jobs_that_depend(backend)
    before = await stored(backend, D)
    [b, *_] = await backend.jobs.dependents(["a"], None, [], 9)
    assert await backend.jobs.retry_dependent(b, ["$a"], AT)
    revived = {**REVIVED_FIELDS, "waits_for": ["$a"], "attempt": 1, "revivals": 1, "rev": before["rev"] + 1}
    assert await stored(backend, D) == {**before, **revived}
    assert await backend.jobs.cancel(D, AT)
    for stale in (b, *(await backend.jobs.dependents(["a"], None, [D], 9))):
        assert not await backend.jobs.retry_dependent(stale, [], AT), "changed meanwhile, or not ended"
    assert (await stored(backend, D))["state"] == "cancelled"
