"""The pods of the deployment: their state, a forwarded port to each scheduler's API, and each processor's log in a
file.

A deleted pod takes its log along, the file stays. A log stream may break at any time and is then read again from before
the demo. Each line carries the time at which the node received it, which tells a line that is sent again from one that
was written again.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hascheduler.demo.kubernetes.kubectl import Kubectl
from hascheduler.errors import WorldError

SCHEDULER = "scheduler"
PROCESSOR = "processor"
_COMPONENT = "app.kubernetes.io/component"
_SELECTOR = f"app.kubernetes.io/name=hascheduler,{_COMPONENT} in ({SCHEDULER},{PROCESSOR})"
_LOOK_EVERY_S = 1.0
_PATIENCE_S = 30.0
_FORWARD_EVERY_S = 0.2
_OPENING_S = 15.0
_REOPEN_AFTER_S = 0.5
_OPENED = re.compile(rb"Forwarding from 127\.0\.0\.1:(\d{1,5}) ->")
_FOLLOW_EVERY_S = 0.2
_BEFORE_S = 15
"""Read so far back: the clocks of two machines run at one speed, and more is not asked of them."""


@dataclass(frozen=True, slots=True)
class Pod:
    """``restarts`` counts the containers that ended before the present one; ``ending`` is one that is being deleted."""

    name: str
    uid: str
    component: str
    node: str
    ready: bool
    ending: bool
    restarts: int

    @property
    def serves(self) -> bool:
        return self.ready and not self.ending


class Pods:
    """Owner of what was seen last; `keep_fresh` keeps it fresh."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self._seen: dict[str, Pod] = {}

    def of(self, component: str) -> Sequence[Pod]:
        """In the order of their names."""
        return sorted((pod for pod in self._seen.values() if pod.component == component), key=lambda pod: pod.name)

    def named(self, name: str) -> Pod | None:
        return self._seen.get(name)

    async def look(self) -> None:
        """See what there is now."""
        pods = [_read(item) for item in await self._kubectl.items("get", "pods", "--selector", _SELECTOR)]
        self._seen = {pod.name: pod for pod in pods}

    async def keep_fresh(self) -> None:
        """Look until cancelled; an API server that does not answer for a while is the `WorldError` it caused."""
        loop = asyncio.get_running_loop()
        last_s = loop.time()
        while True:
            try:
                await self.look()
                last_s = loop.time()
            except WorldError:
                if loop.time() - last_s > _PATIENCE_S:
                    raise
            await asyncio.sleep(_LOOK_EVERY_S)


def _read(item: Mapping[str, Any]) -> Pod:
    try:
        metadata, spec, status = item["metadata"], item.get("spec", {}), item.get("status", {})
        component = metadata["labels"][_COMPONENT]
        containers = [one for one in status.get("containerStatuses", ()) if one["name"] == component]
        return Pod(
            name=str(metadata["name"]),
            uid=str(metadata["uid"]),
            component=str(component),
            node=str(spec.get("nodeName", "")),
            ready=bool(containers) and all(one["ready"] is True for one in containers),
            ending="deletionTimestamp" in metadata,
            restarts=sum(int(one["restartCount"]) for one in containers),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise WorldError(f"kubectl get pods answered something that is no pod ({type(error).__name__})") from None


class PortForwards:
    """Owner of ``urls``: an address for each pod that can be asked now, by its name."""

    def __init__(self, kubectl: Kubectl, pods: Pods, port: int, *, https: bool = False) -> None:
        self._scheme = "https" if https else "http"
        self._kubectl = kubectl
        self._pods = pods
        self._port = port
        self.urls: dict[str, str] = {}

    async def keep_open(self) -> None:
        """Until cancelled."""
        open: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                serving = {pod.uid: pod.name for pod in self._pods.of(SCHEDULER) if pod.serves}
                for uid in [uid for uid, task in open.items() if task.done() or uid not in serving]:
                    open.pop(uid).cancel()
                for uid, name in serving.items():
                    if uid not in open:
                        open[uid] = group.create_task(self._forward(name))
                await asyncio.sleep(_FORWARD_EVERY_S)

    async def _forward(self, name: str) -> None:
        """Forward until kubectl reports that it lost the pod, or cannot reach it."""
        call = ("port-forward", f"pod/{name}", f":{self._port}", "--address", "127.0.0.1")
        async with self._kubectl.follow(*call) as output:
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_OPENING_S):
                        opened = _OPENED.search(await output.readline())
                        if opened is not None:
                            self.urls[name] = f"{self._scheme}://127.0.0.1:{int(opened[1])}"
                while name in self.urls and await output.readline():
                    pass  # a line for each connection; unread, they would stop it in the end
            finally:
                self.urls.pop(name, None)
        await asyncio.sleep(_REOPEN_AFTER_S)


class PodLogs:
    """Owner of the files, one a pod; `keep_following` fills them."""

    def __init__(self, kubectl: Kubectl, pods: Pods, folder: Path) -> None:
        self._kubectl = kubectl
        self._pods = pods
        self._folder = folder
        self._began_s = asyncio.get_running_loop().time()
        self._known: dict[str, tuple[Path, set[bytes]]] = {}

    def paths(self) -> list[Path]:
        return [path for path, _ in self._known.values()]

    async def keep_following(self) -> None:
        """Until cancelled."""
        followed: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                for pod in self._pods.of(PROCESSOR):
                    if pod.uid not in followed:
                        followed[pod.uid] = group.create_task(self._follow(pod))
                await asyncio.sleep(_FOLLOW_EVERY_S)

    async def complete(self) -> None:
        """Read once more what the pods that are there have written by now."""
        await self._pods.look()
        await asyncio.gather(*(self._read_whole(pod) for pod in self._pods.of(PROCESSOR)))

    async def _follow(self, pod: Pod) -> None:
        while (now := self._pods.named(pod.name)) is not None and now.uid == pod.uid:
            async with self._kubectl.follow(*self._call(pod), "--follow") as lines:
                while line := await lines.readline():
                    self._write(pod, line)
            if now.restarts:
                await self._read_before(pod)
            await asyncio.sleep(_FOLLOW_EVERY_S)

    async def _read_whole(self, pod: Pod) -> None:
        if pod.restarts:
            await self._read_before(pod)
        try:
            text = await self._kubectl.run(*self._call(pod))
        except WorldError:
            # It is just going or coming; where that hides a line, the verdict says so.
            return
        for line in text.encode().splitlines(keepends=True):
            self._write(pod, line)

    async def _read_before(self, pod: Pod) -> None:
        """The log of the container before the present one, whose end the stream may have missed."""
        try:
            text = await self._kubectl.run(*self._call(pod), "--previous")
        except WorldError:
            return  # there was none
        for line in text.encode().splitlines(keepends=True):
            self._write(pod, line)

    def _call(self, pod: Pod) -> tuple[str, ...]:
        since_s = int(asyncio.get_running_loop().time() - self._began_s) + _BEFORE_S
        return ("logs", pod.name, "--container", PROCESSOR, "--timestamps", f"--since={since_s}s")

    def _write(self, pod: Pod, line: bytes) -> None:
        """Append a line that was not there yet, without its time."""
        if pod.uid not in self._known:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._known[pod.uid] = (self._folder / f"{pod.name}.log", set())
        path, written = self._known[pod.uid]
        if not line.endswith(b"\n") or line in written:
            return  # the rest of a broken line comes with the next reading
        written.add(line)
        with path.open("ab") as file:
            file.write(line.partition(b" ")[2])
