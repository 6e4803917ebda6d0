"""What processors that speak HTTP write, in the shard that each is registered in.

A processor takes jobs of its shard alone. Its id tells the shard, and each write goes there: the store of that shard
has none of another's jobs, so a start of one changes nothing, as of any attempt that is not the processor's.
"""

from collections.abc import Mapping, Sequence

from hascheduler.model.processor import ProcessorRef, shard_in
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome, FinishAnswer, HandlerProgress, StartedJob, StopRequests, WorkStore
from hascheduler.sharding.places import ShardPlaces


class ShardedWorkStore:
    """`hascheduler.ports.WorkStore`. An id that tells no shard, or none of these, is one of the home."""

    def __init__(self, places: ShardPlaces, shards: Sequence[WorkStore]) -> None:
        self._by_name = dict(zip(places.shards, shards, strict=True))
        self._home = shards[0]

    async def register(self, processor: ProcessorRef) -> None:
        await self._by_name.get(processor.shard, self._home).register(processor)

    async def beat(self, processor_id: str, beat: int, *, draining: bool, parked: int) -> bool:
        return await self._of(processor_id).beat(processor_id, beat, draining=draining, parked=parked)

    async def touch(self, processor_id: str, *, draining: bool | None = None) -> bool:
        return await self._of(processor_id).touch(processor_id, draining=draining)

    async def deregister(self, processor_id: str) -> None:
        await self._of(processor_id).deregister(processor_id)

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        return await self._of(processor_id).start(job_id, attempt, processor_id, at_ms)

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: AttemptOutcome, at_ms: WallMs
    ) -> FinishAnswer:
        return await self._of(processor_id).finish(job_id, attempt, processor_id, outcome, at_ms)

    async def give_back(
        self, job_id: str, attempt: int, processor_id: str, reason: str, at_ms: WallMs, *, lost: bool = False
    ) -> bool:
        return await self._of(processor_id).give_back(job_id, attempt, processor_id, reason, at_ms, lost=lost)

    async def report(self, processor_id: str, reports: Mapping[tuple[str, int], HandlerProgress]) -> None:
        await self._of(processor_id).report(processor_id, reports)

    async def report_overdue(self, processor_id: str, since: Mapping[tuple[str, int], WallMs]) -> None:
        await self._of(processor_id).report_overdue(processor_id, since)

    async def stop_requests(self, processor_id: str, running: Sequence[tuple[str, int]]) -> StopRequests:
        return await self._of(processor_id).stop_requests(processor_id, running)

    def _of(self, processor_id: str) -> WorkStore:
        return self._by_name.get(shard_in(processor_id) or "", self._home)
