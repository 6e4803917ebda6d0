"""The one queue in front of the core."""

import asyncio

from hascheduler.daemon.loop.inbox import INPUTS_MAX, Inbox
from hascheduler.dispatch.inputs import Input, TermBegan, TransportSeen, TrustLost
from hascheduler.mirror.changes import JobGone


async def test_inputs_are_taken_in_order_and_once() -> None:
    inbox = Inbox()
    await inbox.put([JobGone("a"), JobGone("b")])
    inbox.put_now(TransportSeen(True))
    await inbox.put([JobGone("c")])
    inbox.put_now(TermBegan(1), TrustLost())
    inputs: list[Input] = [JobGone("a"), JobGone("b"), TransportSeen(True), JobGone("c"), TermBegan(1), TrustLost()]
    assert inbox.take() == inputs
    assert inbox.take() == []


async def test_facts_wait_while_it_is_full_and_news_of_ones_own_does_not() -> None:
    inbox = Inbox()
    await inbox.put([JobGone(str(i)) for i in range(INPUTS_MAX)])
    late = asyncio.create_task(inbox.put([JobGone("late")]))
    await asyncio.wait({late}, timeout=0.01)
    assert not late.done()
    inbox.put_now(TrustLost())
    assert len(inbox.take()) == INPUTS_MAX + 1
    await late
    assert inbox.take() == [JobGone("late")]


async def test_one_batch_may_overshoot_the_bound() -> None:
    inbox = Inbox()
    await inbox.put([JobGone(str(i)) for i in range(INPUTS_MAX - 1)])
    await inbox.put([JobGone("a"), JobGone("b")])
    assert len(inbox.take()) == INPUTS_MAX + 1


async def test_waiting_ends_with_something_to_take_with_a_call_or_with_the_time() -> None:
    inbox = Inbox()
    await inbox.wait(0)
    waiting = asyncio.create_task(inbox.wait(60))
    await asyncio.sleep(0)
    inbox.wake()
    await waiting
    assert inbox.take() == []
    inbox.put_now(TrustLost())
    await inbox.wait(60)
    assert inbox.take() == [TrustLost()]


async def test_no_facts_are_no_reason_to_wait_for_room() -> None:
    inbox = Inbox()
    inbox.put_now(*(JobGone(str(i)) for i in range(INPUTS_MAX)))
    await asyncio.wait_for(inbox.put([]), 1)
