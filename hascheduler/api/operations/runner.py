"""The loop that runs the operations of this replica: one slice of one operation at a time, all of them in turn.

After each slice it rests as long as the slice took, and longer while the leader's decisions are late, or submits are
refused for that: 100,000 changes are as many events for every replica, and requests, fires and other tenants' jobs go
on between them.

Who runs what: the replica that accepted an operation takes it. On SIGTERM it gives back what it has. The leader looks
every few seconds for unfinished operations whose runner is gone, or that have none, and takes those. Taking is a
compare-and-set, and so is every save: of two that believe to be the runner, the one that was overtaken learns it at its
next save and lets go.
"""

import asyncio

import structlog

from hascheduler.api.operations.slices import next_slice
from hascheduler.api.services import ApiServices
from hascheduler.errors import InvalidInput, Overloaded, StoreUnavailable, TooMany, WorldError
from hascheduler.ports import BulkOperation, OperationState, decode_operation
from hascheduler.ports.operations import UnfinishedOperation
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

LOOK_EVERY_MS = 5_000
"""How often the leader looks for operations without a runner."""
STUCK_MAX_MS = 600_000
"""For how long the next slice of an operation may be impossible, before the operation fails."""
_STUCK = (
    f"its next slice could not be done for {STUCK_MAX_MS // 60_000} minutes: the database, or a limit of the tenant"
)
_DEFECT = "a defect of the server, or a stored document that can't be read; see the log of the replicas"
_UNFINISHED_SEEN_MAX = 1_000
_REST_LEAST_S, _REST_MOST_S = 0.02, 2.0
_LATE_MS, _TIMES_LEAST_LAG = 140, 2
"""The leader is late: a little before `hascheduler.api.admission.intake` would refuse the submits of others."""
_LATE_REST_S, _LATE_RESTS_MAX = 0.25, 20
_AGAIN_S, _AGAIN_MOST_S = 1.0, 30.0
_GIVE_BACK_LIMIT_S = 3.0


class OperationRunner:
    """Owner of which operation may go on when; the operations themselves are in the queue. ``run`` ends by being
    cancelled."""

    def __init__(self, services: ApiServices, replica_id: str, look_every_ms: int = LOOK_EVERY_MS) -> None:
        self._services = services
        self._replica_id = replica_id
        self._look_every_ms = look_every_ms
        self._look_at_ms: int = services.clock.mono_ms()
        self._delayed_until_ms: dict[str, int] = {}
        self._stuck_since_ms: dict[str, int] = {}
        self._reminders = Reminders()

    async def run(self) -> None:
        try:
            while True:
                await self.turn()
        finally:
            # A slice that was cut off, as it took too long, is done again, from the same position.
            await self._give_back_finally()

    async def turn(self) -> None:
        """One slice of one operation and the rest after it; without one, a wait for one."""
        services = self._services
        if services.view.stopping:
            await self._give_back_all()
            await asyncio.sleep(_AGAIN_S)
            return
        began_ms = services.clock.mono_ms()
        if began_ms >= self._look_at_ms:
            self._look_at_ms = began_ms + self._look_every_ms
            await self._look()
        operation = services.operation_queue.take(self._delayed(began_ms))
        if operation is None:
            await services.operation_queue.wait(self._idle_s(began_ms))
            return
        advancing = asyncio.create_task(self._advance(operation), name="slice")
        try:
            after = await asyncio.shield(advancing)
        except asyncio.CancelledError:
            left = await self._ended(advancing, operation)
            if left is not None:
                services.operation_queue.put(left)  # to be given back
            raise
        if after is not None:
            services.operation_queue.put(after)
        await self._rest((services.clock.mono_ms() - began_ms) / 1_000)

    @staticmethod
    async def _ended(advancing: asyncio.Task[BulkOperation | None], operation: BulkOperation) -> BulkOperation | None:
        """What `_advance` comes to as this replica ends: what a slice has changed that is cut off, none counts."""
        await asyncio.wait({advancing}, timeout=_GIVE_BACK_LIMIT_S)
        if advancing.done():
            return advancing.result()
        advancing.cancel()
        await asyncio.wait({advancing}, timeout=_GIVE_BACK_LIMIT_S)
        return operation

    # One slice

    async def _advance(self, operation: BulkOperation) -> BulkOperation | None:
        """The operation after its slice, or to be tried again; None: this replica has done with it."""
        after: BulkOperation | None = None
        try:
            own = await self._own(operation)
            if own is not None:
                operation = own
                after = await self._after_slice(own)
        except (WorldError, TooMany) as error:
            self._delay(operation, error)
            return operation
        except Exception:  # whatever is stored, or wrong in an action: the others go on
            log.exception("operation_broke", operation=operation.id)
            after = await self._failed(operation)
        self._delayed_until_ms.pop(operation.id, None)
        self._stuck_since_ms.pop(operation.id, None)
        if after is None or after.state is OperationState.RUNNING:
            return after
        log.info(
            "operation_ended",
            operation=after.id,
            action=after.action.value,
            state=after.state.value,
            by=after.by,
            changed=after.changed,
            asked_to_stop=after.asked_to_stop,
            refused=after.refused,
            error=after.error,
        )
        return None

    async def _own(self, operation: BulkOperation) -> BulkOperation | None:
        """None: another replica was first, or it has ended."""
        if operation.runner == self._replica_id:
            return operation
        store = self._services.operations
        taken = await store.take(operation.id, operation.runner, operation.rev, self._replica_id)
        return await self._as_stored(operation) if taken is None else decode_operation(taken)

    async def _after_slice(self, operation: BulkOperation) -> BulkOperation | None:
        clock = self._services.clock
        stuck_since_ms = self._stuck_since_ms.get(operation.id)
        if operation.stop_requested_at_ms is not None:
            after = operation.ended(OperationState.STOPPED, clock.wall_ms())
        elif stuck_since_ms is not None and clock.mono_ms() - stuck_since_ms >= STUCK_MAX_MS:
            after = operation.ended(OperationState.FAILED, clock.wall_ms(), _STUCK)
        else:
            after = await next_slice(operation, self._services)
        saved = await self._services.operations.save(after)
        return await self._as_stored(operation) if saved is None else decode_operation(saved)

    async def _as_stored(self, operation: BulkOperation) -> BulkOperation | None:
        """Where a write met something else: ours still, if the answer to an earlier write got lost."""
        stored = await self._services.operations.get(operation.id)
        found = None if stored is None else decode_operation(stored)
        if found is not None and found.state is OperationState.RUNNING and found.runner == self._replica_id:
            return found
        log.info("operation_overtaken", operation=operation.id, runner=None if found is None else found.runner)
        return None

    async def _failed(self, operation: BulkOperation) -> BulkOperation | None:
        failed = operation.ended(OperationState.FAILED, self._services.clock.wall_ms(), _DEFECT)
        try:
            saved = await self._services.operations.save(failed)
        except StoreUnavailable:
            return operation
        return None if saved is None else failed

    def _delay(self, operation: BulkOperation, error: WorldError | TooMany) -> None:
        now_ms = self._services.clock.mono_ms()
        self._stuck_since_ms.setdefault(operation.id, now_ms)
        again_s = error.retry_after_s if isinstance(error, Overloaded | TooMany) else _AGAIN_S
        self._delayed_until_ms[operation.id] = now_ms + round(min(max(again_s, _AGAIN_S), _AGAIN_MOST_S) * 1_000)
        if self._reminders.is_due(f"{operation.id}: {error}", now_ms):
            log.warning("operation_delayed", operation=operation.id, error=str(error))

    def _delayed(self, now_ms: int) -> frozenset[str]:
        return frozenset(id for id, until_ms in self._delayed_until_ms.items() if until_ms > now_ms)

    def _idle_s(self, now_ms: int) -> float:
        soonest_ms = min([self._look_at_ms, *self._delayed_until_ms.values()])
        return max(soonest_ms - now_ms, 0) / 1_000 + _REST_LEAST_S

    async def _rest(self, worked_s: float) -> None:
        await asyncio.sleep(min(max(worked_s, _REST_LEAST_S), _REST_MOST_S))
        for _ in range(_LATE_RESTS_MAX):
            if self._services.view.stopping or not (self._is_late() or self._services.admission.is_holding_back()):
                return
            await asyncio.sleep(_LATE_REST_S)

    def _is_late(self) -> bool:
        lag = self._services.view.leader_lag
        return lag.now_ms >= max(_LATE_MS, _TIMES_LEAST_LAG * lag.least_ms)

    # Whose it is

    async def _look(self) -> None:
        """Take the operations without a runner, if this replica leads."""
        store, queue = self._services.operations, self._services.operation_queue
        if not self._services.view.leading:
            return
        try:
            for found in await store.unfinished(_UNFINISHED_SEEN_MAX):
                if queue.has_room and not queue.holds(found.id) and not self._is_run(found.runner):
                    await self._take_over(found)
        except StoreUnavailable as error:
            if self._reminders.is_due("look", self._services.clock.mono_ms()):
                log.warning("operations_unanswered", error=str(error))

    async def _take_over(self, found: UnfinishedOperation) -> None:
        store = self._services.operations
        taken = await store.take(found.id, found.runner, found.rev, self._replica_id)
        if taken is None:
            return
        try:
            operation = decode_operation(taken)
        except InvalidInput as error:
            if self._reminders.is_due(f"{found.id}: {error}", self._services.clock.mono_ms()):
                log.error("operation_unreadable", operation=found.id, error=str(error))
            return
        self._services.operation_queue.put(operation)
        log.info("operation_taken_over", operation=found.id, before=found.runner)

    def _is_run(self, runner: str | None) -> bool:
        """Whether another replica runs it, as far as heartbeats tell; a wrong answer costs a slice done twice."""
        if runner is None or runner == self._replica_id:
            return False
        cluster = self._services.view.cluster()
        return runner not in cluster.silent and any(replica.id == runner for replica in cluster.replicas)

    async def _give_back_all(self) -> None:
        while (operation := self._services.operation_queue.take()) is not None:
            if operation.runner != self._replica_id:
                continue  # not taken yet: it has no runner
            try:
                await self._services.operations.give_back(operation)
            except StoreUnavailable as error:
                log.warning("operation_not_given_back", operation=operation.id, error=str(error))

    async def _give_back_finally(self) -> None:
        try:
            async with asyncio.timeout(_GIVE_BACK_LIMIT_S):
                await self._give_back_all()
        except TimeoutError:
            log.warning("operations_not_given_back")
