"""`ScheduleStore`: schedules as the API writes them, and lists them by labels and tenant."""

import pytest

from hascheduler.model.documents.schedule import encode_fire_counts
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts
from tests.contract.backends import Backend, on
from tests.contract.checks import RACERS, applied, raced
from tests.factories import NOW, make_fire, make_schedule, make_template

each_store = on("memory", "mongomock", "pymongo", "motor")

LATER = WallMs(NOW + 60_000)


@each_store
async def test_an_edit_of_another_rev_changes_nothing(backend: Backend) -> None:
    first = await backend.schedules.create(make_schedule())
    assert await backend.schedules.edit("tick", 2, {"payload": "other"}) is None
    assert await backend.schedules.get("tick") == first
    assert await backend.schedules.edit("tick", 1, {"payload": "other"}) is not None


@each_store
async def test_a_write_of_the_leader_is_no_edit(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await applied(backend.claims, make_fire(60, 0, tally=FireCounts(fired=1)))
    document = await backend.schedules.edit("tick", 1, {"payload": "other"})
    assert document is not None
    assert (document["cursor_ms"], document["tally"]) == (LATER, encode_fire_counts(FireCounts(fired=1)))


@each_store
async def test_of_fifty_racing_creates_one_wins(backend: Backend) -> None:
    answers = await raced(backend.schedules.create(make_schedule(payload=number)) for number in range(RACERS))
    [winner] = [answer for answer in answers if answer is not None]
    assert await backend.schedules.get("tick") == winner


@each_store
async def test_of_fifty_racing_edits_of_one_rev_one_wins(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    answers = await raced(backend.schedules.edit("tick", 1, {"payload": number}) for number in range(RACERS))
    [winner] = [answer for answer in answers if answer is not None]
    assert await backend.schedules.get("tick") == winner


@each_store
async def test_the_schedules_of_a_tenant_are_counted_up_to_a_limit(backend: Backend) -> None:
    for number in range(4):
        await backend.schedules.create(make_schedule(f"s{number}"))
    tenant = make_schedule()["job"]["tenant"]
    assert [await backend.schedules.count(tenant, limit) for limit in (1, 3, 9)] == [1, 3, 4]
    assert await backend.schedules.count("nobody", 9) == 0


SCHEDULES = (
    ("c", "other", {"team.of": "$tier", "tier": "1"}),
    ("a", "acme", {"team.of": "x", "tier": "1"}),
    ("b", "acme", {"team.of": "x"}),
    ("d", "other", {"team.of": "x"}),
)


@on("memory", "pymongo", "motor")  # not mongomock: it has no $getField
@pytest.mark.parametrize(
    ("labels", "tenant", "expected"),
    [
        ({}, None, ["a", "b", "c", "d"]),
        ({"team.of": "x"}, None, ["a", "b", "d"]),
        ({"team.of": "x", "tier": "1"}, None, ["a"]),
        ({"team.of": "$tier"}, None, ["c"]),
        ({"team": "x"}, None, []),
        ({}, "acme", ["a", "b"]),
        ({"team.of": "x"}, "other", ["d"]),
        ({}, "nobody", []),
    ],
)
async def test_schedules_are_listed_and_read_by_name_with_all_of_the_labels_of_the_tenant(
    backend: Backend, labels: dict[str, str], tenant: str | None, expected: list[str]
) -> None:
    for name, owner, of in SCHEDULES:
        await backend.schedules.create(make_schedule(name, labels=of, template=make_template(tenant=owner)))

    async def listed(after: str | None, limit: int) -> list[object]:
        page = await backend.schedules.list(after, limit, labels, tenant=tenant)
        assert list(page) == [await backend.schedules.get(each["_id"]) for each in page]
        return [each["_id"] for each in page]

    assert await listed(None, 10) == expected
    assert await listed(None, 1) == expected[:1]
    assert await listed("a", 10) == [name for name in expected if name > "a"]
    asked, there = ["c", "b", "gone", "a"], [name for name in expected if name != "d"]
    for limit in (1, 10):
        found = await backend.schedules.among(asked, labels, limit, tenant=tenant)
        assert [each["_id"] for each in found] == there[:limit]
    assert sorted(await backend.schedules.names_among(asked, labels, tenant=tenant)) == there
    assert await backend.schedules.among([], labels, 10) == []
