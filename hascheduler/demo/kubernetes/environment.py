"""The environment in a cluster: ``kubectl`` ends pods, and the evidence comes over HTTP and from followed logs."""

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from hascheduler.demo.environment import ClusterSnapshot, CurrentLeader, DemoEnvironment, ProcessStatus, Takeover
from hascheduler.demo.kubernetes.api_access import admin_token, authority, speaks_https
from hascheduler.demo.kubernetes.demo_objects import DemoJobs, DemoSchedules
from hascheduler.demo.kubernetes.kills import KILL, end_pod, measure_takeover
from hascheduler.demo.kubernetes.kubectl import Kubectl, poll_until
from hascheduler.demo.kubernetes.pods import PROCESSOR, SCHEDULER, Pod, PodLogs, Pods, PortForwards
from hascheduler.demo.kubernetes.preflight import PreflightResult, run_preflight
from hascheduler.demo.replica_api import ReplicaApi, open_replica_api
from hascheduler.errors import CallerError, StoreUnavailable
from hascheduler.model.values.instants import WallMs

_PATIENCE_S = 60.0
_READY_S = 180.0
"""A pod that waits for its back-off, or for a node, takes its time."""
_BUSY_PATIENCE_S = 5.0
_EVERY_S = 0.2
_PODS_EVERY_S = 0.5
_OPEN_PATIENCE_S = 30.0
_OPEN_EVERY_S = 0.2
_DEFINITIONS = ("log", "sleep")


class KubernetesEnvironment:
    """`hascheduler.demo.environment.DemoEnvironment`."""

    where = "node"
    poll_every_s = 0.3

    def __init__(
        self,
        *,
        kubectl: Kubectl,
        cleared: PreflightResult,
        pods: Pods,
        outputs: PodLogs,
        api: ReplicaApi,
        schedules: DemoSchedules,
        kills: int,
        prefix: str,
        title: str,
        url: str,
    ) -> None:
        self._kubectl = kubectl
        self._cleared = cleared
        self._pods = pods
        self._outputs = outputs
        self._api = api
        self._url = url
        self._schedules = schedules
        self._jobs = DemoJobs(api)
        self._before: Mapping[str, Pod] = {}
        self.shards: Sequence[str] = ()
        self.tenants: Sequence[str] = ()
        self.ways: Sequence[str] = tuple(islice(cycle(cleared.ways), kills))
        self.processor_way = cleared.processor_way
        # A container that is killed leaves its log to be read; a pod that is deleted by force takes it along.
        self.cuts_outputs = cleared.processor_way != KILL
        self.prefix = prefix
        self.title = title

    def wall_ms(self) -> WallMs:
        return self._schedules.wall_ms()

    def replicas(self) -> Sequence[ProcessStatus]:
        return self._members(SCHEDULER)

    def processors(self) -> Sequence[ProcessStatus]:
        return self._members(PROCESSOR)

    def outputs(self) -> Sequence[Path]:
        return self._outputs.paths()

    def listing(self) -> Sequence[RenderableType]:
        return [f"{self._kubectl.shown} get pods"]

    async def snapshot(self) -> ClusterSnapshot | None:
        return await self._api.snapshot()

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._schedules.create(body)

    def shard_of(self, tenant: str) -> str:
        return ""

    async def leader(self) -> CurrentLeader:
        async def look() -> CurrentLeader | None:
            snapshot = await self._api.snapshot()
            holder = snapshot.cluster["leader"] if snapshot else None
            if holder is None:
                return None
            name = str(holder["holder"]).rpartition(".")[0]
            return CurrentLeader(name, holder["term"]) if self._pods.named(name) is not None else None

        return await poll_until(look, "a pod that leads", patience_s=_PATIENCE_S, every_s=_EVERY_S)

    async def end_leader(self, leader: CurrentLeader, way: str) -> Takeover:
        await self._pods.look()
        self._before = {pod.name: pod for pod in self._pods.of(SCHEDULER)}
        await end_pod(self._kubectl, leader.name, way, container=SCHEDULER, verb="serve")
        return Takeover(await measure_takeover(self._api, leader, self._url))

    async def restore(self, leader: CurrentLeader) -> str:
        return (await self._replaced(SCHEDULER, leader.name, self._before, self._cleared.replicas)).name

    async def busiest_processor(self) -> str:
        async def look() -> str | None:
            snapshot = await self._api.snapshot()
            alive = [one for one in snapshot.processors if one["alive"] and not one["draining"]] if snapshot else []
            ours = [one for one in alive if self._pods.named(one["name"]) is not None]
            busiest = max(ours, key=lambda one: (one["occupied"], str(one["id"])), default=None)
            if busiest is None or not (busiest["occupied"] or loop.time() > until_s):
                return None
            return str(busiest["id"])

        loop = asyncio.get_running_loop()
        until_s = loop.time() + _BUSY_PATIENCE_S
        return await poll_until(look, "a processor that lives", patience_s=_PATIENCE_S, every_s=0.05)

    async def end_processor(self, id: str) -> str:
        name = id.rpartition(".")[0]
        await self._pods.look()
        before = {pod.name: pod for pod in self._pods.of(PROCESSOR)}
        serving = sum(pod.serves for pod in before.values())
        await end_pod(self._kubectl, name, self.processor_way, container=PROCESSOR, verb="processor")
        return (await self._replaced(PROCESSOR, name, before, serving)).name

    async def count_unended(self, ids: Collection[str]) -> int:
        try:
            return await self._jobs.count_unended(ids)
        except StoreUnavailable:
            return len(ids)

    async def read_jobs(self, ids: Collection[str], seen: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        return await poll_until(
            lambda: self._jobs.read(ids, seen), "the jobs can be read", patience_s=_PATIENCE_S, every_s=_EVERY_S
        )

    async def complete_outputs(self) -> None:
        await self._outputs.complete()

    def _members(self, component: str) -> Sequence[ProcessStatus]:
        return [ProcessStatus(pod.name, pod.node, running=not pod.ending) for pod in self._pods.of(component)]

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
        return await poll_until(look, what, patience_s=_READY_S, every_s=_PODS_EVERY_S)


@dataclass(frozen=True, slots=True)
class KubernetesPlan:
    """``url`` "": each pod is asked through a forwarded port. No ``token``: the Deployment's own is shown. No
    ``trusted``: of pods that speak HTTPS the authority that the Deployment names is trusted."""

    folder: Path
    context: str | None = None
    namespace: str = "hascheduler"
    url: str = ""
    kills: int = 3
    token: str | None = None
    trusted: ssl.SSLContext | None = None


@asynccontextmanager
async def open_kubernetes_environment(
    plan: KubernetesPlan, run: str, say: Callable[[str], None]
) -> AsyncIterator[DemoEnvironment]:
    """A `CallerError` for what is missing. The schedules of this run are deleted at the end, also by Ctrl-C."""
    kubectl = Kubectl(plan.context, plan.namespace)
    cleared = await run_preflight(kubectl, plan.namespace, forwards=not plan.url)
    if cleared.left_out:
        say(cleared.left_out)
    token = plan.token or await admin_token(kubectl, cleared.deployment)
    shutil.rmtree(plan.folder / "logs", ignore_errors=True)
    pods = Pods(kubectl)
    await pods.look()
    is_https = speaks_https(cleared.deployment)
    forwards = PortForwards(kubectl, pods, cleared.http_port, https=is_https)
    outputs = PodLogs(kubectl, pods, plan.folder / "logs")
    trusted = plan.trusted
    if trusted is None and is_https and not plan.url:
        trusted = await authority(kubectl, cleared.deployment)

    def urls() -> Mapping[str, str]:
        return {"": plan.url} if plan.url else forwards.urls

    async with open_replica_api(urls, token=token, tls=trusted) as api, asyncio.TaskGroup() as loops:
        running = [loops.create_task(pods.keep_fresh()), loops.create_task(outputs.keep_following())]
        if not plan.url:
            running.append(loops.create_task(forwards.keep_open()))
        schedules = DemoSchedules(api, say)
        prefix = f"demo-{run}-"
        try:
            _demand_handlers(await _first_look(api))
            await schedules.read_clock(f"{prefix}clock")
            say("everything is ready")
            title = f"namespace {plan.namespace}" + (f" of {plan.context}" if plan.context else "")
            yield KubernetesEnvironment(
                kubectl=kubectl,
                cleared=cleared,
                pods=pods,
                outputs=outputs,
                api=api,
                schedules=schedules,
                kills=plan.kills,
                prefix=prefix,
                title=title,
                url=plan.url,
            )
        finally:
            await schedules.delete_all()
            for loop in running:
                loop.cancel()


async def _first_look(api: ReplicaApi) -> ClusterSnapshot:
    what = "a replica that is ready answers, and knows who leads"

    async def look() -> ClusterSnapshot | None:
        await api.ask(lambda scheduler: scheduler.cluster.status())  # fails with a reason
        snapshot = await api.snapshot()
        return snapshot if snapshot is not None and snapshot.cluster["leader"] is not None else None

    return await poll_until(look, what, patience_s=_OPEN_PATIENCE_S, every_s=_OPEN_EVERY_S)


def _demand_handlers(snapshot: ClusterSnapshot) -> None:
    """Processors have to run the jobs of this demo, and enough of them that one may be killed."""
    able = [
        one
        for one in snapshot.processors
        if one["alive"] and (set(_DEFINITIONS) <= set(one["definitions"]) or "*" in one["definitions"])
    ]
    if not able:
        raise CallerError("no processor lives that runs log and sleep; see the arguments of the Deployment processor")
