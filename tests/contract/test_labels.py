"""`ScheduleStore.list` and `among` by labels, and by the tenant of the jobs."""

import pytest

from tests.contract.backends import Backend, on
from tests.factories import make_schedule, make_template

pytestmark = on("memory", "pymongo", "motor")  # not mongomock: it has no $getField

SCHEDULES = (
    ("c", "other", {"team.of": "$tier", "tier": "1"}),
    ("a", "acme", {"team.of": "x", "tier": "1"}),
    ("b", "acme", {"team.of": "x"}),
    ("d", "other", {"team.of": "x"}),
)


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

    async def listed(after: str | None, limit: int) -> list[str]:
        return [each["_id"] for each in await backend.schedules.list(after, limit, labels, tenant=tenant)]

    assert await listed(None, 10) == expected
    assert await listed(None, 1) == expected[:1]
    assert await listed("a", 10) == [name for name in expected if name > "a"]
    asked, there = ["c", "b", "gone", "a"], [name for name in expected if name != "d"]
    for limit in (1, 10):
        found = await backend.schedules.among(asked, labels, limit, tenant=tenant)
        assert [each["_id"] for each in found] == there[:limit]
    assert sorted(await backend.schedules.names_among(asked, labels, tenant=tenant)) == there
    assert await backend.schedules.among([], labels, 10) == []
