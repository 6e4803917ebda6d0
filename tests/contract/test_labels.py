"""`ScheduleStore.list` by labels, and by the tenant of the jobs."""

from dataclasses import replace

from tests.contract.backends import Backend, on
from tests.factories import TEMPLATE, make_schedule

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
