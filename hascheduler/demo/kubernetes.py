"""The environment in a cluster that already runs hascheduler: ``kubectl`` ends pods and shows what exists.

The API is reached through a port forwarded to each scheduler pod, with the token of these pods. Processors' logs are
followed into files, because a pod takes its log along. Schedules have names of this run and are deleted at its end.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import ssl
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from hascheduler.demo.environment import (
    CurrentLeader,
    DemoEnvironment,
    ProcessStatus,
    ReplicaApi,
    open_replica_api,
    until,
)
from hascheduler.errors import CallerError, InvalidInput, StoreUnavailable, WorldError
from hascheduler.model.job import LIVE
from hascheduler.model.values.instants import WallMs

_COMPONENT = "app.kubernetes.io/component"
_SELECTOR = f"app.kubernetes.io/name=hascheduler,{_COMPONENT} in (scheduler,processor)"
KILL, DELETE, FORCE = "kill -9 inside", "kubectl delete pod", "kubectl delete pod --force"
KILL_SCRIPT = (
    'for each in /proc/[0-9]*; do tr "\\0" " " <"$each/cmdline" | grep -q "hascheduler[ ]serve"'
    ' && kill -9 "${each#/proc/}"; done'
)
"""The kernel ignores a SIGKILL of process 1 from inside, so this needs a pod whose containers share their processes."""
ACCESS_SCRIPT = (
    'date +%s%3N; echo "$HASCHEDULER_HTTP_TLS_CERT_FILE"; cat "${HASCHEDULER_ADMIN_TOKEN_FILE:-/dev/null}"; echo;'
    ' cat "${HASCHEDULER_CA_FILE:-/dev/null}"'
)
_OPENED = re.compile(r"Forwarding from 127\.0\.0\.1:(\d{1,5}) ->")
_CALL_S, _READY_S = 20.0, 180.0

Pod = Mapping[str, Any]


class Kubectl:
    def __init__(self, context: str | None, namespace: str) -> None:
        found = shutil.which("kubectl")
        if found is None:
            raise InvalidInput(("kubectl",), "is not on the PATH", "https://kubernetes.io/docs/tasks/tools/")
        self._command = [found, *(("--context", context) if context else ()), "--namespace", namespace]

    async def run(self, *arguments: str) -> str:
        """Run kubectl and return its output; raise a `WorldError` with the last line if it fails."""
        async with self.started(*arguments, stderr=PIPE) as process:
            try:
                out, err = await asyncio.wait_for(process.communicate(), _CALL_S)
            except TimeoutError:
                raise WorldError(f"kubectl {arguments[0]} did not end within {_CALL_S:g} s") from None
        if process.returncode:
            lines = err.decode(errors="replace").strip().splitlines()
            raise WorldError(lines[-1] if lines else f"kubectl {arguments[0]} exited with {process.returncode}")
        return out.decode(errors="replace")

    @asynccontextmanager
    async def started(self, *arguments: str, stderr: int = DEVNULL) -> AsyncIterator[Process]:
        """Start kubectl, and kill it at the end of the block if it still runs."""
        # A session of its own: Ctrl-C must not end kubectl while the cleanup needs it.
        options: dict[str, Any] = {"start_new_session": True, "limit": 1 << 22}
        process = await asyncio.create_subprocess_exec(
            *self._command, *arguments, stdin=DEVNULL, stdout=PIPE, stderr=stderr, **options
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                # Not `Process.kill`, which may take the exit status from the task that waits for it.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
                await process.wait()


class KubernetesEnvironment(DemoEnvironment):
    """Owner of the pods as last seen, of their logs, and of the schedules that were requested."""

    where, title = "node", "Kubernetes"
    poll_every_s = 0.3
    processor_way, cuts_outputs = FORCE, True
    api: ReplicaApi
    scheme = "http"
    ahead_ms = 0
    """How far the cluster's clock is ahead of this machine's."""

    def __init__(self, kubectl: Kubectl, folder: Path, run: str) -> None:
        self.ways: Sequence[str] = ()
        self.prefix = f"demo-{run}-"
        self._kubectl = kubectl
        self._folder = folder
        self._began_s = time.monotonic()
        self._pods: dict[str, Pod] = {}
        self._before: dict[tuple[str, int], Pod] = {}
        self._urls: dict[str, str] = {}
        self._lines: dict[str, set[bytes]] = {}
        self._jobs: dict[str, Mapping[str, Any]] = {}
        self._schedules: list[str] = []

    async def read_pods(self) -> None:
        answer = json.loads(await self._kubectl.run("get", "pods", "--selector", _SELECTOR, "--output", "json"))
        self._pods = {pod["metadata"]["name"]: pod for pod in answer["items"]}

    def serving(self, component: str) -> Sequence[Pod]:
        return [pod for pod in self._pods.values() if _is(component, pod) and _serves(pod)]

    def urls(self) -> Mapping[str, str]:
        return {name: url for name, url in self._urls.items() if name in self._pods and _serves(self._pods[name])}

    async def watch(self) -> None:
        """Poll the pods, forward a port to each scheduler, and follow each processor's log, until cancelled."""
        tasks: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                with contextlib.suppress(WorldError):
                    await self.read_pods()
                for name, pod in self._pods.items():
                    if name not in tasks or tasks[name].done():
                        how = self._read_log(name, "--follow") if _is("processor", pod) else self._forward(name)
                        tasks[name] = group.create_task(how)
                await asyncio.sleep(0.5)

    async def _forward(self, name: str) -> None:
        async with self._kubectl.started("port-forward", f"pod/{name}", ":http", "--address", "127.0.0.1") as process:
            assert process.stdout is not None, "it was asked for"
            try:
                while line := await process.stdout.readline():
                    if opened := _OPENED.match(line.decode(errors="replace")):
                        self._urls[name] = f"{self.scheme}://127.0.0.1:{int(opened[1])}"
            finally:
                self._urls.pop(name, None)

    async def _read_log(self, name: str, *how: str) -> None:
        """Append the new lines; the node's time in each line distinguishes a repeated line from a new one."""
        known = self._lines.setdefault(name, set())
        since_s = int(time.monotonic() - self._began_s) + 15  # clocks need not agree
        call = ("logs", name, "--container", "processor", "--timestamps", f"--since={since_s}s", *how)
        async with self._kubectl.started(*call) as process:
            assert process.stdout is not None, "it was asked for"
            while line := await process.stdout.readline():
                if line.endswith(b"\n") and line not in known:
                    known.add(line)
                    with (self._folder / f"{name}.log").open("ab") as file:
                        file.write(line.partition(b" ")[2])

    async def end_replica(self, name: str, way: str) -> None:
        await self.read_pods()
        self._before = {_start(pod): pod for pod in self._pods.values()}
        if way == KILL:
            with contextlib.suppress(WorldError):  # the shell may go down with the container
                await self._kubectl.run("exec", name, "--container", "scheduler", "--", "sh", "-c", KILL_SCRIPT)
        else:
            how = ("--force", "--grace-period=0") if way == FORCE else ()
            await self._kubectl.run("delete", "pod", name, "--wait=false", *how)

    async def _replaced(self, component: str) -> str:
        """Return the name of the new or restarted pod, once as many serve as before."""
        wanted = sum(_is(component, pod) and _serves(pod) for pod in self._before.values())

        async def replacement() -> str | None:
            await self.read_pods()
            new = [pod["metadata"]["name"] for pod in self.serving(component) if _start(pod) not in self._before]
            return new[0] if new and len(self.serving(component)) >= wanted else None

        return await until(replacement, f"a ready {component} pod in its place; see kubectl get pods", _READY_S)

    def wall_ms(self) -> WallMs:
        return WallMs(time.time_ns() // 1_000_000 + self.ahead_ms)

    def replicas(self) -> Sequence[ProcessStatus]:
        return [_status(pod) for _, pod in sorted(self._pods.items()) if _is("scheduler", pod)]

    def processors(self) -> Sequence[ProcessStatus]:
        return [_status(pod) for _, pod in sorted(self._pods.items()) if _is("processor", pod)]

    def outputs(self) -> Sequence[Path]:
        return sorted(self._folder.glob("*.log"))

    async def complete_outputs(self) -> None:
        await self.read_pods()
        await asyncio.gather(*(self._read_log(pod["metadata"]["name"]) for pod in self.serving("processor")))

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        # Recorded before the request: if its answer is lost, the schedule may exist too.
        self._schedules.append(body["name"])
        return await until(lambda: self.api.create(body), f"an answer for the schedule {body['name']}")

    async def delete_schedules(self, say: Callable[[str], None]) -> None:
        async def delete(name: str) -> bool:
            await self.api.ask(lambda scheduler: scheduler.schedules.delete(name))
            return True

        say(f"deleting the schedules of this run ({len(self._schedules)})")
        for name in self._schedules:
            try:
                await until(partial(delete, name), f"an answer for the delete of {name}")
            except (WorldError, CallerError) as error:
                say(f"{name} is not deleted; use `hascheduler schedule delete` ({error})")

    async def restore(self, leader: CurrentLeader) -> str:
        return await self._replaced("scheduler")

    async def end_processor(self, id: str) -> str:
        await self.end_replica(id.rpartition(".")[0], self.processor_way)
        return await self._replaced("processor")

    async def read_jobs(self, ids: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        gate = asyncio.Semaphore(8)

        async def read(id: str) -> None:
            async with gate:
                with contextlib.suppress(StoreUnavailable):  # it may not exist yet
                    self._jobs[id] = (await self.api.ask(lambda scheduler: scheduler.get(id))).fields

        # An ended job does not change any more.
        await asyncio.gather(*(read(id) for id in ids if id not in self._jobs or self._jobs[id]["state"] in LIVE))
        return {id: self._jobs[id] for id in ids if id in self._jobs}


def _is(component: str, pod: Pod) -> bool:
    return bool(pod["metadata"]["labels"][_COMPONENT] == component)


def _serves(pod: Pod) -> bool:
    statuses = pod["status"].get("containerStatuses", ())
    return "deletionTimestamp" not in pod["metadata"] and bool(statuses) and all(one["ready"] for one in statuses)


def _start(pod: Pod) -> tuple[str, int]:
    """Return the key of this start of the pod's containers."""
    return pod["metadata"]["name"], sum(one["restartCount"] for one in pod["status"].get("containerStatuses", ()))


def _status(pod: Pod) -> ProcessStatus:
    running = "deletionTimestamp" not in pod["metadata"]
    return ProcessStatus(pod["metadata"]["name"], pod["spec"].get("nodeName", ""), running)


@asynccontextmanager
async def open_kubernetes_environment(
    run: str, say: Callable[[str], None], *, kubectl: Kubectl, folder: Path, kills: int, token: str | None
) -> AsyncIterator[DemoEnvironment]:
    """Open it with the ``token``, or else with the token of the pods; delete its schedules at the end."""
    shutil.rmtree(folder / "logs", ignore_errors=True)
    (folder / "logs").mkdir(parents=True)
    environment = KubernetesEnvironment(kubectl, folder / "logs", run)
    await environment.read_pods()
    pods = environment.serving("scheduler")
    if len(pods) < 2 or not environment.serving("processor"):
        raise CallerError("two scheduler pods and one processor pod must be ready; see kubectl get pods")
    shared = all(pod["spec"].get("shareProcessNamespace") for pod in pods)
    environment.ways = tuple(islice(cycle((KILL, DELETE, FORCE) if shared else (DELETE, FORCE)), kills))
    call = ("exec", pods[0]["metadata"]["name"], "--container", "scheduler", "--", "sh", "-c", ACCESS_SCRIPT)
    now, https, own_token, *authority = (await kubectl.run(*call)).splitlines()
    environment.ahead_ms = int(now) - time.time_ns() // 1_000_000
    environment.scheme = "https" if https else "http"
    trusted = ssl.create_default_context(cadata="\n".join(authority)) if https and any(authority) else None
    async with (
        open_replica_api(environment.urls, token=token or own_token or None, tls=trusted) as environment.api,
        asyncio.TaskGroup() as group,
    ):
        watching = group.create_task(environment.watch())
        try:
            await environment.leader()
            say("everything is ready")
            yield environment
        finally:
            await environment.delete_schedules(say)
            watching.cancel()
