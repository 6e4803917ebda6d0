"""A cluster of one node: takes rendered objects and runs their pods as processes of this machine.

::

    objects ─► controllers ─► pods ─► containers        Deployment, StatefulSet: as many pods as they ask for
                                │
                                ├─ readiness ─► endpoints ─► names in every pod's /etc/hosts
                                └─ addresses ─► network policies ─► routes of every pod

Real are the commands, arguments, variables and files of each container, its user and rights, its read-only root, the
volumes with the modes a kubelet gives, the names, the policies between pods, and probes, signals and graces with their
times. Not real are the images (`container` says what stands for them; the versions of the servers are this machine's),
seccomp, the limits of resources, the addresses of Services (a name leads to the ready pods themselves, so a port must
be the pod's own), a network that drops what is not allowed instead of refusing it, and back-offs, which are shorter.
"""

import asyncio
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.manifests.objects import Object, Objects, selects
from tests.manifests.objects import Pod as PodTemplate
from tests.manifests.traffic import End, Port, passes
from tests.system.local_pods.kubelet import Pod, make_pod, number_of
from tests.system.local_pods.network import Network
from tests.system.processes import eventually

NAMESPACE = "hascheduler"


class Cluster:
    """Owns every pod. `stop` leaves no process, no namespace and no bridge behind."""

    def __init__(self, objects: Objects, folder: Path) -> None:
        self.objects = objects
        self.gone: list[Pod] = []
        self._folder = folder
        self._pods: dict[str, Pod] = {}
        self._network = Network()
        self._tasks: list[asyncio.Task[None]] = []
        self._lock = asyncio.Lock()
        self._count = 0
        self._claims_to_lose: set[str] = set()

    async def apply(self) -> None:
        await self._network.open()
        for template in self.objects.pods():
            self._control(template)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        # Each takes its pod down with it.
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._network.close()

    def pods(self, component: str) -> list[Pod]:
        return [pod for pod in self._pods.values() if pod.component == component and not pod.terminating]

    def endpoints(self, service: str) -> list[str]:
        """``host:port`` of each pod that the Service leads to just now."""
        spec = self.objects.get("Service", service)["spec"]
        target = spec["ports"][0].get("targetPort", spec["ports"][0]["port"])
        return [f"{pod.link.ip}:{number_of(target, pod.template.ports)}" for pod in self._behind(spec)]

    async def all_ready(self, limit_s: float) -> None:
        """Every workload has the pods that it asks for, ready."""

        async def ready() -> bool:
            return all(self._is_complete(template) for template in self.objects.pods())

        try:
            await eventually(ready, "all pods are ready", limit_s)
        except AssertionError as error:
            pytest.fail(f"{error}\n{self.describe()}")

    def describe(self) -> str:
        lines = []
        for pod in [*self._pods.values(), *self.gone]:
            lines.append(f"{pod.name}: ready {pod.is_ready}, restarts {pod.restarts}, {'; '.join(pod.said)}")
            for container in pod.containers:
                text = container.log.read_text(errors="replace") if container.log.exists() else ""
                lines += [f"    {container.name}: {line[:300]}" for line in text.splitlines()[-4:]]
        return "\n".join(lines)

    async def delete(self, pod: Pod, *, force: bool = False, with_claims: bool = False) -> None:
        """As `kubectl delete pod`; returns when it is gone. Its controller makes another, with empty disks where the
        claims are to go too."""
        if with_claims:
            self._claims_to_lose.add(pod.name)
        if force:
            await pod.end()
        else:
            await pod.delete()

        async def is_gone() -> bool:
            return self._pods.get(pod.name) is not pod

        await eventually(is_gone, f"{pod.name} is gone", 20)

    # Controllers

    def _control(self, template: PodTemplate) -> None:
        name, spec = template.owner["metadata"]["name"], template.owner["spec"]
        match template.owner["kind"]:
            case "Deployment":
                suffix = secrets.token_hex(5)
                for _ in range(spec.get("replicas", 1)):
                    self._start(self._keep(template, lambda: f"{name}-{suffix}-{secrets.token_hex(3)[:5]}"))
            case "StatefulSet":
                for number in range(spec.get("replicas", 1)):
                    self._start(self._keep(template, lambda number=number: f"{name}-{number}"))  # type: ignore[misc]
            case kind:
                raise AssertionError(f"a workload that is not known here: {kind}")

    def _start(self, controller: object) -> None:
        self._tasks.append(asyncio.create_task(controller))  # type: ignore[arg-type]  # they are coroutines

    async def _keep(self, template: PodTemplate, new_name: Callable[[], str]) -> None:
        while True:
            await self._live(template, new_name())

    async def _live(self, template: PodTemplate, name: str) -> Pod:
        """One pod, from its first moment to its last."""
        self._count += 1
        folder = self._folder / f"{name}.{self._count}"
        folder.mkdir(parents=True)
        hosts = folder / "hosts"
        hosts.touch(0o644)
        link = await self._network.attach(template.ports.values())
        pod = make_pod(
            self.objects, template=template, name=name, link=link, folder=folder, hosts=hosts, changed=self._refresh
        )
        self._pods[name] = pod
        self._refresh()
        await self._police()
        try:
            await pod.run()
        finally:
            await pod.end()
            if name in self._claims_to_lose:
                self._claims_to_lose.remove(name)
                shutil.rmtree(self._folder / "claims" / name)
            del self._pods[name]
            self.gone.append(pod)
            self._refresh()
            await self._network.detach(link.namespace)
        return pod

    def _is_complete(self, template: PodTemplate) -> bool:
        mine = [pod for pod in self._pods.values() if pod.template.owner is template.owner and not pod.terminating]
        return len(mine) == template.owner["spec"].get("replicas", 1) and all(pod.is_ready for pod in mine)

    # Names and policies

    def _behind(self, service: Object) -> list[Pod]:
        always = service.get("publishNotReadyAddresses", False)
        selector = {"matchLabels": service["selector"]}
        chosen = [pod for pod in self._pods.values() if selects(selector, pod.template.labels)]
        return [pod for pod in chosen if pod.is_ready or (always and not pod.terminating)]

    def _refresh(self) -> None:
        lines = ["127.0.0.1 localhost"]
        for service in self.objects.of("Service"):
            name, spec = service["metadata"]["name"], service["spec"]
            for pod in self._behind(spec):
                lines.append(f"{pod.link.ip} {' '.join(_forms(name))}")
                if pod.template.owner["spec"].get("serviceName") == name and spec.get("clusterIP") == "None":
                    lines.append(f"{pod.link.ip} {' '.join(_forms(f'{pod.name}.{name}'))}")
        shared = "\n".join(lines)
        for pod in self._pods.values():
            # In place: the file is mounted in a container that runs.
            (pod.folder / "hosts").write_text(f"{pod.link.ip} {pod.name}\n{shared}\n")

    async def _police(self) -> None:
        async with self._lock:
            pods = list(self._pods.values())
            reachable = {
                source.link.namespace: {
                    (target.link.ip, port)
                    for target in pods
                    for port in target.template.ports.values()
                    if passes(self.objects, End(source.component), End(target.component), Port(port))
                }
                for source in pods
            }
            await self._network.allow(reachable)


def _forms(name: str) -> list[str]:
    """The short one, and those that the search domains of a pod make of it."""
    return [name, *(f"{name}.{NAMESPACE}{tail}" for tail in ("", ".svc", ".svc.cluster.local"))]
