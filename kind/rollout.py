"""Waits until everything runs, telling how far it is; and when it does not come, what to look at."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hascheduler.errors import WorldError
from kind import NAMESPACE
from kind.tools import Tools, shown

_EVERY_S = 2.0
_WORKLOADS = "deployments,statefulsets"
_LINES = 8
_EVENTS = 5


def wait(tools: Tools, say: Callable[[str], None], patience_s: float) -> None:
    """Until all that the namespace is to have is there; a `WorldError` after saying what is wrong with the rest."""
    until_s = time.monotonic() + patience_s
    told = ""
    while True:
        workloads = (tools.object(_WORKLOADS) or {}).get("items", [])
        pods = (tools.object("pods") or {}).get("items", [])
        line = "  ".join([*(_progress(one) for one in workloads), *_reasons(pods)])
        if line != told:
            say(line)
            told = line
        if workloads and all(_is_there(one) for one in workloads):
            return
        if time.monotonic() > until_s:
            break
        time.sleep(_EVERY_S)
    for pod in pods:
        if not _is_ready(pod):
            _explain(tools, say, pod["metadata"]["name"])
    raise WorldError(f"not everything runs after {patience_s:g} s: {told}")


def _numbers(workload: Mapping[str, Any]) -> tuple[int, int, int]:
    """How many pods are wanted, ready, and of the newest template."""
    status = workload.get("status", {})
    return workload["spec"].get("replicas", 1), status.get("readyReplicas", 0), status.get("updatedReplicas", 0)


def _is_there(workload: Mapping[str, Any]) -> bool:
    wanted, ready, updated = _numbers(workload)
    seen = workload.get("status", {}).get("observedGeneration", 0) >= workload["metadata"].get("generation", 0)
    return seen and wanted == ready == updated


def _progress(workload: Mapping[str, Any]) -> str:
    wanted, ready, updated = _numbers(workload)
    return f"{workload['metadata']['name']} {min(ready, updated)}/{wanted}"


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    status = pod.get("status", {})
    yield from status.get("initContainerStatuses", ())
    yield from status.get("containerStatuses", ())


def _reasons(pods: list[Any]) -> list[str]:
    """Why containers wait, but for those that are just being made."""
    waiting = {
        (pod["metadata"]["name"], container.get("state", {}).get("waiting", {}).get("reason"))
        for pod in pods
        for container in _containers(pod)
    }
    usual = (None, "ContainerCreating", "PodInitializing")
    return [f"({name}: {reason})" for name, reason in sorted(waiting, key=str) if reason not in usual]


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return pod.get("status", {}).get("phase") == "Succeeded" or any(
        one["type"] == "Ready" and one["status"] == "True" for one in conditions
    )


def _explain(tools: Tools, say: Callable[[str], None], pod: str) -> None:
    """Its newest events and the last lines of its logs."""
    say(f"pod {pod} is not ready")
    events = (tools.object("events", "--field-selector", f"involvedObject.name={pod}") or {}).get("items", [])
    for event in events[-_EVENTS:]:
        say(f"    {event.get('reason', '')}: {event.get('message', '')}")
    logs = tools.ask(*tools.kubectl_command("logs", pod, "--all-containers", "--prefix", f"--tail={_LINES}"))
    for line in (logs or "").splitlines()[-_LINES:]:
        say(f"    {line}")
    say(f"    more: {shown(('kubectl', '--namespace', NAMESPACE, 'describe', 'pod', pod))}")
