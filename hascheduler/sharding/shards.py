"""Asks one shard, all of them, or one after the other.

What must hold: an outage is named after its shard; of calls to several shards none goes on when the answer is given,
whether it is an answer, an error or the caller's cancellation; and which of several errors is told is always the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from hascheduler.sharding.outages import outages_of
from hascheduler.sharding.places import ShardPlaces

Store = TypeVar("Store")
Answer = TypeVar("Answer")


class Shards(Generic[Store]):
    """One store a shard, in the order of the shards of ``places``."""

    def __init__(self, places: ShardPlaces, stores: Sequence[Store]) -> None:
        if len(stores) != places.count:
            raise ValueError(f"{len(stores)} stores for {places.count} shards")
        self._places = places
        self._stores = stores

    async def one(self, index: int, call: Callable[[Store], Awaitable[Answer]]) -> Answer:
        with outages_of(self._places.shards[index]):
            return await call(self._stores[index])

    async def all(self, call: Callable[[Store], Awaitable[Answer]]) -> list[Answer]:
        """The answers of all shards, in their order."""
        return list((await self.each(dict.fromkeys(range(self._places.count), call))).values())

    async def each(self, calls: Mapping[int, Callable[[Store], Awaitable[Answer]]]) -> dict[int, Answer]:
        """The answers of those shards, all asked at once, each with a call of its own; of errors that of the first."""
        if len(calls) == 1:
            return {index: await self.one(index, call) for index, call in calls.items()}
        asked = (self.one(index, call) for index, call in calls.items())
        # Not a group that ends at the first error: a write to another shard is then carried out as far as it can be.
        answers = await asyncio.gather(*asked, return_exceptions=True)
        found: dict[int, Answer] = {}
        for index, answer in zip(calls, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            found[index] = answer
        return found

    async def first(self, order: Iterable[int], call: Callable[[Store], Awaitable[Answer]], none: Answer) -> Answer:
        """The first answer that is not ``none``. A shard that can't be asked ends it: the ones after it are less likely
        to be meant, and what they have may be of another tenant."""
        for index in order:
            answer = await self.one(index, call)
            if answer != none:
                return answer
        return none
