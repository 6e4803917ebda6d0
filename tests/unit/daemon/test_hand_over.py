"""A leader that hands over releases its lease, also while a renewal is under way, and goes on as a follower."""

import asyncio

from structlog.testing import capture_logs

from tests.unit.daemon.leaders import RETRY_MS, Room, running


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
