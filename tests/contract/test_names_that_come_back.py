"""`ClaimStore` and `VerdictStore` after a schedule was deleted and another tenant created one of its name.

The API's side of reused names is tested in ``tests/unit/security``.
"""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import (
    CountFailures,
    Decision,
    Fire,
    RecordVerdict,
    Settlement,
    decode_decisions,
    encode_beside,
    encode_decisions,
)
from hascheduler.model.job import ScheduleId, fire_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.schema.schedule import Basis
from tests.contract.backends import Backend, on
from tests.contract.checks import DONE, LOST, applied
from tests.factories import NOW, make_schedule, make_template

pytestmark = on("memory", "mongomock", "pymongo", "motor")

HOUR_MS = 3_600_000
EARLIER = WallMs(NOW - 10_000)


async def of_stored(backend: Backend, tenant: str, created_at_ms: int) -> dict[str, Any]:
    """``tick`` as that tenant makes it."""
    template = make_template(tenant=tenant)
    document = make_schedule(template=template, payload={"of": tenant}, now=WallMs(created_at_ms))
    await backend.schedules.delete("tick")
    assert await backend.schedules.create(document) is not None
    return document


def after(seconds: int) -> WallMs:
    return WallMs(NOW + 1_000 * seconds)


def a_fire(created_at_ms: int, second: int, tally: FireCounts | None = None) -> Fire:
    """Of a schedule that was created then, and decided nothing yet; both schedules have the same times in force."""
    return Fire("tick", after(second), basis_of(created_at_ms), tally or FireCounts(fired=1))


def basis_of(created_at_ms: int) -> Basis:
    return Basis(NOW, NOW, None, WallMs(created_at_ms))


def a_run(created_at_ms: int, because_of: str | None = None) -> RecordVerdict:
    run = VerdictRun("tick", Verdict.SKIPPED, after(1), after(1), 1, because_of)
    return RecordVerdict(run, basis_of(created_at_ms), FireCounts(skipped=1))


def journaled(*decisions: Decision) -> tuple[Decision, ...]:
    """As a successor reads them."""
    return decode_decisions(encode_decisions(decisions), encode_beside(decisions).get("creations"))


@pytest.mark.parametrize("decision", [a_fire(EARLIER, 1), a_run(EARLIER, "fire:tick:1")], ids=["fire", "pass over"])
async def test_decisions_about_the_old_schedule_are_lost_on_the_new_one(backend: Backend, decision: Decision) -> None:
    """Their times and cursors are the same, to the millisecond."""
    new = await of_stored(backend, "beta", NOW)
    assert await applied(backend.claims, *journaled(decision)) == [LOST]
    assert await backend.schedules.get("tick") == new
    assert await backend.jobs.get(fire_job_id("tick", after(1))) is None


async def test_journal_entries_of_the_previous_release_are_applied(backend: Backend) -> None:
    await of_stored(backend, "beta", NOW)
    rows = encode_decisions((a_fire(EARLIER, 1),))
    assert await applied(backend.claims, *decode_decisions(rows)) == [DONE]


@pytest.mark.parametrize("pause_at_ms", [None, NOW], ids=["count", "pause"])
async def test_failures_of_the_old_schedule_are_not_written_on_the_new_one(
    backend: Backend, pause_at_ms: WallMs | None
) -> None:
    new = await of_stored(backend, "beta", NOW)
    count = CountFailures("tick", 1, 3, pause_at_ms, EARLIER)
    assert await applied(backend.claims, *journaled(count)) == [LOST]
    assert await backend.schedules.get("tick") == new
    assert await applied(backend.claims, *journaled(replace(count, created_at_ms=NOW))) == [DONE]


async def test_a_fire_whose_id_a_job_of_the_old_schedule_has_does_not_count_that_as_its_own(backend: Backend) -> None:
    """acme's leader was ahead of the replica that made beta's."""
    await of_stored(backend, "acme", EARLIER)
    first = a_fire(EARLIER, 1)
    basis = replace(first.basis, cursor_ms=EARLIER, since_ms=EARLIER)
    assert await applied(backend.claims, replace(first, basis=basis)) == [DONE]
    await of_stored(backend, "beta", NOW)
    assert await applied(backend.claims, a_fire(NOW, 1)) == [Settlement.REFUSED]
    job = await backend.jobs.get(first.job_id)
    assert job is not None
    assert (job["tenant"], job["payload"]) == ("acme", {"of": "acme"})
    assert await applied(backend.claims, replace(a_fire(NOW, 2), basis=replace(basis_of(NOW), cursor_ms=after(1)))) == [
        DONE
    ]


async def test_a_record_replaces_one_of_the_old_schedule(backend: Backend) -> None:
    await of_stored(backend, "acme", EARLIER)
    old = a_run(EARLIER, "fire:tick:1")
    basis = replace(old.basis, cursor_ms=EARLIER, since_ms=EARLIER)
    assert await applied(backend.claims, replace(old, basis=basis)) == [DONE]
    await of_stored(backend, "beta", NOW)
    before_ms = WallMs(NOW + HOUR_MS)
    beta = ScheduleId("tick", "beta", NOW)
    assert await backend.verdicts.list(beta, frozenset(Verdict), EARLIER, before_ms, 9) == []
    for _ in range(2):
        assert await applied(backend.claims, a_run(NOW)) == [DONE]
    [shown] = await backend.verdicts.list(beta, frozenset(Verdict), EARLIER, before_ms, 9)
    assert shown.run == a_run(NOW).run


async def test_an_applied_fire_stays_done_when_its_schedule_is_edited_or_gone(backend: Backend) -> None:
    await of_stored(backend, "acme", NOW)
    first = a_fire(NOW, 1)
    assert await applied(backend.claims, first) == [DONE]
    await backend.schedules.edit("tick", 1, {"job.tenant": "beta", "cursor_ms": NOW})
    assert await applied(backend.claims, *journaled(first)) == [DONE]
    await backend.schedules.delete("tick")
    assert await applied(backend.claims, *journaled(first)) == [DONE]
