"""What becomes of a message once it has been handled: acknowledged, or parked with the reason.

Neither may fail an attempt: a message that could not be acknowledged comes again, and meets an attempt that is held or
a start that is lost.
"""

import structlog

from hascheduler.errors import WorldError
from hascheduler.ports import Delivery

log = structlog.get_logger(__name__)


class Acknowledgements:
    """Owns the number of messages that this process could not read."""

    def __init__(self) -> None:
        self.parked = 0

    async def acknowledge(self, delivery: Delivery) -> None:
        try:
            await delivery.ack()
        except WorldError as error:
            log.debug("not_acknowledged", error=str(error))

    async def park(self, delivery: Delivery, reason: str) -> None:
        self.parked += 1
        log.warning("parked", reason=reason)
        try:
            await delivery.park(reason)
        except WorldError as error:
            log.warning("not_parked", error=str(error))
