"""`ScheduleStore`: schedules as the API writes them."""

import pytest

from hascheduler.model.documents import decode_schedule
from hascheduler.model.instants import WallMs
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.trigger import IntervalTrigger, OnceTrigger
from tests.contract.backends import Backend, on
from tests.contract.racing import RACERS, raced
from tests.factories import NOW, make_schedule, make_template

pytestmark = on("memory", "mongomock", "pymongo", "motor")

LATER = WallMs(NOW + 60_000)


async def test_a_new_schedule_begins_now_with_rev_1(backend: Backend) -> None:
    schedule = make_schedule(payload={"deep": [1, {"$x": None}]}, labels={"a.b": "$c"})
    document = await backend.schedules.create(schedule)
    assert document is not None
    assert decode_schedule(document["_id"], document) == ScheduleRef(
        "tick", 1, schedule.trigger, schedule.template, NOW, NOW
    )
    assert document["payload"] == {"deep": [1, {"$x": None}]}
    assert document["labels"] == {"a.b": "$c"}
    assert await backend.schedules.get("tick") == document


async def test_a_taken_name_changes_nothing(backend: Backend) -> None:
    first = await backend.schedules.create(make_schedule())
    assert await backend.schedules.create(make_schedule(payload="other")) is None
    assert await backend.schedules.get("tick") == first


async def test_a_replacement_has_the_next_rev_and_everything_new(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    changed = make_schedule(template=make_template(priority=9), payload={"m": "$now"}, labels={}, now=LATER)
    document = await backend.schedules.replace(changed)
    assert document is not None
    # The trigger is the old one, so the cursor stays.
    assert decode_schedule(document["_id"], document) == ScheduleRef(
        "tick", 2, changed.trigger, changed.template, NOW, NOW
    )
    assert (document["payload"], document["labels"]) == ({"m": "$now"}, {})
    assert await backend.schedules.get("tick") == document


@pytest.mark.parametrize("trigger", [IntervalTrigger(2_000, WallMs(0)), OnceTrigger(LATER)])
async def test_with_another_trigger_the_cursor_moves_up_to_now(
    backend: Backend, trigger: IntervalTrigger | OnceTrigger
) -> None:
    await backend.schedules.create(make_schedule())
    document = await backend.schedules.replace(make_schedule(trigger=trigger, now=LATER))
    assert document is not None
    assert (document["cursor_ms"], document["created_at_ms"]) == (LATER, NOW)


async def test_the_cursor_never_moves_down(backend: Backend) -> None:
    await backend.schedules.create(make_schedule(now=LATER))
    document = await backend.schedules.replace(make_schedule(trigger=OnceTrigger(LATER), now=NOW))
    assert document is not None
    assert document["cursor_ms"] == LATER


async def test_a_schedule_that_is_not_there_is_not_replaced(backend: Backend) -> None:
    assert await backend.schedules.replace(make_schedule()) is None
    assert await backend.schedules.get("tick") is None


async def test_a_replacement_of_another_rev_changes_nothing(backend: Backend) -> None:
    first = await backend.schedules.create(make_schedule())
    assert await backend.schedules.replace(make_schedule(payload="other"), expected_rev=2) is None
    assert await backend.schedules.get("tick") == first
    assert await backend.schedules.replace(make_schedule(payload="other"), expected_rev=1) is not None


async def test_they_are_listed_by_name_in_pages(backend: Backend) -> None:
    for name in ("b", "c", "a"):
        await backend.schedules.create(make_schedule(name))
    page = await backend.schedules.list(None, 2)
    assert [document["_id"] for document in page] == ["a", "b"]
    assert page[0] == await backend.schedules.get("a")
    assert [document["_id"] for document in await backend.schedules.list("b", 2)] == ["c"]


async def test_a_deleted_schedule_is_gone(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    assert await backend.schedules.delete("tick") is True
    assert await backend.schedules.delete("tick") is False
    assert await backend.schedules.get("tick") is None


async def test_of_fifty_racing_creates_one_wins(backend: Backend) -> None:
    answers = await raced(backend.schedules.create(make_schedule(payload=number)) for number in range(RACERS))
    [winner] = [answer for answer in answers if answer is not None]
    assert await backend.schedules.get("tick") == winner


async def test_of_fifty_racing_replacements_of_one_rev_one_wins(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    answers = await raced(
        backend.schedules.replace(make_schedule(payload=number), expected_rev=1) for number in range(RACERS)
    )
    [winner] = [answer for answer in answers if answer is not None]
    assert await backend.schedules.get("tick") == winner
