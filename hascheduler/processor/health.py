"""What a processor reports about itself: whether it is alive and can take work, and how much it has."""

import asyncio
from dataclasses import dataclass

from hascheduler.model.processor import NOT_CONSUMING
from hascheduler.ports import Clock, Deliveries
from hascheduler.processor.attempts import Acknowledgements, HeldAttempts
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.processor.heartbeat import Heartbeat, SelfFence
from hascheduler.telemetry.health import NOT_TURNING
from hascheduler.telemetry.metrics_processor import ProcessorGauges

_WEDGED_AFTER_MS = 60_000
DRAINING = "draining"
NOT_REGISTERED = "not registered yet"
FENCED = "no heartbeat was written in time"


@dataclass(kw_only=True)
class ProcessorHealth:
    """`telemetry.health.Health`; reads only."""

    clock: Clock
    attempts: HeldAttempts
    fence: SelfFence
    heartbeat: Heartbeat
    receipts: Acknowledgements
    deliveries: Deliveries
    draining: asyncio.Event
    handler_loop: HandlerLoop | None = None

    def not_alive(self) -> str:
        if self.handler_loop is not None and self.handler_loop.is_stuck:
            return str(self.handler_loop.stall)
        turned_at = min(self.heartbeat.turned_at_ms, self.fence.checked_at_ms)
        return "" if self.clock.mono_ms() - turned_at < _WEDGED_AFTER_MS else NOT_TURNING

    def not_ready(self) -> str:
        if self.draining.is_set():
            return DRAINING
        if self.heartbeat.registered_offer is None:
            return NOT_REGISTERED
        if not self.fence.trusted:
            return FENCED
        if self.handler_loop is not None and self.handler_loop.stall is not None:
            return str(self.handler_loop.stall)
        return "" if self.deliveries.consuming else NOT_CONSUMING

    def not_leading(self) -> str:
        return "a processor never leads"

    def gauges(self) -> ProcessorGauges:
        return ProcessorGauges(
            running=len(self.attempts.running),
            slots=self.heartbeat.slots,
            parked=self.receipts.parked,
            fence_open=self.fence.trusted,
            heartbeat_age_ms=self.fence.age_ms,
        )
