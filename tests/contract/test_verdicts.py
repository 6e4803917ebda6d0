"""`ClaimStore` and times that do not fire; `VerdictStore`: the verdict on each nominal time, of one and of all."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import CountFailures, RecordVerdict
from hascheduler.model.collection import Collection
from hascheduler.model.documents.schedule import decode_schedule, encode_fire_counts
from hascheduler.model.documents.verdict import verdict_document
from hascheduler.model.job import JobState
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.ports import ListPosition, VerdictRecord, VerdictSelection
from hascheduler.schema.schedule import Basis
from tests.contract.backends import Backend, on
from tests.contract.checks import DONE, LOST, applied, raced
from tests.contract.job_states import TICK, at, dispatch, records, stored_schedule
from tests.factories import NOW, make_fire, make_job, make_schedule, make_template

of_one = on("memory", "mongomock", "pymongo", "motor")


def passed(
    first: int, last: int, verdict: Verdict = Verdict.MISSED, because_of: str | None = None, schedule: str = "tick"
) -> RecordVerdict:
    """Each second from ``first`` through ``last``."""
    run = VerdictRun(schedule, verdict, at(first), at(last), last - first + 1, because_of)
    return RecordVerdict(run, Basis(at(first - 1), NOW), FireCounts(missed=last))


@of_one
async def test_a_recorded_run_moves_the_cursor_and_the_counts(backend: Backend) -> None:
    before = make_schedule()
    await backend.schedules.create(before)
    decision = passed(1, 5)
    assert await applied(backend.claims, decision) == [DONE]
    assert await records(backend) == [VerdictRecord(decision.run)]
    expected = {**before, "cursor_ms": at(5), "tally": encode_fire_counts(FireCounts(missed=5))}
    expected["missed"] = [at(1), at(5), 5]
    assert await backend.schedules.get("tick") == expected


@of_one
async def test_a_recorded_run_applied_again_is_done_and_changes_nothing(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await applied(backend.claims, passed(1, 5))
    await applied(backend.claims, make_fire(6, tally=FireCounts(missed=5, fired=1)))
    schedule = await backend.schedules.get("tick")
    answers = await raced(applied(backend.claims, passed(1, 5)) for _ in range(5))
    assert answers == [[DONE]] * 5
    assert await backend.schedules.get("tick") == schedule
    assert [record.run.count for record in await records(backend)] == [1, 5]


@of_one
async def test_a_run_of_a_schedule_that_is_gone_is_lost_unless_it_was_recorded_before(backend: Backend) -> None:
    assert await applied(backend.claims, passed(1, 2)) == [LOST]
    assert await records(backend) == []
    await backend.schedules.create(make_schedule())
    await applied(backend.claims, passed(1, 2))
    await backend.schedules.delete("tick")
    assert await applied(backend.claims, passed(1, 2), passed(3, 4)) == [DONE, LOST]


@of_one
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


@of_one
async def test_a_fire_whose_job_was_inserted_before_an_edit_is_done_and_moves_the_cursor(backend: Backend) -> None:
    # As after a crash between the insert and the cursor.
    await backend.schedules.create(make_schedule())
    await backend.jobs.submit(make_job(make_fire(1).job_id))
    await backend.schedules.edit("tick", 1, {"since_ms": at(2)})
    assert await applied(backend.claims, make_fire(1), make_fire(2)) == [DONE, LOST]
    assert (await stored_schedule(backend))["cursor_ms"] == at(1)


@of_one
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


@of_one
async def test_failures_of_many_schedules_are_counted_at_once_and_each_has_its_answer(backend: Backend) -> None:
    for name in ("tick", "tock"):
        await backend.schedules.create(make_schedule(name))
    counts = [CountFailures("tick", 1, 2), CountFailures("tock", 1, 3)]
    assert await applied(backend.claims, *counts) == [DONE, DONE]
    gone = CountFailures("gone", 1, 1)
    assert await applied(backend.claims, replace(counts[0], failures=4), gone, counts[1]) == [DONE, LOST, DONE]
    stored = [await backend.schedules.get(name) or {} for name in ("tick", "tock")]
    assert [(each["failures"], each["rev"]) for each in stored] == [(4, 1), (3, 1)]


@of_one
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


of_all = on("memory", "pymongo")
EACH = tuple(verdict for verdict in Verdict if verdict is not Verdict.FIRED)


async def decided(
    backend: Backend, schedule: str, first: int, decided_at: int, verdict: Verdict = Verdict.MISSED
) -> None:
    run = VerdictRun(schedule, verdict, at(first), at(first), 1)
    await backend.behind.insert(Collection.VERDICTS, verdict_document(run, at(decided_at), NOW))


def schedule(name: str, tenant: str = "acme", **labels: str) -> dict[str, Any]:
    return make_schedule(name, template=make_template(tenant=tenant), labels=labels)


async def three_schedules(backend: Backend) -> None:
    """a and b are of tenant acme, c is another's; the times of b were decided last."""
    for name, tenant, team in (("a", "acme", "x"), ("b", "acme", "y"), ("c", "other", "x")):
        await backend.schedules.create(schedule(name, tenant, team=team))
    await decided(backend, "a", 1, 10)
    await decided(backend, "c", 2, 10, Verdict.SKIPPED)
    await decided(backend, "a", 3, 20, Verdict.THROTTLED)
    await decided(backend, "b", 1, 30)
    await decided(backend, "c", 4, 30)


async def of_schedules(backend: Backend, **which: Any) -> list[tuple[str, str]]:
    page = await backend.verdicts.of_all(VerdictSelection(verdicts=EACH, **which), None, 9)
    return [(one.run.schedule, one.run.verdict.value) for one in page.verdicts]


@of_all
@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (VerdictSelection(verdicts=EACH), ["c4", "b1", "a3", "c2", "a1"]),
        (VerdictSelection(verdicts=(Verdict.MISSED,)), ["c4", "b1", "a1"]),
        (VerdictSelection(verdicts=(Verdict.SKIPPED, Verdict.THROTTLED)), ["a3", "c2"]),
        (VerdictSelection(verdicts=EACH, since_ms=at(11), until_ms=at(30)), ["a3"]),
        (VerdictSelection(verdicts=EACH, tenant="acme"), ["b1", "a3", "a1"]),
        (VerdictSelection(verdicts=EACH, tenant="nobody"), []),
        (VerdictSelection(verdicts=EACH, labels={"team": "x"}), ["c4", "a3", "c2", "a1"]),
        (VerdictSelection(verdicts=(Verdict.MISSED,), tenant="acme", labels={"team": "x"}), ["a1"]),
        (VerdictSelection(verdicts=EACH, text="A"), ["a3", "a1"]),
        (VerdictSelection(verdicts=EACH, text="(a\0"), []),
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 10])
async def test_pages_hold_what_is_selected_the_newest_decision_first(
    backend: Backend, which: VerdictSelection, expected: list[str], limit: int
) -> None:
    await three_schedules(backend)
    found: list[str] = []
    after: ListPosition | None = None
    while True:
        page = await backend.verdicts.of_all(which, after, limit)
        assert len(page.verdicts) <= limit
        found += [f"{one.run.schedule}{(one.run.first_ms - NOW) // 1_000}" for one in page.verdicts]
        if page.next is None:
            break
        after = page.next
    assert found == expected


@of_all
async def test_a_record_of_an_earlier_schedule_by_that_name_is_of_no_tenant(backend: Backend) -> None:
    await three_schedules(backend)
    await backend.schedules.delete("a")
    await backend.schedules.create({**schedule("a", "other"), "created_at_ms": at(5)})
    for tenant in ("other", "acme"):
        assert ("a", "missed") not in await of_schedules(backend, tenant=tenant)
    assert ("a", "missed") in await of_schedules(backend)


@of_all
async def test_an_unstorable_one_that_has_a_job_after_all_has_fired(backend: Backend) -> None:
    await backend.schedules.create(schedule("a"))
    await decided(backend, "a", 1, 10, Verdict.UNSTORABLE)
    assert await of_schedules(backend) == [("a", "unstorable")]
    await backend.jobs.submit(make_job(f"fire:a:{at(1)}", schedule="a", tenant="acme"))
    assert await of_schedules(backend) == []


@of_all
@pytest.mark.parametrize("broken", [{"verdict": 5}, {"decided_at_ms": "now"}, {"first_ms": None}, {"schedule": None}])
async def test_a_record_that_was_broken_by_hand_is_left_out(backend: Backend, broken: dict[str, Any]) -> None:
    await three_schedules(backend)
    run = VerdictRun("a", Verdict.MISSED, at(7), at(7), 1)
    await backend.behind.insert(Collection.VERDICTS, {**verdict_document(run, at(40), NOW), **broken})
    assert len(await of_schedules(backend)) == 5
    assert len(await of_schedules(backend, tenant="acme")) == 3


@of_one
async def test_fired_times_are_read_from_their_jobs_and_all_verdicts_come_newest_first(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await backend.schedules.create(make_schedule("tick-other"))
    skipped = passed(3, 3, Verdict.SKIPPED, because_of="fire:tick:x")
    await applied(backend.claims, passed(1, 1), make_fire(2), skipped, make_fire(4))
    await applied(backend.claims, passed(1, 1, schedule="tick-other"), make_fire(2, schedule="tick-other"))
    await dispatch(backend, make_fire(2).job_id)
    found = await records(backend)
    assert [record.run.first_ms for record in found] == [at(4), at(3), at(2), at(1)]
    assert [record.run.verdict for record in found] == ["fired", "skipped", "fired", "missed"]
    assert [record.job_state for record in found] == [JobState.PENDING, None, JobState.DISPATCHED, None]
    assert found[1].run == skipped.run
    assert await records(backend, Verdict.SKIPPED, Verdict.MISSED) == [found[1], found[3]]
    assert await records(backend, Verdict.FIRED) == [found[0], found[2]]
    assert await records(backend, before=3, limit=1) == [found[2]]
    assert await records(backend, limit=2) == found[:2]
    after = [await backend.verdicts.first_fired(TICK, at(second)) for second in (1, 2, 3, 4)]
    assert after == [at(2), at(4), at(4), None]


@of_one
async def test_throttled_times_are_counted_once_and_apart_from_missed_ones(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    full: dict[str, Any] = {"verdict": Verdict.THROTTLED, "because_of": "max_pending"}
    decisions = [passed(1, 3, **full), passed(4, 5), passed(6, 9, **full)]
    for _ in range(2):
        assert await applied(backend.claims, *decisions) == [DONE] * 3
    assert await applied(backend.claims, passed(10, 10, **full)) == [DONE]
    document = await stored_schedule(backend)
    assert decode_schedule("tick", document).tally == FireCounts(missed=2, throttled=8)
    throttled = await records(backend, Verdict.THROTTLED)
    assert [(record.run.verdict, record.run.because_of, record.run.count) for record in throttled] == [
        ("throttled", "max_pending", 1), ("throttled", "max_pending", 4), ("throttled", "max_pending", 3),
    ]  # fmt: skip
    assert [record.run.count for record in await records(backend, Verdict.MISSED)] == [2]
    assert len(await records(backend, Verdict.MISSED, Verdict.THROTTLED)) == 4
