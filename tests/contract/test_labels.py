"""`ScheduleStore.list` and `among` by labels, and by the tenant of the jobs."""

from dataclasses import replace

import pytest

from tests.contract.backends import Backend, on
from tests.factories import TEMPLATE, make_schedule, make_template

pytestmark = on("memory", "pymongo", "motor")  # not mongomock: it has no $getField


async def test_schedules_with_all_of_the_labels_are_listed(backend: Backend) -> None:
    await backend.schedules.create(make_schedule("a", labels={"team.of": "x", "tier": "1"}))
    await backend.schedules.create(make_schedule("b", labels={"team.of": "x"}))
    await backend.schedules.create(make_schedule("c", labels={"team.of": "$tier", "tier": "1"}))

    async def names(**labels: str) -> list[str]:
        wanted = {key.replace("_", "."): value for key, value in labels.items()}
        return [document["_id"] for document in await backend.schedules.list(None, 10, wanted)]

    assert await names() == ["a", "b", "c"]
    assert await names(team_of="x") == ["a", "b"]
    assert await names(team_of="x", tier="1") == ["a"]
    assert await names(team_of="$tier") == ["c"]
    assert await names(team="x") == []


async def test_schedules_whose_jobs_are_the_tenants_are_listed(backend: Backend) -> None:
    for name, tenant in (("a", "acme"), ("b", "other"), ("c", "acme")):
        template = replace(TEMPLATE, tenant=tenant)
        await backend.schedules.create(make_schedule(name, template=template, labels={"of": name}))

    async def names(tenant: str, after: str | None = None, **labels: str) -> list[str]:
        return [document["_id"] for document in await backend.schedules.list(after, 10, labels, tenant=tenant)]

    assert await names("acme") == ["a", "c"]
    assert await names("acme", "a") == ["c"]
    assert await names("acme", of="b") == []
    assert await names("nobody") == []


@pytest.mark.parametrize(
    ("labels", "tenant", "expected"),
    [
        ({}, None, ["a", "b", "c"]),
        ({"team": "x"}, None, ["a", "c"]),
        ({"team": "x"}, "other", ["c"]),
        ({}, "nobody", []),
    ],
)
async def test_those_with_certain_names_are_read_by_name(
    backend: Backend, labels: dict[str, str], tenant: str | None, expected: list[str]
) -> None:
    for name, team, owner in (("c", "x", "other"), ("a", "x", "acme"), ("b", "y", "acme"), ("d", "x", "other")):
        template = make_template(tenant=owner)
        await backend.schedules.create(make_schedule(name, labels={"team": team}, template=template))
    names = ["c", "b", "gone", "a"]
    found = await backend.schedules.among(names, labels, 10, tenant=tenant)
    assert [document["_id"] for document in found] == expected
    assert [document["_id"] for document in await backend.schedules.among(names, labels, 1, tenant=tenant)] == expected[
        :1
    ]
    assert sorted(await backend.schedules.names_among(names, labels, tenant=tenant)) == expected
    assert await backend.schedules.among([], labels, 10) == []
