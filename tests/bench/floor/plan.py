"""What is measured at its floor, and what runs while it is."""

from dataclasses import dataclass
from typing import Protocol

from tests.bench.cast import Cast
from tests.bench.floor.exchanges import Start
from tests.bench.floor.forms import Form


@dataclass(frozen=True, slots=True)
class FloorPlan:
    """As many ``replicas`` as follow the stream, one of which leads; it waits for ``batch_delay_max_ms`` at most before
    it decides. ``rest_ms`` is the leader's before it asks its stream for more, where it does not need it."""

    form: Form
    replicas: int
    rest_ms: int
    batch_delay_max_ms: int


class Running(Protocol):
    """``cast`` has its processes by kind, without servers; jobs may be submitted at each of ``urls``."""

    cast: Cast
    urls: tuple[str, ...]

    async def fire(self, schedules: int) -> None:
        """So many are due now; until their jobs have ended."""
        ...

    async def end(self) -> list[Start]:
        """Each start since the beginning; nothing starts any more."""
        ...
