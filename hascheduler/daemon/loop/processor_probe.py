"""Prove that a processor's process is dead, by a connection to each, as standbys keep one to the leader.

Without a proof a processor is dead once its heartbeat has stalled for the heartbeat timeout. With a proof its jobs run
elsewhere at once. `leadership.liveness` defines the proof: the processor had greeted, the connection closed, and its
endpoint now refuses, or answers as another process. Its handlers died with it, so none runs alongside the next attempt.
Every replica watches: a new leader must not start without a greeting.

A processor registers with its endpoint; one of 0.2.0 has none, nor has one that polls over HTTP.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from hascheduler.daemon.leadership.liveness import WaitForDeath
from hascheduler.dispatch.inputs import Input, ProcessorLost, Resynced
from hascheduler.mirror.changes import ProcessorGone, ProcessorSeen
from hascheduler.model.processor import ProcessorRef

log = structlog.get_logger(__name__)


class ProcessorProbe:
    """Owner of the watches, one a registered processor with an endpoint. ``died`` gets the input for the core.

    Ids are unique per process start, so a dead one stays dead, even if one of its earlier beats arrives later, and
    after a fresh snapshot.
    """

    def __init__(self, died: Callable[[ProcessorLost], None], wait_for_death: WaitForDeath) -> None:
        self._died = died
        self._wait_for_death = wait_for_death
        self._newest: dict[str, ProcessorRef] = {}
        self._dead: set[str] = set()
        self._changed = asyncio.Event()

    def seen(self, inputs: Sequence[Input]) -> None:
        """Take the inputs that the core has just seen."""
        for each in inputs:
            match each:
                case ProcessorSeen(processor) if processor.liveness_endpoint:
                    self._watch(processor)
                case ProcessorGone(processor_id):
                    self._newest.pop(processor_id, None)
                    self._dead.discard(processor_id)
                    self._changed.set()
                case Resynced():
                    self._newest.clear()
                    self._changed.set()
                case _:
                    pass

    async def run(self) -> None:
        watches: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._changed.wait()
                self._changed.clear()
                watched = self._newest.keys() - self._dead
                for processor_id in watches.keys() - watched:
                    watches.pop(processor_id).cancel()
                for processor_id in watched - watches.keys():
                    watch = self._prove(processor_id, self._newest[processor_id].liveness_endpoint)
                    watches[processor_id] = tasks.create_task(watch, name=f"watch {processor_id}")

    def _watch(self, processor: ProcessorRef) -> None:
        if processor.id in self._dead:
            self._died(ProcessorLost(processor.id, processor.beat))
        elif processor.id not in self._newest:
            self._changed.set()
        self._newest[processor.id] = processor

    async def _prove(self, processor_id: str, endpoint: str) -> None:
        await self._wait_for_death(processor_id, endpoint)
        newest = self._newest.get(processor_id)
        if newest is None:
            return  # it deregistered and then ended: the proof and the end of this watch come in the same turn
        if newest.draining and newest.consuming:
            log.info("processor_ended", processor=processor_id, endpoint=endpoint)
        else:
            log.warning("processor_died", processor=processor_id, endpoint=endpoint)
        self._dead.add(processor_id)
        self._died(ProcessorLost(processor_id, newest.beat))
