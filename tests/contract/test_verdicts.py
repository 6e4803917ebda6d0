"""`ClaimStore` and times that do not fire; `VerdictStore`: the verdict on each nominal time."""

from hascheduler.dispatch.decisions import CountFailures, RecordVerdict
from hascheduler.model.documents.schedule import encode_fire_counts
from hascheduler.model.job import ScheduleId
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.ports import VerdictRecord
from hascheduler.schema.schedule import Basis
from tests.contract.backends import Backend, on
from tests.contract.checks import DONE, LOST, applied, raced
from tests.contract.job_states import stored_schedule
from tests.factories import NOW, make_fire, make_job, make_schedule

pytestmark = on("memory", "mongomock", "pymongo", "motor")

TICK = ScheduleId("tick", "tenant", NOW)


def at(seconds: int) -> WallMs:
    return WallMs(NOW + seconds * 1_000)


def passed(
    first: int, last: int, verdict: Verdict = Verdict.MISSED, because_of: str | None = None, schedule: str = "tick"
) -> RecordVerdict:
    """Each second from ``first`` through ``last``."""
    run = VerdictRun(schedule, verdict, at(first), at(last), last - first + 1, because_of)
    return RecordVerdict(run, Basis(at(first - 1), NOW), FireCounts(missed=last))


async def records(backend: Backend, *verdicts: Verdict, before: int = 10**9, limit: int = 100) -> list[VerdictRecord]:
    before_ms = WallMs(min(at(before), LATEST_MS))
    return list(await backend.verdicts.list(TICK, frozenset(verdicts or Verdict), NOW, before_ms, limit))


async def test_a_recorded_run_moves_the_cursor_and_the_counts(backend: Backend) -> None:
    before = make_schedule()
    await backend.schedules.create(before)
    decision = passed(1, 5)
    assert await applied(backend.claims, decision) == [DONE]
    assert await records(backend) == [VerdictRecord(decision.run)]
    expected = {**before, "cursor_ms": at(5), "tally": encode_fire_counts(FireCounts(missed=5))}
    expected["missed"] = [at(1), at(5), 5]
    assert await backend.schedules.get("tick") == expected


async def test_a_recorded_run_applied_again_is_done_and_changes_nothing(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await applied(backend.claims, passed(1, 5))
    await applied(backend.claims, make_fire(6, tally=FireCounts(missed=5, fired=1)))
    schedule = await backend.schedules.get("tick")
    answers = await raced(applied(backend.claims, passed(1, 5)) for _ in range(5))
    assert answers == [[DONE]] * 5
    assert await backend.schedules.get("tick") == schedule
    assert [record.run.count for record in await records(backend)] == [1, 5]


async def test_a_run_of_a_schedule_that_is_gone_is_lost_unless_it_was_recorded_before(backend: Backend) -> None:
    assert await applied(backend.claims, passed(1, 2)) == [LOST]
    assert await records(backend) == []
    await backend.schedules.create(make_schedule())
    await applied(backend.claims, passed(1, 2))
    await backend.schedules.delete("tick")
    assert await applied(backend.claims, passed(1, 2), passed(3, 4)) == [DONE, LOST]


async def test_decisions_from_before_an_edit_of_the_times_are_lost_and_move_nothing(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    assert await applied(backend.claims, make_fire(1), passed(2, 2)) == [DONE, DONE]
    await backend.schedules.edit("tick", 1, {"payload": "no edit of the times"})
    assert await applied(backend.claims, make_fire(3)) == [DONE]
    edited = await backend.schedules.edit("tick", 2, {"since_ms": at(3)})
    assert await applied(backend.claims, make_fire(1), passed(2, 2), make_fire(3)) == [DONE] * 3
    assert await applied(backend.claims, passed(4, 4), make_fire(5)) == [LOST, LOST]
    edited = await backend.schedules.edit("tick", 3, {"paused_at_ms": at(3)})
    assert await applied(backend.claims, passed(4, 4)) == [LOST]
    assert await backend.schedules.get("tick") == edited
    assert await backend.jobs.get(make_fire(5).job_id) is None


async def test_a_fire_whose_job_was_inserted_before_an_edit_is_done_and_moves_the_cursor(backend: Backend) -> None:
    # As after a crash between the insert and the cursor.
    await backend.schedules.create(make_schedule())
    await backend.jobs.submit(make_job(make_fire(1).job_id))
    await backend.schedules.edit("tick", 1, {"since_ms": at(2)})
    assert await applied(backend.claims, make_fire(1), make_fire(2)) == [DONE, LOST]
    schedule = await stored_schedule(backend)
    assert schedule["cursor_ms"] == at(1)


async def test_too_many_failures_pause_the_revision_that_was_counted(backend: Backend) -> None:
    before = make_schedule()
    await backend.schedules.create(before)
    assert await applied(backend.claims, CountFailures("tick", 2, 3, at(9))) == [LOST]
    assert await backend.schedules.get("tick") == before
    assert await applied(backend.claims, CountFailures("tick", 1, 3, at(9))) == [DONE]
    paused = await backend.schedules.get("tick")
    assert paused == {
        **before, "failures": 3, "paused_at_ms": at(9), "paused_because": "3 of its jobs failed in a row", "rev": 2,
    }  # fmt: skip
    assert await applied(backend.claims, CountFailures("tick", 1, 3, at(9))) == [DONE]
    assert await backend.schedules.get("tick") == paused


async def test_a_move_of_the_cursor_says_what_it_counts_as_missed_and_others_leave_that(backend: Backend) -> None:
    """The event of missed times is made from that change alone."""
    await backend.schedules.create(make_schedule())
    await applied(backend.claims, passed(1, 5, Verdict.EXCLUDED))
    assert "missed" not in (await backend.schedules.get("tick") or {})
    await applied(backend.claims, passed(6, 8))
    for more in (passed(9, 9, Verdict.SKIPPED), make_fire(10), passed(6, 8)):
        await applied(backend.claims, more)
        schedule = await stored_schedule(backend)
        assert schedule["missed"] == [at(6), at(8), 3]
