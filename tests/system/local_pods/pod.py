"""One pod's life as a kubelet leads it: initial containers, the container, its probes and restarts, and its end."""

import asyncio
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.manifests.objects import Object, Objects
from tests.manifests.objects import Pod as PodTemplate
from tests.system.local_pods.container import Container, Surroundings
from tests.system.local_pods.network import Link
from tests.system.local_pods.probes import fails, succeeds_in_time, tell
from tests.system.local_pods.volumes import make_volume

_BACK_OFF_MAX_S = 8.0


@dataclass
class Pod:
    """``said`` is what `kubectl describe` would list; `run` ends when it is gone for good."""

    name: str
    template: PodTemplate
    link: Link
    folder: Path
    containers: list[Container]
    changed: Callable[[], None]
    is_ready: bool = False
    terminating: bool = False
    restarts: int = 0
    said: list[str] = field(default_factory=list)

    @property
    def container(self) -> Container:
        """The one that stays."""
        return self.containers[-1]

    @property
    def component(self) -> str:
        return str(self.template.labels["app.kubernetes.io/component"])

    @property
    def log(self) -> str:
        return self.container.log.read_text() if self.container.log.exists() else ""

    async def run(self) -> None:
        for container in self.containers[:-1]:
            while not self.terminating and await self._once(container) != 0:
                await self._back_off()
        while not self.terminating:
            await self._once(self.container, self._probe(self.container))
            if not self.terminating:
                await self._back_off()

    async def delete(self) -> None:
        """preStop, SIGTERM, the grace, SIGKILL; `run` ends soon after."""
        spec = self.template.spec
        self.terminating = True
        self._hear(False)
        grace_s = spec.get("terminationGracePeriodSeconds", 30)
        try:
            async with asyncio.timeout(grace_s):
                await asyncio.sleep(_pre_stop_s(self.container.spec))
                for container in self.containers:
                    container.signal(signal.SIGTERM)
                for container in self.containers:
                    await container.ended.wait()
        except TimeoutError:
            self.said.append(f"did not end within its grace of {grace_s} s")
        await self.end()

    async def end(self) -> None:
        """As a node that loses its power; nothing of it runs any more then."""
        self.terminating = True
        for container in self.containers:
            await container.end()

    async def _once(self, container: Container, probing: Any = None) -> int:
        await container.start()
        watching = None if probing is None else asyncio.create_task(probing)
        try:
            code = await container.wait()
        finally:
            if watching is not None:
                watching.cancel()
                await asyncio.wait([watching])
            self._hear(False)
        if code and not self.terminating:
            self.said.append(f"{container.name} ended with {code}")
        return code

    async def _probe(self, container: Container) -> None:
        spec, ports = container.spec, self.template.ports
        if "startupProbe" in spec and not await succeeds_in_time(spec["startupProbe"], container, ports):
            self._kill(container, "startupProbe")
            return
        async with asyncio.TaskGroup() as probes:
            if "readinessProbe" in spec:
                probes.create_task(tell(spec["readinessProbe"], container, ports, self._hear))
            else:
                self._hear(True)
            if "livenessProbe" in spec:
                await fails(spec["livenessProbe"], container, ports)
                self._kill(container, "livenessProbe")

    def _kill(self, container: Container, probe: str) -> None:
        if not self.terminating:
            self.said.append(f"{container.name} failed its {probe}")
            container.signal(signal.SIGKILL)

    def _hear(self, is_ready: bool) -> None:
        if is_ready and self.terminating:
            return
        if is_ready != self.is_ready:
            self.is_ready = is_ready
            self.changed()

    async def _back_off(self) -> None:
        """Shorter than a kubelet's, which begins with 10 s."""
        self.restarts += 1
        await asyncio.sleep(min(2.0 ** (self.restarts - 1), _BACK_OFF_MAX_S))


def make_pod(
    objects: Objects,
    *,
    template: PodTemplate,
    name: str,
    link: Link,
    folder: Path,
    hosts: Path,
    changed: Callable[[], None],
) -> Pod:
    """Its volumes and containers; persistent claims are in a folder of the pod's name beside ``folder``."""
    spec = template.spec
    assert len(spec["containers"]) == 1, "this kubelet knows pods of one container that stays"
    assert spec["automountServiceAccountToken"] is False
    group = spec["securityContext"].get("fsGroup")
    claims = folder.parent / "claims" / name
    volumes = {
        volume: make_volume(objects, {**source, "name": volume}, folder / "volumes" / volume, group, claims)
        for volume, source in template.volumes.items()
    }
    around = Surroundings(
        name, folder, link, spec["securityContext"], volumes, hosts, spec.get("shareProcessNamespace", False)
    )
    containers = [
        Container(container.spec, around, _variables(objects.settings(container), name, link.ip))
        for container in sorted(template.containers, key=lambda one: not one.initial)
    ]
    return Pod(name, template, link, folder, containers, changed)


def _variables(settings: Mapping[str, Any], pod: str, ip: str) -> dict[str, str]:
    of_pod = {"metadata.name": pod, "metadata.namespace": "hascheduler", "status.podIP": ip}
    found: dict[str, str] = {}
    for name, value in settings.items():
        match value:
            case str():
                found[name] = value
            case {"fieldRef": {"fieldPath": path}}:
                found[name] = of_pod[path]
            case _:
                raise AssertionError(f"a variable that this kubelet does not know: {name}: {value}")
    return found


def _pre_stop_s(spec: Object) -> float:
    match spec.get("lifecycle", {}).get("preStop"):
        case None:
            return 0.0
        case {"sleep": {"seconds": seconds}}:
            return float(seconds)
        case other:
            raise AssertionError(f"a preStop that this kubelet does not know: {other}")
