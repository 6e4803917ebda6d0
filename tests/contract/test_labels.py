"""`ScheduleStore.list` by labels."""

from tests.contract.backends import Backend, on
from tests.factories import make_schedule

pytestmark = on("memory", "pymongo", "motor")  # not mongomock: it has no $getField


async def test_those_with_all_of_the_labels_are_listed(backend: Backend) -> None:
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
