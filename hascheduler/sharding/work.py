"""What processors ask and write over HTTP, where there are several shards.

A processor is of one shard at a time, and the id that it got tells which (`hascheduler.model.processor.with_shard`).
All its calls go to that shard alone: there is no job of another shard in it, so none can be started, finished or given
back by mistake, and a processor whose shard does not answer waits for no other.

One whose id tells no shard registered before there were several. It is looked for in all; each write names the attempt
and the processor, so a shard that is asked for nothing changes nothing. Its finish that comes late may be kept beside a
job of the same id in another shard, as any late result, and changes nothing there either.
"""

from collections.abc import Mapping, Sequence

from hascheduler.errors import InvalidInput
from hascheduler.model.processor import ProcessorRef, shard_in
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome, FinishAnswer, HandlerProgress, StartedJob, StopRequests, WorkStore
from hascheduler.sharding.asking import ask_all, first_answer, naming_outages
from hascheduler.sharding.places import ShardPlaces


class ShardedWorkStore:
    """`hascheduler.ports.WorkStore`."""

    def __init__(self, places: ShardPlaces, shards: Sequence[WorkStore]) -> None:
        self._places = places
        self._shards = naming_outages(places.shards, shards)

    # The processor

    async def register(self, processor: ProcessorRef) -> None:
        """`InvalidInput` where there is no such shard, or the id tells another: its calls would go there."""
        here = self._places.index_of(processor.shard)
        if here is None:
            raise InvalidInput(("shard",), f"{quoted(processor.shard)} is none", ", ".join(self._places.shards))
        if self._told(processor.id) not in (None, here):
            raise InvalidInput(("id",), f"{quoted(processor.id)} is of another shard", f"one of {processor.shard}")
        await self._shards[here].register(processor)

    async def beat(self, processor_id: str, beat: int, *, draining: bool, consuming: bool = True, parked: int) -> bool:
        return await first_answer(
            self._meant(processor_id),
            lambda store: store.beat(processor_id, beat, draining=draining, consuming=consuming, parked=parked),
            none=False,
        )

    async def touch(self, processor_id: str, *, draining: bool | None = None) -> bool:
        return await first_answer(
            self._meant(processor_id), lambda store: store.touch(processor_id, draining=draining), none=False
        )

    async def deregister(self, processor_id: str) -> None:
        await ask_all(store.deregister(processor_id) for store in self._meant(processor_id))

    # Its attempts

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        return await first_answer(
            await self._of_attempt(job_id, processor_id),
            lambda store: store.start(job_id, attempt, processor_id, at_ms),
            none=None,
        )

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: AttemptOutcome, at_ms: WallMs
    ) -> FinishAnswer:
        return await first_answer(
            await self._of_attempt(job_id, processor_id),
            lambda store: store.finish(job_id, attempt, processor_id, outcome, at_ms),
            none=FinishAnswer.LATE,
        )

    async def give_back(
        self, job_id: str, attempt: int, processor_id: str, reason: str, at_ms: WallMs, *, lost: bool = False
    ) -> bool:
        return await first_answer(
            await self._of_attempt(job_id, processor_id),
            lambda store: store.give_back(job_id, attempt, processor_id, reason, at_ms, lost=lost),
            none=False,
        )

    async def report(self, processor_id: str, reports: Mapping[tuple[str, int], HandlerProgress]) -> None:
        await ask_all(store.report(processor_id, reports) for store in self._meant(processor_id))

    async def report_overdue(self, processor_id: str, since: Mapping[tuple[str, int], WallMs]) -> None:
        await ask_all(store.report_overdue(processor_id, since) for store in self._meant(processor_id))

    async def stop_requests(self, processor_id: str, running: Sequence[tuple[str, int]]) -> StopRequests:
        """An attempt is revoked where no shard has it as this processor's."""
        found = await ask_all(store.stop_requests(processor_id, running) for store in self._meant(processor_id))
        revoked = frozenset(running).intersection(*(each.revoked for each in found))
        return StopRequests(frozenset().union(*(each.cancelled for each in found)), revoked)

    # Shards

    def _told(self, processor_id: str) -> int | None:
        shard = shard_in(processor_id)
        return None if shard is None else self._places.index_of(shard)

    def _meant(self, processor_id: str) -> Sequence[WorkStore]:
        here = self._told(processor_id)
        return self._shards if here is None else [self._shards[here]]

    async def _of_attempt(self, job_id: str, processor_id: str) -> Sequence[WorkStore]:
        here = self._told(processor_id)
        return [self._shards[index] for index in (await self._places.search(job_id) if here is None else [here])]
