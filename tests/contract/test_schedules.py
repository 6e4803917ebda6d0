"""`ScheduleStore`: schedules as the API writes them."""

from hascheduler.model.documents.schedule import encode_fire_counts
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts
from tests.contract.backends import Backend, on
from tests.contract.checks import RACERS, applied, raced
from tests.factories import NOW, make_fire, make_schedule

pytestmark = on("memory", "mongomock", "pymongo", "motor")

LATER = WallMs(NOW + 60_000)


async def test_an_edit_of_another_rev_changes_nothing(backend: Backend) -> None:
    first = await backend.schedules.create(make_schedule())
    assert await backend.schedules.edit("tick", 2, {"payload": "other"}) is None
    assert await backend.schedules.get("tick") == first
    assert await backend.schedules.edit("tick", 1, {"payload": "other"}) is not None


async def test_a_write_of_the_leader_is_no_edit(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await applied(backend.claims, make_fire(60, 0, tally=FireCounts(fired=1)))
    document = await backend.schedules.edit("tick", 1, {"payload": "other"})
    assert document is not None
    assert (document["cursor_ms"], document["tally"]) == (LATER, encode_fire_counts(FireCounts(fired=1)))


async def test_lists_are_paged_by_name(backend: Backend) -> None:
    for name in ("b", "c", "a"):
        await backend.schedules.create(make_schedule(name))
    page = await backend.schedules.list(None, 2)
    assert [document["_id"] for document in page] == ["a", "b"]
    assert page[0] == await backend.schedules.get("a")
    assert [document["_id"] for document in await backend.schedules.list("b", 2)] == ["c"]


async def test_of_fifty_racing_creates_one_wins(backend: Backend) -> None:
    answers = await raced(backend.schedules.create(make_schedule(payload=number)) for number in range(RACERS))
    [winner] = [answer for answer in answers if answer is not None]
    assert await backend.schedules.get("tick") == winner


async def test_of_fifty_racing_edits_of_one_rev_one_wins(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    answers = await raced(backend.schedules.edit("tick", 1, {"payload": number}) for number in range(RACERS))
    [winner] = [answer for answer in answers if answer is not None]
    assert await backend.schedules.get("tick") == winner


async def test_the_schedules_of_a_tenant_are_counted_up_to_a_limit(backend: Backend) -> None:
    for number in range(4):
        await backend.schedules.create(make_schedule(f"s{number}"))
    tenant = make_schedule()["job"]["tenant"]
    assert [await backend.schedules.count(tenant, limit) for limit in (1, 3, 9)] == [1, 3, 4]
    assert await backend.schedules.count("nobody", 9) == 0
