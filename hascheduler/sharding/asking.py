"""Asks several shards at once, and says of which one there was no answer."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from hascheduler.errors import InvalidInput, Moving, ShardUnavailable, StoreUnavailable, Unreachable

_Answer = TypeVar("_Answer")
_Store = TypeVar("_Store")


async def ask_all(asked: Iterable[Coroutine[Any, Any, _Answer]]) -> list[_Answer]:
    """The answers in this order. The first that fails is raised once none is on its way any more: the others are
    cancelled, and what they write may be repeated, as every write of a port."""
    tasks = [asyncio.ensure_future(each) for each in asked]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def first_answer(
    shards: Iterable[_Store], ask: Callable[[_Store], Coroutine[Any, Any, _Answer]], none: _Answer
) -> _Answer:
    """The first answer that is not ``none``, from one after the other; ``none`` where no shard has another."""
    for shard in shards:
        answer = await ask(shard)
        if answer != none:
            return answer
    return none


def naming_outages(names: Sequence[str], shards: Sequence[_Store]) -> Sequence[_Store]:
    """The same stores, whose outages have the name of their shard before what they say."""
    return [cast(_Store, _Named(name, shard)) for name, shard in zip(names, shards, strict=True)]


@contextmanager
def outages_of(shard: str) -> Iterator[None]:
    try:
        yield
    except Unreachable as error:
        mistake = error.mistake
        named = InvalidInput(mistake.path, f"shard {shard}: {mistake.problem}", mistake.expected)
        raise Unreachable(named, stays=error.stays) from error
    except Moving:
        raise
    except StoreUnavailable as error:
        raise ShardUnavailable(shard, str(error)) from error


class _Named:
    """Any store: all that the ports of stores have are asynchronous methods."""

    def __init__(self, name: str, store: object) -> None:
        self._name = name
        self._store = store

    def __getattr__(self, method: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        asked = getattr(self._store, method)

        async def ask(*arguments: Any, **options: Any) -> Any:
            with outages_of(self._name):
                return await asked(*arguments, **options)

        return ask
