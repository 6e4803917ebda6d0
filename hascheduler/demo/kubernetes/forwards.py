"""A way to the API of each scheduler pod that is ready: ``kubectl port-forward``, opened again as pods come and go."""

import asyncio
import contextlib
import re

from hascheduler.demo.kubernetes.kubectl import Kubectl
from hascheduler.demo.kubernetes.pods import SCHEDULER, Pods

_EVERY_S = 0.2
_OPENING_S = 15.0
_AGAIN_S = 0.5
_OPENED = re.compile(rb"Forwarding from 127\.0\.0\.1:(\d{1,5}) ->")


class Forwards:
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
                await asyncio.sleep(_EVERY_S)

    async def _forward(self, name: str) -> None:
        """Until kubectl says that it lost the pod, or it never gets there."""
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
        await asyncio.sleep(_AGAIN_S)
