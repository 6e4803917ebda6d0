"""Several requests at once, one exchange at a time, in an order that the test chooses.

Each request has stores of its own to work through, which stop before every exchange until it is their turn. So every
order of the exchanges of two requests can be tried, one after the other, and a request can end between any two.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

_TURNS_MAX = 400
_SETTLING = 8
"""Turns of the event loop after which whatever an exchange let go has come to its next one."""


class Turns:
    """Owner of the exchanges that wait for their turn, those of one request."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def through(self, store: Any, name: str) -> Any:
        return _Stopping(store, self)

    async def come(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def go_on(self) -> None:
        """What it asks of several stores at once is one turn."""
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            turn.set_result(None)


class _Stopping:
    def __init__(self, store: Any, turns: Turns) -> None:
        self._store = store
        self._turns = turns

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def exchange(*args: Any, **options: Any) -> Any:
            await self._turns.come()
            return await getattr(self._store, name)(*args, **options)

        return exchange


class Order:
    """Chooses who is next, and remembers between which it could have chosen: so all orders can be gone through."""

    def __init__(self, chosen: Sequence[int] = ()) -> None:
        self._given = list(chosen)
        self.chosen: list[int] = []
        self.choices: list[int] = []

    def choose(self, among: int) -> int:
        place = len(self.chosen)
        one = self._given[place] if place < len(self._given) else 0
        self.chosen.append(one)
        self.choices.append(among)
        return one

    def following(self) -> "Order | None":
        """The one after this in the order of all; None: this was the last."""
        for place in reversed(range(len(self.chosen))):
            if self.chosen[place] + 1 < self.choices[place]:
                return Order([*self.chosen[:place], self.chosen[place] + 1])
        return None


async def interleaved(
    requests: Sequence[Callable[[Turns], Awaitable[Any]]], choose: Callable[[int], int], ends_after: Sequence[int] = ()
) -> list[Any]:
    """The answers of all ``requests``. The one at a place ends, without an answer, before the exchange that has the
    number of ``ends_after`` at that place; -1: it does not."""
    turns = [Turns() for _ in requests]
    tasks = [asyncio.ensure_future(request(turn)) for request, turn in zip(requests, turns, strict=True)]
    left = [*ends_after, *[-1] * (len(requests) - len(ends_after))]
    await _settled()
    for _ in range(_TURNS_MAX):
        running = [place for place, task in enumerate(tasks) if not task.done()]
        if not running:
            break
        place = running[choose(len(running))] if len(running) > 1 else running[0]
        if left[place] == 0:
            tasks[place].cancel()
        else:
            left[place] -= 1
            turns[place].go_on()
        await _settled()
    else:
        raise AssertionError("it has no end")
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers


async def _settled() -> None:
    for _ in range(_SETTLING):
        await asyncio.sleep(0)
