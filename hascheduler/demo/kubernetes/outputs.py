"""The processors' logs, followed into files: a pod that is deleted takes its log along, the file stays.

A stream may break at any time and is then read again from before the demo. Each line comes with the time at which the
node took it down, which tells a line that is sent again from one that was written again.
"""

import asyncio
from pathlib import Path

from hascheduler.demo.kubernetes.kubectl import Kubectl
from hascheduler.demo.kubernetes.pods import PROCESSOR, Pod, Pods
from hascheduler.errors import WorldError

_EVERY_S = 0.2
_BEFORE_S = 15
"""Read so far back: the clocks of two machines run at one speed, and more is not asked of them."""


class Outputs:
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
                await asyncio.sleep(_EVERY_S)

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
            await asyncio.sleep(_EVERY_S)

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
