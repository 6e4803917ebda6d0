"""A cluster whose pods are processes of this machine, behind a ``kubectl`` of its own.

Deleting, killing, following logs and forwarding ports are real: signals, restarts, files and sockets. A pod that is
deleted takes its log along. Followed logs ``break_off`` after so many lines if a test wants that.
"""

import asyncio
import contextlib
import json
import secrets
import signal
import ssl
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from hascheduler.demo.kubernetes import ACCESS_SCRIPT, KILL_SCRIPT
from hascheduler.embedded.children import Child, free_port, start_child
from tests.chaos.proxy import open_line


@dataclass
class PodDouble:
    """``outputs`` has a file for each start, the newest last. A ``kept`` pod starts its process again when it ends."""

    name: str
    uid: str
    component: str
    arguments: list[str]
    environment: Mapping[str, str]
    folder: Path
    outputs: list[Path] = field(default_factory=list)
    ready: bool = False
    ending: bool = False
    kept: bool = True
    scheme: str = "http"
    http_port: int = field(default_factory=free_port)
    came_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it was ready for the first time."""
    followers: int = 0
    """How many read its log to the end, whatever becomes of it."""

    async def start(self) -> None:
        output = self.folder / f"{self.name}.{len(self.outputs)}.log"
        settings = {"HASCHEDULER_REPLICA_ID": self.name, "HASCHEDULER_HTTP_PORT": str(self.http_port)}
        self.child: Child = await start_child(
            self.name,
            [sys.executable, "-m", "hascheduler", *self.arguments],
            output,
            environment={**self.environment, **settings},
        )
        self.outputs.append(output)

    async def keep_running(self, http: httpx2.AsyncClient) -> None:
        """Until it is deleted: start it again when it ends, and know whether it is ready."""
        while True:
            await self._attend(http)
            self.ready = False
            if not self.kept:
                return
            await self.start()

    @contextmanager
    def followed(self) -> Iterator[None]:
        self.followers += 1
        try:
            yield
        finally:
            self.followers -= 1

    async def _attend(self, http: httpx2.AsyncClient) -> None:
        child = self.child
        while child.running:
            self.ready = await self._is_ready(http)
            if self.ready:
                self.came_up.set()
            ended = asyncio.create_task(child.wait())
            await asyncio.wait([ended], timeout=0.1)
        await child.wait()

    async def _is_ready(self, http: httpx2.AsyncClient) -> bool:
        if self.component == "processor":
            return self.outputs[-1].stat().st_size > 0
        try:
            return (await http.get(f"{self.scheme}://127.0.0.1:{self.http_port}/readyz")).status_code == httpx2.codes.OK
        except httpx2.HTTPError:
            return False


TOKEN = "hsk_" + "0" * 32
_COMPONENTS: Mapping[str, Sequence[str]] = {
    "scheduler": ["serve"],
    "processor": ["processor", "hascheduler.handlers.log", "hascheduler.handlers.sleep"],
}
Reply = Callable[..., None]


@dataclass
class ClusterDouble:
    folder: Path
    environment: Mapping[str, str]
    break_off: int | None = None
    """A followed log ends after so many lines that came while it was followed."""
    tls: Path | None = None
    """The files of the Secret for HTTPS, where the API is to speak it."""
    pods: dict[str, PodDouble] = field(default_factory=dict)

    def __post_init__(self) -> None:
        trusted = None if self.tls is None else ssl.create_default_context(cafile=str(self.tls / "ca.crt"))
        self._http = httpx2.AsyncClient(timeout=2, verify=trusted or True)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def variables(self) -> dict[str, str]:
        """What makes a process use this cluster."""
        return {
            "PATH": f"{self.folder / 'bin'}:{self.environment['PATH']}",
            "CLUSTER_DOUBLE": str(self.folder / "socket"),
        }

    async def start(self) -> None:
        for component in (*["scheduler"] * 3, *["processor"] * 2):
            await self._new_pod(component)
        async with asyncio.timeout(60):
            await asyncio.gather(*(pod.came_up.wait() for pod in self.pods.values()))

    async def stop(self) -> None:
        pods = list(self.pods.values())
        for pod in pods:
            pod.kept = False
            pod.child.signal(signal.SIGKILL)
        await asyncio.gather(*(pod.child.wait() for pod in pods))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.aclose()

    async def answer(self, arguments: list[str], reply: Reply) -> int:
        """Carry one call out; its exit status."""
        while arguments and arguments[0] in ("--namespace", "--context"):
            arguments = arguments[2:]
        match arguments:
            case ["get", "pods", *_]:
                reply(json.dumps({"items": [self._shown(pod) for pod in self.pods.values()]}))
                return 0
            case ["delete", "pod", name, *how] if name in self.pods:
                await self._delete(self.pods[name], force="--force" in how)
                return 0
            case ["exec", name, "--container", _, "--", "sh", "-c", script] if name in self.pods:
                return self._exec(self.pods[name], script, reply)
            case ["logs", name, *how] if name in self.pods:
                return await self._logs(self.pods[name], how, reply)
            case ["port-forward", pod, port, *_] if pod.removeprefix("pod/") in self.pods:
                assert port == ":http"
                return await self._forward(self.pods[pod.removeprefix("pod/")], reply)
        reply(f'Error from server (NotFound): "{arguments[1:3]}" not found\n', to="err")
        return 1

    # Objects

    def _shown(self, pod: PodDouble) -> dict[str, Any]:
        labels = {"app.kubernetes.io/component": pod.component}
        ends = {"deletionTimestamp": "2030-01-01T00:00:00Z"} if pod.ending else {}
        container = {"name": pod.component, "ready": pod.ready, "restartCount": len(pod.outputs) - 1}
        return {
            "metadata": {"name": pod.name, "uid": pod.uid, "labels": labels, **ends},
            "spec": {"nodeName": "node-1", "shareProcessNamespace": pod.component == "scheduler"},
            "status": {"containerStatuses": [container]},
        }

    # Acts

    async def _new_pod(self, component: str) -> None:
        name = f"{component}-{secrets.token_hex(3)}"
        arguments = [*_COMPONENTS[component], *(() if component == "scheduler" else ("--name", name))]
        environment, scheme = dict(self.environment), "http"
        if self.tls is not None and component == "scheduler":
            scheme = "https"
            environment["HASCHEDULER_HTTP_TLS_CERT_FILE"] = str(self.tls / "tls.crt")
            environment["HASCHEDULER_HTTP_TLS_KEY_FILE"] = str(self.tls / "tls.key")
        pod = PodDouble(name, secrets.token_hex(8), component, arguments, environment, self.folder, scheme=scheme)
        await pod.start()
        self.pods[name] = pod
        self._do(pod.keep_running(self._http))

    async def _delete(self, pod: PodDouble, *, force: bool) -> None:
        """As the API server and a kubelet do it: by force it is gone at once, else when its process has ended.

        By force its log goes with it: with what no follower has read, for which nobody can be blamed.
        """
        if force and pod.component == "processor":
            async with asyncio.timeout(20):
                while not pod.followers:  # noqa: ASYNC110  # those who follow come by another call
                    await asyncio.sleep(0.02)
        pod.kept, pod.ending = False, True
        if force:
            del self.pods[pod.name]
        pod.child.signal(signal.SIGKILL if force else signal.SIGTERM)
        if not force:
            self._do(self._gone_when_ended(pod))
        await self._new_pod(pod.component)

    async def _gone_when_ended(self, pod: PodDouble) -> None:
        await pod.child.wait()
        del self.pods[pod.name]

    def _exec(self, pod: PodDouble, script: str, reply: Reply) -> int:
        if script == KILL_SCRIPT:
            pod.child.signal(signal.SIGKILL)
            return 137
        assert script == ACCESS_SCRIPT
        https, ca = ("", "") if self.tls is None else ("/tls.crt", (self.tls / "ca.crt").read_text())
        reply(f"{time.time_ns() // 1_000_000}\n{https}\n{TOKEN}\n{ca}")
        return 0

    async def _logs(self, pod: PodDouble, how: Sequence[str], reply: Reply) -> int:
        assert "--timestamps" in how
        start = len(pod.outputs) - 1
        output, child, sent, number = pod.outputs[start], pod.child, 0, 0
        ends_after: int | None = None
        follows = "--follow" in how
        with contextlib.ExitStack() as following:
            while True:
                running = child.running and follows
                with output.open("rb") as file:
                    file.seek(sent)
                    whole = file.read().rpartition(b"\n")[0]
                for line in whole.decode().splitlines() if whole else ():
                    sent += len(line.encode()) + 1
                    number += 1
                    reply(f"2030-01-01T00:00:{start:02}.{number:09}Z {line}\n")
                    if number == ends_after and not pod.ending:
                        return 0
                if not running:
                    return 0
                if ends_after is None:
                    ends_after = -1 if self.break_off is None else number + self.break_off
                    following.enter_context(pod.followed())
                await asyncio.sleep(0.05)

    async def _forward(self, pod: PodDouble, reply: Reply) -> int:
        line = await open_line("127.0.0.1", pod.http_port)
        try:
            reply(f"Forwarding from 127.0.0.1:{line.port} -> 8080\n")
            await pod.child.wait()
        finally:
            await line.close()
        reply("error: lost connection to pod\n", to="err")
        return 1

    def _do(self, coroutine: Any) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@asynccontextmanager
async def open_cluster(cluster: ClusterDouble) -> AsyncIterator[ClusterDouble]:
    """Its pods run and its kubectl answers."""
    (cluster.folder / "bin").mkdir()
    kubectl = cluster.folder / "bin" / "kubectl"
    kubectl.write_text(f"#!{sys.executable} -IS\n" + (Path(__file__).parent / "kubectl").read_text())
    kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def reply(text: str, to: str = "out") -> None:
            writer.write(json.dumps({"to": to, "text": text}).encode() + b"\n")

        call = asyncio.create_task(cluster.answer(json.loads(await reader.readline()), reply))
        hung_up = asyncio.create_task(reader.read())  # the caller was killed
        await asyncio.wait([call, hung_up], return_when=asyncio.FIRST_COMPLETED)
        for task in (call, hung_up):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            writer.write(json.dumps({"status": await call}).encode() + b"\n")
            await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(serve, cluster.folder / "socket"):
        try:
            await cluster.start()
            yield cluster
        finally:
            await cluster.stop()
