"""A leader that hands over, and one that knows when the store of leases no longer answers it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from tests.factories import make_lease
from tests.unit.daemon.leaders import RETRY_MS, SILENT_MS, Room, running


async def test_a_renewal_under_way_does_not_keep_a_lease_that_is_handed_over() -> None:
    async with running(Room()) as room:
        room.leases.answers.clear()
        room.clock.now += RETRY_MS
        room.leases.changed.clear()
        await room.leases.changed.wait()
        handing_over = asyncio.create_task(room.leader.hand_over())
        await asyncio.sleep(0)
        room.leases.answers.set()
        await handing_over
        assert room.leases.stored is not None
        assert room.leases.stored.holder == ""
        assert not room.leader.in_term


async def test_it_is_no_cause_for_a_warning() -> None:
    with capture_logs() as logged:
        async with running(Room()) as room:
            await room.leader.hand_over()
    [ended] = [line for line in logged if line["event"] == "term_ended"]
    assert (ended["reason"], ended["log_level"]) == ("handed over", "info")


async def test_who_handed_over_may_lead_again_when_no_other_does() -> None:
    async with running(Room()) as room:
        await room.leader.hand_over()
        room.clock.now += 2 * RETRY_MS
        await room.until(lambda: room.leases.stored is not None and room.leases.stored.holder != "")
        assert room.leases.stored is not None
        assert room.leases.stored.term == 2


async def test_one_that_is_cancelled_while_it_hands_over_keeps_no_term_in_which_nothing_decides() -> None:
    async with running(Room()) as room:
        handing_over = asyncio.create_task(room.leader.hand_over())
        await asyncio.sleep(0)
        handing_over.cancel()
        await room.until(lambda: room.leases.stored is not None and room.leases.stored.holder == "")


async def test_who_resigned_does_not_lead_again() -> None:
    async with running(Room()) as room:
        await room.leader.resign()
        answered = room.leases.answered
        room.clock.now += 100 * RETRY_MS
        await asyncio.sleep(5 * RETRY_MS / 1_000)
        assert room.leases.answered == answered


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    async with running(Room()) as one:
        yield one


async def test_renewals_without_an_answer_for_as_long_as_a_leader_may_be_silent_put_it_out_of_touch(room: Room) -> None:
    room.leases.is_cut = True
    await room.renews()
    assert not room.leader.is_out_of_touch()
    await room.renews(SILENT_MS)
    assert room.leader.is_out_of_touch()


async def test_an_answer_puts_it_in_touch_again(room: Room) -> None:
    room.leases.is_cut = True
    await room.renews(SILENT_MS)
    assert room.leader.is_out_of_touch()
    room.leases.is_cut = False
    await room.renews()
    assert not room.leader.is_out_of_touch()


async def test_a_replica_that_came_to_no_renewal_for_a_while_is_not_out_of_touch(room: Room) -> None:
    await room.renews()
    room.clock.now += 10 * SILENT_MS
    assert not room.leader.is_out_of_touch()


async def test_who_knows_that_another_leads_is_not_out_of_touch(room: Room) -> None:
    room.leases.is_cut = True
    await room.renews(SILENT_MS)
    room.leader.lease_seen(make_lease("r2", term=9, renewals=9))
    assert not room.leader.is_out_of_touch()


async def test_where_silence_is_never_suspected_none_is_out_of_touch() -> None:
    async with running(Room(silent_ms=0)) as room:
        room.leases.is_cut = True
        await room.renews(SILENT_MS)
        assert not room.leader.is_out_of_touch()
