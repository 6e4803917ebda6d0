"""``python -m tests.chaos.serve serve`` and ``… processor MODULE…``: the product's command line, with strings attached.

The product knows nothing of them. What `hascheduler.assembly` and its neighbours put together is exchanged before: its
clock for one that may be wrong, its stream for one that may be late, its loop for one that may hang, its transport,
deliveries and work for ones that pass by the failpoints, and, where a bug is to be planted, one of its stores. On
`LOG_TASKS` it writes to its log where each of its tasks waits.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pymongo import monitoring

from hascheduler import assembly, assembly_processor, assembly_replica
from hascheduler.__main__ import main
from hascheduler.model.message import Message
from hascheduler.ports import Confirm, Delivery, FinishAnswer, StartedJob
from tests.chaos import mutants
from tests.chaos.strings import (
    BUG,
    CLOCK,
    CONTROL,
    FAILPOINT,
    HANG,
    LOG_TASKS,
    STREAM,
    Failpoints,
    SkewedBoard,
    SkewedClock,
    SlowSource,
    WatchedCommands,
    hang_on_demand,
)
from tests.mutants.everywhere import Around


def attach() -> None:
    """Whatever the environment asks for."""
    signal.signal(LOG_TASKS, lambda *_: _log_tasks())
    control = Path(os.environ[CONTROL])
    watched = Failpoints(control / FAILPOINT)
    monitoring.register(WatchedCommands(watched))
    _exchange("RabbitTransport", lambda transport: _WatchedTransport(transport, watched))
    _exchange("RabbitDeliveries", lambda deliveries: _WatchedDeliveries(deliveries, watched))
    _exchange("SystemClock", lambda _: SkewedClock(control / CLOCK))
    _exchange("MongoReplicaBoard", lambda board: SkewedBoard(board, control / CLOCK))
    if BUG in os.environ:
        bug = mutants.PLANTED[os.environ[BUG]]
        _exchange(bug.part, bug.instead)
    _exchange("MongoWorkStore", lambda work: _WatchedWork(work, watched))
    _exchange("MongoChangeSource", lambda source: SlowSource(source, control / STREAM))
    _exchange("Replica", lambda replica: hang_on_demand(replica, control / HANG))


def _log_tasks() -> None:
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:  # it comes up, or goes down
        return
    for task in tasks:
        task.print_stack(file=sys.stderr)


def _exchange(part: str, instead: Callable[[Any], Any]) -> None:
    """What is put together by that name, for a replica or a processor, goes through ``instead``."""
    rooms = [room for room in _rooms() if hasattr(room, part)]
    assert rooms, f"nothing is put together by the name {part}"
    for room in rooms:
        setattr(room, part, _made_through(getattr(room, part), instead))


def _rooms() -> Sequence[ModuleType]:
    if "serve" not in sys.argv:
        return [assembly, assembly_processor, assembly_replica]
    from hascheduler import assembly_api  # half of all that a replica imports, and nothing of it is for processors

    return [assembly, assembly_processor, assembly_replica, assembly_api]


def _made_through(make: Callable[..., Any], instead: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *given, **named: instead(make(*given, **named))


class _WatchedTransport(Around):
    def __init__(self, transport: Any, failpoints: Failpoints) -> None:
        super().__init__(transport)
        self._failpoints = failpoints

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        confirms: list[Confirm] = await self._failpoints.around("transport.publish", self._part.publish(messages))
        return confirms


class _WatchedWork(Around):
    def __init__(self, work: Any, failpoints: Failpoints) -> None:
        super().__init__(work)
        self._failpoints = failpoints

    async def start(self, job_id: str, *asked: Any) -> StartedJob | None:
        starting = self._part.start(job_id, *asked)
        started: StartedJob | None = await self._failpoints.around("work.start", starting, job_id)
        return started

    async def finish(self, job_id: str, *asked: Any) -> FinishAnswer:
        answer: FinishAnswer = await self._failpoints.around("work.finish", self._part.finish(job_id, *asked), job_id)
        return answer


class _WatchedDeliveries(Around):
    def __init__(self, deliveries: Any, failpoints: Failpoints) -> None:
        super().__init__(deliveries)
        self._failpoints = failpoints

    async def run(self, sink: Callable[[Delivery], Awaitable[None]], turned: Callable[[], None]) -> None:
        await self._part.run(lambda delivery: sink(self._watched(delivery)), turned)

    def _watched(self, delivery: Delivery) -> Delivery:
        async def ack() -> None:
            await self._failpoints.around("delivery.ack", delivery.ack())

        return Delivery(delivery.body, ack, delivery.park, delivery.trace)


if __name__ == "__main__":
    attach()
    main()
