"""A leader knows when the store of leases no longer answers it, so that its process need not vouch for it."""

from collections.abc import AsyncIterator

import pytest

from tests.factories import make_lease
from tests.unit.daemon.leaders import SILENT_MS, Room, running


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
