"""The stage in a cluster: pods are ended through ``kubectl``, the evidence comes over HTTP and out of followed logs."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from hascheduler.demo.kubernetes.endings import KILL, end
from hascheduler.demo.kubernetes.jobs import Jobs
from hascheduler.demo.kubernetes.kubectl import Kubectl
from hascheduler.demo.kubernetes.outputs import Outputs
from hascheduler.demo.kubernetes.patience import once
from hascheduler.demo.kubernetes.pods import PROCESSOR, SCHEDULER, Pod, Pods
from hascheduler.demo.kubernetes.preflight import Cleared
from hascheduler.demo.kubernetes.schedules import Schedules
from hascheduler.demo.kubernetes.takeover import taken_over
from hascheduler.demo.replicas import Replicas
from hascheduler.demo.stage import Leader, Look, Member
from hascheduler.errors import StoreUnavailable
from hascheduler.model.instants import WallMs

_PATIENCE_S = 60.0
_READY_S = 180.0
"""A pod that waits for its back-off, or for a node, takes its time."""
_BUSY_PATIENCE_S = 5.0
_EVERY_S = 0.2
_PODS_EVERY_S = 0.5


class KubernetesStage:
    """`hascheduler.demo.stage.Stage`."""

    where = "node"
    look_every_s = 0.3

    def __init__(
        self,
        *,
        kubectl: Kubectl,
        cleared: Cleared,
        pods: Pods,
        outputs: Outputs,
        api: Replicas,
        schedules: Schedules,
        kills: int,
        prefix: str,
        title: str,
    ) -> None:
        self._kubectl = kubectl
        self._cleared = cleared
        self._pods = pods
        self._outputs = outputs
        self._api = api
        self._schedules = schedules
        self._jobs = Jobs(api)
        self._before: Mapping[str, Pod] = {}
        self.ways: Sequence[str] = tuple(islice(cycle(cleared.ways), kills))
        self.processor_way = cleared.processor_way
        # A container that is killed leaves its log to be read; a pod that is deleted by force takes it along.
        self.cuts_outputs = cleared.processor_way != KILL
        self.prefix = prefix
        self.title = title

    def wall_ms(self) -> WallMs:
        return self._schedules.wall_ms()

    def replicas(self) -> Sequence[Member]:
        return self._members(SCHEDULER)

    def processors(self) -> Sequence[Member]:
        return self._members(PROCESSOR)

    def outputs(self) -> Sequence[Path]:
        return self._outputs.paths()

    def listing(self) -> Sequence[RenderableType]:
        return [f"{self._kubectl.shown} get pods"]

    async def look(self) -> Look | None:
        return await self._api.look()

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._schedules.create(body)

    async def leader(self) -> Leader:
        async def look() -> Leader | None:
            sight = await self._api.look()
            holder = sight.cluster["leader"] if sight else None
            if holder is None:
                return None
            name = str(holder["holder"]).rpartition(".")[0]
            return Leader(name, holder["term"]) if self._pods.named(name) is not None else None

        return await once(look, "a pod that leads", patience_s=_PATIENCE_S, every_s=_EVERY_S)

    async def end_leader(self, leader: Leader, way: str) -> int:
        await self._pods.look()
        self._before = {pod.name: pod for pod in self._pods.of(SCHEDULER)}
        await end(self._kubectl, leader.name, way, container=SCHEDULER, verb="serve")
        return await taken_over(self._api, leader)

    async def restore(self, leader: Leader) -> str:
        return (await self._replaced(SCHEDULER, leader.name, self._before, self._cleared.replicas)).name

    async def busiest_processor(self) -> str:
        async def look() -> str | None:
            sight = await self._api.look()
            alive = [one for one in sight.processors if one["alive"] and not one["draining"]] if sight else []
            ours = [one for one in alive if self._pods.named(one["name"]) is not None]
            busiest = max(ours, key=lambda one: (one["occupied"], str(one["id"])), default=None)
            if busiest is None or not (busiest["occupied"] or loop.time() > until_s):
                return None
            return str(busiest["id"])

        loop = asyncio.get_running_loop()
        until_s = loop.time() + _BUSY_PATIENCE_S
        return await once(look, "a processor that lives", patience_s=_PATIENCE_S, every_s=0.05)

    async def end_processor(self, id: str) -> str:
        name = id.rpartition(".")[0]
        await self._pods.look()
        before = {pod.name: pod for pod in self._pods.of(PROCESSOR)}
        serving = sum(pod.serves for pod in before.values())
        await end(self._kubectl, name, self.processor_way, container=PROCESSOR, verb="processor")
        return (await self._replaced(PROCESSOR, name, before, serving)).name

    async def ended(self, ids: Collection[str]) -> bool:
        try:
            return await self._jobs.ended(ids)
        except StoreUnavailable:
            return False

    async def read_jobs(self, ids: Collection[str], seen: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        return await once(
            lambda: self._jobs.read(ids, seen), "the jobs can be read", patience_s=_PATIENCE_S, every_s=_EVERY_S
        )

    async def complete_outputs(self) -> None:
        await self._outputs.complete()

    def _members(self, component: str) -> Sequence[Member]:
        return [Member(pod.name, pod.node, running=not pod.ending) for pod in self._pods.of(component)]

    async def _replaced(self, component: str, name: str, before: Mapping[str, Pod], wanted: int) -> Pod:
        """The pod that stands in for that one, once so many are ready: itself, started again, or a new one."""
        restarts = before[name].restarts if name in before else 0

        async def look() -> Pod | None:
            await self._pods.look()
            serving = [pod for pod in self._pods.of(component) if pod.serves]
            new = [pod for pod in serving if pod.name not in before]
            again = [pod for pod in serving if pod.name == name and pod.restarts > restarts]
            return (new + again)[0] if new + again and len(serving) >= wanted else None

        what = f"{component} pods are ready again; see {self._kubectl.shown} get pods"
        return await once(look, what, patience_s=_READY_S, every_s=_PODS_EVERY_S)
