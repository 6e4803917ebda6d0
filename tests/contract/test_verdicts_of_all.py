"""`VerdictStore.of_all`: the times of all schedules that did not fire."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.documents.verdict import verdict_document
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.ports import ListPosition, VerdictPage, VerdictSelection
from tests.contract.backends import Backend, on
from tests.factories import NOW, make_job, make_schedule, make_template

pytestmark = on("memory", "pymongo")

EACH = tuple(verdict for verdict in Verdict if verdict is not Verdict.FIRED)


def at(seconds: int) -> WallMs:
    return WallMs(NOW + seconds * 1_000)


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


def shown(page: VerdictPage) -> list[tuple[str, str]]:
    return [(one.run.schedule, one.run.verdict.value) for one in page.verdicts]


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


async def test_a_record_of_an_earlier_schedule_by_that_name_is_of_no_tenant(backend: Backend) -> None:
    await three_schedules(backend)
    await backend.schedules.delete("a")
    await backend.schedules.create({**schedule("a", "other"), "created_at_ms": at(5)})
    assert ("a", "missed") not in shown(
        await backend.verdicts.of_all(VerdictSelection(verdicts=EACH, tenant="other"), None, 9)
    )
    assert ("a", "missed") not in shown(
        await backend.verdicts.of_all(VerdictSelection(verdicts=EACH, tenant="acme"), None, 9)
    )
    assert ("a", "missed") in shown(await backend.verdicts.of_all(VerdictSelection(verdicts=EACH), None, 9))


async def test_an_unstorable_one_that_has_a_job_after_all_has_fired(backend: Backend) -> None:
    await backend.schedules.create(schedule("a"))
    await decided(backend, "a", 1, 10, Verdict.UNSTORABLE)
    assert shown(await backend.verdicts.of_all(VerdictSelection(verdicts=EACH), None, 9)) == [("a", "unstorable")]
    await backend.jobs.submit(make_job(f"fire:a:{at(1)}", schedule="a", tenant="acme"))
    assert shown(await backend.verdicts.of_all(VerdictSelection(verdicts=EACH), None, 9)) == []


@pytest.mark.parametrize("broken", [{"verdict": 5}, {"decided_at_ms": "now"}, {"first_ms": None}, {"schedule": None}])
async def test_a_record_that_was_broken_by_hand_is_left_out(backend: Backend, broken: dict[str, Any]) -> None:
    await three_schedules(backend)
    run = VerdictRun("a", Verdict.MISSED, at(7), at(7), 1)
    await backend.behind.insert(Collection.VERDICTS, {**verdict_document(run, at(40), NOW), **broken})
    for which in (VerdictSelection(verdicts=EACH), VerdictSelection(verdicts=EACH, tenant="acme")):
        assert len((await backend.verdicts.of_all(which, None, 9)).verdicts) in (5, 3)
