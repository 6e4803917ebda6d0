"""Requests that arrive during an exchange share the next one, and events of one time have an order."""

import asyncio
from collections.abc import Sequence

import pytest
from bson import Timestamp

from hascheduler.model.event import next_in_change, position
from hascheduler.model.values.instants import to_datetime
from hascheduler.mongo.request_batcher import BATCH_MAX, RequestBatcher
from hascheduler.mongo.state_updates import AttemptTimes
from hascheduler.mongo.stream.events import position_after
from hascheduler.mongo.work.starts import STARTED_ATTEMPTS_MAX, StartedAttempts


class Exchange:
    """Doubles numbers; refuses 13 alone, and everything while ``broken``. ``gate`` holds it up."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.broken = False

    async def __call__(self, questions: Sequence[int]) -> Sequence[int | Exception]:
        self.batches.append(list(questions))
        await self.gate.wait()
        if self.broken:
            raise ConnectionError
        return [ValueError(question) if question == 13 else 2 * question for question in questions]


@pytest.fixture
def exchange() -> Exchange:
    return Exchange()


async def test_requests_of_one_moment_share_an_exchange_and_those_during_it_the_next(exchange: Exchange) -> None:
    batcher = RequestBatcher(exchange, "test")
    exchange.gate.clear()
    first = [asyncio.create_task(batcher.send(number)) for number in (1, 2)]
    while not exchange.batches:  # noqa: ASYNC110  # until it is under way
        await asyncio.sleep(0)
    later = [asyncio.create_task(batcher.send(number)) for number in (3, 4, 5)]
    await asyncio.sleep(0)
    exchange.gate.set()
    assert await asyncio.gather(*first, *later) == [2, 4, 6, 8, 10]
    assert exchange.batches == [[1, 2], [3, 4, 5]]
    assert await batcher.send(6) == 12


async def test_an_error_is_raised_to_the_callers_that_it_concerns(exchange: Exchange) -> None:
    batcher = RequestBatcher(exchange, "test")
    answers = await asyncio.gather(*(batcher.send(number) for number in (12, 13, 14)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [int, ValueError, int]
    exchange.broken = True
    answers = await asyncio.gather(*(batcher.send(number) for number in (1, 2)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [ConnectionError, ConnectionError]
    exchange.broken = False
    assert await batcher.send(1) == 2


async def test_a_cancelled_caller_does_not_disturb_the_others(exchange: Exchange) -> None:
    batcher = RequestBatcher(exchange, "test")
    exchange.gate.clear()
    impatient, patient = (asyncio.create_task(batcher.send(number)) for number in (1, 2))
    while not exchange.batches:  # noqa: ASYNC110  # until it is under way
        await asyncio.sleep(0)
    waiting = asyncio.create_task(batcher.send(3))
    await asyncio.sleep(0)
    impatient.cancel()
    waiting.cancel()
    await asyncio.wait({impatient, waiting})
    exchange.gate.set()
    assert await patient == 4
    assert exchange.batches == [[1, 2]]


async def test_a_batch_is_bounded(exchange: Exchange) -> None:
    batcher = RequestBatcher(exchange, "test")
    answers = await asyncio.gather(*(batcher.send(number) for number in range(100, 101 + BATCH_MAX)))
    assert answers == [2 * number for number in range(100, 101 + BATCH_MAX)]
    assert [len(batch) for batch in exchange.batches] == [BATCH_MAX, 1]


async def test_after_an_exchange_that_several_shared_the_next_one_waits_for_more(exchange: Exchange) -> None:
    batcher = RequestBatcher(exchange, "test", pause_s=0.05)
    assert await batcher.send(1) == 2
    # No request shared the last exchange, so the next one does not pause.
    assert await asyncio.gather(*map(batcher.send, (2, 3))) == [4, 6]
    early = asyncio.create_task(batcher.send(4))
    await asyncio.sleep(0.01)
    late = asyncio.create_task(batcher.send(5))
    assert [await early, await late] == [8, 10]
    assert exchange.batches == [[1], [2, 3], [4, 5]]


def test_remembered_attempts_are_bounded_and_taken_once() -> None:
    begun = StartedAttempts(600_000)
    for number in range(STARTED_ATTEMPTS_MAX + 2):
        begun.remember({"_id": str(number), "attempt": 1, "dispatched_at_ms": 2, "kept_until": None}, 3)
    begun.remember({"_id": "kept", "attempt": 1, "dispatched_at_ms": 2, "kept_until": 9}, 3)
    begun.remember({"_id": "odd", "attempt": 1, "dispatched_at_ms": "2"}, 3)
    assert [begun.take(id, 1) for id in ("0", "1", "kept", "odd")] == [None] * 4
    assert begun.take("2", 2) is None
    assert [begun.take("2", 1), begun.take("2", 1)] == [AttemptTimes(2, 3), None]


def test_a_job_that_its_key_keeps_for_longer_than_its_end_does_is_not_remembered() -> None:
    begun = StartedAttempts(600_000)
    for id, kept_until in (("equal", to_datetime(600_003)), ("longer", to_datetime(600_004))):
        begun.remember({"_id": id, "attempt": 1, "dispatched_at_ms": 2, "kept_until": kept_until}, 3)
    assert [begun.take(id, 1) for id in ("equal", "longer")] == [AttemptTimes(2, 3), None]


def test_events_of_one_time_are_counted_with_room_for_two_each() -> None:
    at: list[str] = [""]
    for moment in (Timestamp(5, 1), Timestamp(5, 1), None, Timestamp(5, 1), Timestamp(5, 2), Timestamp(6, 1)):
        at.append(position_after(at[-1], moment))
    assert at[1:] == [
        position(5, 1), position(5, 1, 2), position(5, 1, 2), position(5, 1, 4), position(5, 2), position(6, 1),
    ]  # fmt: skip
    assert next_in_change(at[1]) < at[2]
