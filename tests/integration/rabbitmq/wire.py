"""A line to the broker, so that a test can cut its connections, or let them fall silent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from yarl import URL

from tests.chaos.proxy import Line


class Wire(Line):
    """While ``silent``, nothing passes any more; ``reset`` cuts what is connected now."""

    def __init__(self, broker: URL) -> None:
        super().__init__((str(broker.host), broker.port or 0))
        self._broker = broker
        self._silent = False

    @property
    def url(self) -> str:
        return str(self._broker.with_port(self.port))

    @property
    def silent(self) -> bool:
        return self._silent

    @silent.setter
    def silent(self, silent: bool) -> None:
        self._silent = silent
        self.hold() if silent else self.heal()


@asynccontextmanager
async def wire_to(broker_url: str) -> AsyncIterator[Wire]:
    wire = Wire(URL(broker_url))
    await wire.open("127.0.0.1")
    try:
        yield wire
    finally:
        await wire.close()
