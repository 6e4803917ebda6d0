"""Read messages and pass them on. Garbage is parked, duplicates are dropped, and neither delays the others.

Draining does not end it: what arrives then is given back at once, sooner than the leader could notice, and requests to
cancel still come through.
"""

import asyncio
from collections.abc import Callable

import structlog

from hascheduler.errors import InvalidInput
from hascheduler.lifecycle import leave_if_cancelled
from hascheduler.model.message import Message, MessageKind, decode_message
from hascheduler.ports import Deliveries, Delivery
from hascheduler.processor.attempts import Acknowledgements, HeldAttempts, StopReason
from hascheduler.processor.runner import Runner

log = structlog.get_logger(__name__)

_PARKING_MAX = 16


class Intake:
    """Owner of the tasks of the attempts."""

    def __init__(
        self, deliveries: Deliveries, attempts: HeldAttempts, runner: Runner, receipts: Acknowledgements
    ) -> None:
        self._deliveries = deliveries
        self._attempts = attempts
        self._runner = runner
        self._receipts = receipts
        self._parking = asyncio.Semaphore(_PARKING_MAX)
        self._draining = False

    async def run(self, turned: Callable[[], None]) -> None:
        """Receive until cancelled, and abandon attempts that still run then; ``turned`` is that of `Deliveries.run`."""
        async with asyncio.TaskGroup() as tasks:

            async def receive(delivery: Delivery) -> None:
                try:
                    await self._receive(delivery, tasks)
                except Exception:  # one message must not stop the others
                    log.exception("message_failed")
                leave_if_cancelled()

            await self._deliveries.run(receive, turned)

    def drain(self) -> None:
        self._draining = True
        self._attempts.stop_waiting()

    async def _receive(self, delivery: Delivery, tasks: asyncio.TaskGroup) -> None:
        try:
            message = decode_message(delivery.body)
        except InvalidInput as error:
            await self._parking.acquire()
            tasks.create_task(self._park(delivery, str(error)), name="park")
            return
        match message:
            case Message(MessageKind.CANCEL, job_id, number):
                self._attempts.stop((job_id, number), StopReason.CANCELLED)
                await self._receipts.acknowledge(delivery)
            case Message(MessageKind.RUN, job_id, number):
                attempt = await self._attempts.hold((job_id, number))
                if attempt is None:
                    await self._receipts.acknowledge(delivery)
                    return
                if self._draining:
                    attempt.stop(StopReason.DRAINED)
                tasks.create_task(self._runner.run(attempt, delivery), name=f"attempt {message.message_id}")

    async def _park(self, delivery: Delivery, reason: str) -> None:
        try:
            await self._receipts.park(delivery, reason)
        except Exception:
            log.exception("message_failed")
        finally:
            self._parking.release()
