"""`ClaimStore` and resets: the cursor goes back, and the verdicts on times that are to be decided again go with it."""

from dataclasses import replace

from hascheduler.dispatch.decisions import Decision, Fire, RecordVerdict, ResetCursor
from hascheduler.model.documents.schedule import decode_fire_counts, decode_schedule
from hascheduler.model.job import ScheduleId, fire_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.schema.schedule import Basis
from tests.contract.backends import Backend, on
from tests.contract.checks import DONE, LOST, applied
from tests.contract.job_states import stored_schedule as stored
from tests.factories import NOW, make_schedule

# Not mongomock: it knows no transactions.
pytestmark = on("memory", "pymongo", "motor")


def at(second: int) -> WallMs:
    return WallMs(NOW + 1_000 * second)


RESET = ResetCursor("tick", at(10), NOW)


def passed(first: int, last: int, verdict: Verdict = Verdict.COALESCED) -> RecordVerdict:
    run = VerdictRun("tick", verdict, at(first), at(last), last - first + 1)
    return RecordVerdict(run, Basis(at(first - 1), NOW, created_at_ms=NOW))


def fired(second: int, basis: Basis | None = None) -> Fire:
    return Fire("tick", at(second), basis or Basis(at(second - 1), NOW, created_at_ms=NOW))


async def ahead(backend: Backend, *decided: Decision) -> None:
    """A schedule for which all that was decided, and which is to be reset to its tenth second."""
    made = make_schedule()
    await backend.schedules.create(made)
    assert set(await applied(backend.claims, *decided)) == {DONE}
    assert await backend.schedules.edit("tick", 1, {"reset_at_ms": at(10)}) is not None


async def verdicts(backend: Backend) -> list[tuple[Verdict, int, int, int]]:
    schedule = ScheduleId("tick", "tenant", NOW)
    found = await backend.verdicts.list(schedule, frozenset(Verdict), NOW, at(10**6), 100)
    runs = [record.run for record in reversed(found)]
    return [(run.verdict, (run.first_ms - NOW) // 1_000, (run.last_ms - NOW) // 1_000, run.count) for run in runs]


async def test_a_reset_takes_the_cursor_back_and_what_fired_stays(backend: Backend) -> None:
    await ahead(backend, passed(1, 50), passed(51, 99, Verdict.THROTTLED), fired(100), fired(101))
    assert await applied(backend.claims, RESET) == [DONE]
    schedule = await stored(backend)
    assert (schedule["cursor_ms"], schedule["since_ms"], schedule["rev"]) == (at(10), at(101), 3)
    assert (schedule["reset_at_ms"], schedule["throttled"]) == (None, 0)
    assert decode_fire_counts(schedule["tally"]) == FireCounts(fired=2, coalesced=10)
    assert await verdicts(backend) == [
        (Verdict.COALESCED, 1, 10, 10), (Verdict.FIRED, 100, 100, 1), (Verdict.FIRED, 101, 101, 1)
    ]  # fmt: skip
    # And it goes on from there.
    basis = decode_schedule("tick", schedule).basis_at(at(10))
    assert await applied(backend.claims, fired(11, basis)) == [DONE]
    assert (await stored(backend))["cursor_ms"] == at(11)


async def test_a_reset_that_is_carried_out_again_changes_nothing(backend: Backend) -> None:
    await ahead(backend, passed(1, 99), fired(100))
    assert await applied(backend.claims, RESET) == [DONE]
    after = await stored(backend)
    assert await applied(backend.claims, RESET) == [DONE]
    assert await stored(backend) == after


async def test_what_was_decided_before_a_reset_is_not_carried_out_after_it(backend: Backend) -> None:
    await ahead(backend, passed(1, 99), fired(100))
    assert await applied(backend.claims, RESET) == [DONE]
    assert await applied(backend.claims, fired(101)) == [LOST]
    assert await backend.jobs.get(fire_job_id("tick", at(101))) is None
    assert (await stored(backend))["cursor_ms"] == at(10)


async def test_a_reset_of_another_schedule_of_that_name_is_lost(backend: Backend) -> None:
    await ahead(backend, passed(1, 99), fired(100))
    before = await stored(backend)
    assert await applied(backend.claims, replace(RESET, created_at_ms=WallMs(NOW - 1))) == [LOST]
    assert await stored(backend) == before
    assert await applied(backend.claims, replace(RESET, schedule="nothing")) == [LOST]


async def test_a_request_that_was_broken_by_hand_is_answered_by_taking_it_away(backend: Backend) -> None:
    await ahead(backend, passed(1, 99), fired(100))
    assert await backend.schedules.edit("tick", 2, {"trigger": {"type": "nonsense"}}) is not None
    assert await applied(backend.claims, RESET) == [DONE]
    schedule = await stored(backend)
    assert (schedule["reset_at_ms"], schedule["cursor_ms"]) == (None, at(100))
