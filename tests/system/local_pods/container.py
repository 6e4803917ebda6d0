"""One container: the process that its spec and image describe, in namespaces and with a root of its own.

What the images bring is this machine's: our own environment for ``hascheduler``, the embedded mongod for ``mongo``,
Debian's server for ``rabbitmq``. Below them is this machine's own file system, read-only.
"""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hascheduler.embedded.servers import find_mongod
from tests.manifests.objects import Object
from tests.system.local_pods.network import Link

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
