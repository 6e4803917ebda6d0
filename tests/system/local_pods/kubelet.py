"""One pod's life as a kubelet leads it: volumes, containers, probes, restarts, and its end.

A container is the process that its spec and image describe, in namespaces and with a root of its own. What the images
bring is this machine's: our own environment for ``hascheduler``, the embedded mongod for ``mongo``, Debian's server for
``rabbitmq``. Below them is this machine's own file system, read-only.
"""

import asyncio
import os
import re
import signal
import sys
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hascheduler.embedded.servers import find_mongod
from tests.manifests.objects import Object, Objects
from tests.manifests.objects import Pod as PodTemplate
from tests.system.local_pods.network import Link

_SECRET_MODE = _CONFIG_MODE = 0o644
_GROUP_READS = 0o440


def make_volume(objects: Objects, volume: Object, folder: Path, group: int | None, claims: Path) -> Path:
    """The folder to mount; ``claims`` is where the pod's persistent ones are."""
    match volume:
        case {"secret": source}:
            data = {name: b64decode(value) for name, value in _data(objects, "Secret", source["secretName"]).items()}
            _write(folder, source, data, group)
        case {"configMap": source}:
            data = {name: value.encode() for name, value in _data(objects, "ConfigMap", source["name"]).items()}
            _write(folder, source, data, group)
        case {"emptyDir": _}:
            folder.mkdir(parents=True)
            _give(folder, group, 0o777)
        case {"persistentVolumeClaim": _}:
            folder = claims / volume["name"]
            if not folder.exists():
                folder.mkdir(parents=True)
                # As the root of a new file system, which belongs to root.
                _give(folder, group, 0o755)
        case _:
            raise AssertionError(f"a volume that this kubelet does not know: {volume}")
    return folder


def _data(objects: Objects, kind: str, name: str) -> Mapping[str, str]:
    [found] = [each for each in objects.of(kind) if each["metadata"]["name"] == name]
    data: Mapping[str, str] = found.get("data", {})
    return data


def _write(folder: Path, source: Object, data: Mapping[str, bytes], group: int | None) -> None:
    """Each file is a link into a folder that is a link itself, so that an update changes all of them at once."""
    inner = folder / "..2026_01_01"
    inner.mkdir(parents=True)
    (folder / "..data").symlink_to(inner.name)
    mode = source.get("defaultMode", _SECRET_MODE if "secretName" in source else _CONFIG_MODE)
    for item in source.get("items", [{"key": name, "path": name} for name in data]):
        file = inner / item["path"]
        file.write_bytes(data[item["key"]])
        os.chown(file, 0, group or 0)
        file.chmod(item.get("mode", mode) | (_GROUP_READS if group is not None else 0))
        (folder / item["path"]).symlink_to(f"..data/{item['path']}")
    for each in (folder, inner):
        _give(each, group, 0o755)


def update_volume(folder: Path, data: Mapping[str, bytes]) -> None:
    """New files in a Secret that is mounted: in a folder of their own first, then one link turns to all of them."""
    before = (folder / "..data").resolve()
    inner = folder / "..2026_01_02"
    inner.mkdir()
    for name, content in data.items():
        if (was := before / name).exists():
            file = inner / name
            file.write_bytes(content)
            os.chown(file, 0, was.stat().st_gid)
            file.chmod(was.stat().st_mode)
    os.chown(inner, 0, before.stat().st_gid)
    inner.chmod(before.stat().st_mode)
    (folder / "..data_tmp").symlink_to(inner.name)
    os.replace(folder / "..data_tmp", folder / "..data")


def _give(folder: Path, group: int | None, mode: int) -> None:
    """With a file system group, the group may write, and what is made there belongs to it."""
    os.chown(folder, 0, group or 0)
    folder.chmod(mode | 0o2070 if group is not None else mode)


REPOSITORY = Path(__file__).parents[3]
_ENTER = Path(__file__).with_name("enter")
_ENTERED_LIMIT_S = 30.0
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


@dataclass(frozen=True, slots=True)
class Image:
    path: str
    """Where its programs are here."""
    entrypoint: tuple[str, ...] = ()
    home: str = "/"
    user: str = ""
    """The name that its user 999 has; ours has none."""
    mounts: tuple[str, ...] = ()
    """What of this machine it needs beside its root file system."""


def image_of(reference: str) -> Image:
    name = reference.rpartition("/")[2].partition(":")[0]
    ours = (str(REPOSITORY), sys.prefix, sys.base_prefix)
    if name in ("hascheduler", "hascheduler-processor"):
        return Image(f"{sys.prefix}/bin", ("hascheduler",), mounts=ours)
    if name == "mongo":
        return Image(str(Path(find_mongod()).parent), home="/data/db", user="mongodb", mounts=ours)
    assert name == "rabbitmq", f"an image that is not known here: {reference}"
    return Image("/usr/lib/rabbitmq/bin", home="/var/lib/rabbitmq", user="rabbitmq")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the pod gives to all of its containers."""

    pod: str
    folder: Path
    link: Link
    security: Object
    volumes: Mapping[str, Path]
    hosts: Path
    shares_processes: bool


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass
class Container:
    spec: Object
    around: Surroundings
    variables: Mapping[str, str]
    starts: int = 0
    process: asyncio.subprocess.Process | None = None
    exit_codes: list[int] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=_set)
    """While it does not run."""

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def log(self) -> Path:
        return self.around.folder / f"{self.name}.log"

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    async def start(self) -> None:
        """Returns when its program has begun, with the root made and the rights given up."""
        self.starts += 1
        base = self.around.folder / f"{self.name}-{self.starts}"
        base.mkdir()
        mounts = base.with_suffix(".mounts")
        mounts.write_text("".join(f"{source}\t{target}\t{mode}\n" for target, source, mode in sorted(self._mounts())))
        security = self.spec["securityContext"]
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *("nsenter", f"--net=/run/netns/{self.around.link.namespace}", "--"),
                *("unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child=KILL", "--"),
                *(str(_ENTER), str(base), str(mounts), self.around.pod),
                "read-only" if security.get("readOnlyRootFilesystem") else "writable",
                "shared" if self.around.shares_processes else "alone",
                *self._as_user(),
                *self._command(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.ended.clear()
        entered = Path(f"{mounts}.entered")
        async with asyncio.timeout(_ENTERED_LIMIT_S):
            while not entered.exists() and self.running:  # noqa: ASYNC110, ASYNC240  # another's process sets no event
                await asyncio.sleep(0.02)

    async def wait(self) -> int:
        assert self.process is not None
        code = await self.process.wait()
        self.exit_codes.append(code)
        self.ended.set()
        return code

    def signal(self, number: signal.Signals) -> None:
        if self.running and (pid := self.main_pid):
            os.kill(pid, number)

    async def end(self) -> None:
        """All of it at once, whatever it is doing."""
        if self.process is not None and self.running:
            # With process 1 of their namespace all others in it go.
            for pid in (self._child_of(self.process.pid), self.process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid or self.process.pid, signal.SIGKILL)
            await self.process.wait()

    async def execute(self, command: Sequence[str], limit_s: float) -> tuple[int, str]:
        """Status and output of a command inside, as `kubectl exec` or a probe runs it."""
        process = await asyncio.create_subprocess_exec(
            *("nsenter", f"--target={self.main_pid}", "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--"),
            *self._as_user(),
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            # Not `wait_for`: before Python 3.12 a cancellation in the moment of its end is lost, and probes go on.
            async with asyncio.timeout(limit_s):
                out, _ = await process.communicate()
        except BaseException:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        assert process.returncode is not None
        return process.returncode, out.decode(errors="replace")

    @property
    def main_pid(self) -> int:
        """That of the program itself, as this machine numbers it; 0 where it has ended already."""
        assert self.process is not None
        first = self._child_of(self.process.pid)
        return self._child_of(first) if first and self.around.shares_processes else first

    def _child_of(self, pid: int) -> int:
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return 0
        return int(children[0]) if children else 0

    def _mounts(self) -> list[tuple[str, str, str]]:
        found = [(path, path, "ro") for path in self._image.mounts]
        found += [("/etc/hosts", str(self.around.hosts), "ro")]
        found += [(f"/etc/{name}", str(self._etc(name)), "ro") for name in ("passwd", "resolv.conf")]
        for mount in self.spec.get("volumeMounts", []):
            mode = "ro" if mount.get("readOnly") else "rw"
            found.append((mount["mountPath"], str(self.around.volumes[mount["name"]]), mode))
        return found

    def _etc(self, name: str) -> Path:
        image = self._image
        user = f"{image.user}:x:999:999::{image.home}:/bin/sh\n" if image.user else ""
        texts = {"passwd": f"root:x:0:0:root:/root:/bin/bash\n{user}", "resolv.conf": "nameserver 127.0.0.1\n"}
        file = self.around.folder / f"{self.name}-{name}"
        file.write_text(texts[name])
        file.chmod(0o644)
        return file

    @property
    def _image(self) -> Image:
        return image_of(self.spec["image"])

    def _as_user(self) -> list[str]:
        """The rights that the spec leaves, and the variables that it and the image set."""
        security = {**self.around.security, **self.spec["securityContext"]}
        assert security["runAsNonRoot"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        groups = security.get("fsGroup", security["runAsGroup"])
        variables = {
            "PATH": f"{self._image.path}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": self._image.home,
            "HOSTNAME": self.around.pod,
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            **self.variables,
        }
        return [
            *("setpriv", f"--reuid={security['runAsUser']}", f"--regid={security['runAsGroup']}", f"--groups={groups}"),
            *("--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--pdeathsig=KILL"),
            *("env", "-i", *(f"{name}={value}" for name, value in variables.items())),
        ]

    def _command(self) -> list[str]:
        """``command`` stands for the image's entry point, ``args`` follow it."""
        command = self.spec.get("command", list(self._image.entrypoint))
        return [self._expanded(word) for word in [*command, *self.spec.get("args", [])]]

    def _expanded(self, text: str) -> str:
        return _REFERENCE.sub(lambda found: self.variables.get(found[1], found[0]), text)


Ports = Mapping[str, int]


async def succeeds_in_time(probe: Object, container: Container, ports: Ports) -> bool:
    """The first success, or as many failures as the threshold says."""
    await asyncio.sleep(probe.get("initialDelaySeconds", 0))
    for _ in range(probe.get("failureThreshold", 3)):
        if await _succeeds(probe, container, ports):
            return True
        await _pause(probe)
    return False


async def fails(probe: Object, container: Container, ports: Ports) -> None:
    """Returns when it has failed so many times in a row that something has to be done."""
    await asyncio.sleep(probe.get("initialDelaySeconds", 0))
    failures = 0
    while failures < probe.get("failureThreshold", 3):
        await _pause(probe)
        failures = 0 if await _succeeds(probe, container, ports) else failures + 1


async def tell(probe: Object, container: Container, ports: Ports, told: Callable[[bool], None]) -> None:
    """For as long as it runs, ``told`` hears what is known."""
    while True:
        if await succeeds_in_time({**probe, "failureThreshold": 1}, container, ports):
            told(True)
            await fails(probe, container, ports)
            told(False)
        await _pause(probe)


async def _pause(probe: Object) -> None:
    await asyncio.sleep(probe.get("periodSeconds", 10))


async def _succeeds(probe: Object, container: Container, ports: Ports) -> bool:
    limit_s = probe.get("timeoutSeconds", 1)
    ip = container.around.link.ip
    try:
        match probe:
            case {"exec": {"command": command}}:
                return (await container.execute(command, limit_s))[0] == 0
            case {"tcpSocket": {"port": port}}:
                async with asyncio.timeout(limit_s):
                    _, writer = await asyncio.open_connection(ip, number_of(port, ports))
                writer.close()
                return True
            case {"httpGet": {"port": port, "path": path}}:
                async with asyncio.timeout(limit_s):
                    return 200 <= await _status(ip, number_of(port, ports), path) < 400
    except (OSError, TimeoutError):
        return False
    raise AssertionError(f"a probe that this kubelet does not know: {probe}")


def number_of(port: int | str, ports: Ports) -> int:
    return ports[port] if isinstance(port, str) else port


async def _status(ip: str, port: int, path: str) -> int:
    reader, writer = await asyncio.open_connection(ip, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {ip}\r\nConnection: close\r\n\r\n".encode())
        line = await reader.readline()
        return int(line.split()[1]) if line else 0
    finally:
        writer.close()


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
