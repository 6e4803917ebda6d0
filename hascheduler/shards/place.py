"""One shard as the gateway reaches it: something that answers a whole request."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from starlette.types import Message, Receive, Scope, Send

ONE_SHARD = b"x-hascheduler-shard"
"""The header that names the one shard that has to answer: a replica sends it to another, or a person does."""
NOT_HOSTED = b"x-hascheduler-not-hosted"
"""The header of a 503 by a replica that does not host the shard that `ONE_SHARD` names: nothing was done."""

_T = TypeVar("_T")


class Place(Protocol):
    name: str
    """The shard's name."""

    async def ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the shard answer that request; 503 with its name if no replica that hosts it answers."""
        ...


@dataclass(slots=True)
class WholeAnswer:
    """An answer kept whole, to be read, merged or sent on."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    async def take(self, message: Message) -> None:
        """Keep a message of the answer; a `Send`."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        else:
            self.pieces.append(message.get("body", b""))

    async def send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


async def ask_all(asked: Iterable[Coroutine[Any, Any, _T]]) -> Sequence[_T]:
    """Return the answers in this order. If one raises, the others are cancelled first."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(each) for each in asked]
    return [each.result() for each in running]
