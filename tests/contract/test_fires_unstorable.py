"""`ClaimStore` and a fire whose job no database can hold: it gets a verdict of its own, and nothing waits for it."""

from typing import Any

import pytest

from hascheduler.dispatch.decisions import Dispatch
from hascheduler.model.collection import Collection
from hascheduler.model.documents import fired_job
from hascheduler.model.documents.schedule import encode_fire_counts
from hascheduler.model.job import ScheduleId
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import NOTHING_DECIDED, FireCounts, Verdict, VerdictRun
from hascheduler.ports import VerdictRecord
from tests.contract.backends import Backend, on
from tests.contract.checks import (
    DONE,
    LOST,
    REFUSED,
    a_fire_whose_job_is_not_there_is_not_done,
    applied,
    raced,
    too_large_when_filled,
)
from tests.contract.job_states import stored_schedule
from tests.factories import NOW, make_fire, make_schedule

# Not mongomock: it holds anything, and has no such updates.
pytestmark = on("memory", "pymongo", "motor")

FIRST, SECOND = (make_fire(second, tally=FireCounts(fired=second)) for second in (1, 2))


async def counted(backend: Backend, name: str = "tick") -> tuple[int, Any, int]:
    document = await stored_schedule(backend, name)
    return document["cursor_ms"], document["tally"][0], document.get("unstorable", 0)


async def verdicts(backend: Backend, name: str = "tick") -> list[tuple[Verdict, int]]:
    """Newest first."""
    records = await backend.verdicts.list(
        ScheduleId(name, "tenant", NOW), frozenset(Verdict), NOW, WallMs(NOW + 10**6), 100
    )
    return [(record.run.verdict, (record.run.first_ms - NOW) // 1_000) for record in records]


async def test_no_fire_is_done_without_its_job(backend: Backend) -> None:
    await a_fire_whose_job_is_not_there_is_not_done(backend.claims, backend.jobs, backend.behind)


async def test_the_verdict_is_unstorable_and_the_cursor_goes_on(backend: Backend) -> None:
    await backend.behind.insert(Collection.SCHEDULES, too_large_when_filled())
    assert await applied(backend.claims, FIRST) == [REFUSED]
    assert await backend.jobs.get(FIRST.job_id) is None
    run = VerdictRun("tick", Verdict.UNSTORABLE, FIRST.nominal_ms, FIRST.nominal_ms, 1)
    assert await backend.verdicts.list(
        ScheduleId("tick", "tenant", NOW), frozenset(Verdict), NOW, WallMs(NOW + 10**6), 9
    ) == [VerdictRecord(run)]
    assert await counted(backend) == (FIRST.nominal_ms, 1, 1)


async def test_no_payload_is_rendered_to_find_that_it_is_too_large(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled: list[Any] = []
    monkeypatch.setattr(fired_job, "render", lambda payload, _: filled.append(payload))
    await backend.behind.insert(Collection.SCHEDULES, too_large_when_filled())
    assert await applied(backend.claims, FIRST) == [REFUSED]
    assert filled == []


async def test_an_unstorable_fire_applied_by_many_leaders_is_counted_once(backend: Backend) -> None:
    await backend.behind.insert(Collection.SCHEDULES, too_large_when_filled())
    answers = await raced(applied(backend.claims, FIRST, SECOND) for _ in range(10))
    assert answers == [[REFUSED, REFUSED]] * 10
    assert await applied(backend.claims, FIRST) == [REFUSED]
    assert await verdicts(backend) == [(Verdict.UNSTORABLE, 2), (Verdict.UNSTORABLE, 1)]
    assert await counted(backend) == (SECOND.nominal_ms, 2, 2)


async def test_the_others_of_its_group_fire(backend: Backend) -> None:
    await backend.behind.insert(Collection.SCHEDULES, too_large_when_filled())
    names = [f"other-{number}" for number in range(5)]
    for name in names:
        await backend.schedules.create(make_schedule(name))
    fires = [make_fire(1, schedule=name) for name in names]
    lost = Dispatch(FIRST.job_id, 1, "p1")
    answers = await applied(backend.claims, *fires[:3], FIRST, *fires[3:], lost)
    assert answers == [DONE, DONE, DONE, REFUSED, DONE, DONE, LOST]


async def test_an_unstorable_time_stays_unstorable_when_the_times_are_edited_before_the_cursor_moves(
    backend: Backend,
) -> None:
    await backend.behind.insert(Collection.SCHEDULES, too_large_when_filled())
    await applied(backend.claims, FIRST)
    # As after a crash between the record and the cursor, and an edit.
    before = {"cursor_ms": NOW, "tally": encode_fire_counts(NOTHING_DECIDED), "unstorable": 0}
    await backend.schedules.edit("tick", 1, {**before, "since_ms": NOW + 1, "payload": "small"})
    assert await applied(backend.claims, FIRST) == [REFUSED]
    assert await backend.jobs.get(FIRST.job_id) is None
    assert await counted(backend) == (FIRST.nominal_ms, 1, 1)
