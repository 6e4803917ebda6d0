"""What must be there and allowed before the demo changes anything; what is missing is reported in one line."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hascheduler.demo.kubernetes.kills import DELETE, FORCE, KILL
from hascheduler.demo.kubernetes.kubectl import Kubectl, KubectlFailed
from hascheduler.demo.kubernetes.pods import PROCESSOR, SCHEDULER
from hascheduler.errors import CallerError, InvalidInput, WorldError

_REPLICAS_MIN = 2
_PORT_DEFAULT = 8080


@dataclass(frozen=True, slots=True)
class PreflightResult:
    """``ways`` to end a leader, and the one for a processor; ``left_out`` says why one is missing, "" where none is."""

    deployment: Mapping[str, Any]
    replicas: int
    http_port: int
    ways: tuple[str, ...]
    processor_way: str
    left_out: str


async def run_preflight(kubectl: Kubectl, namespace: str, *, forwards: bool) -> PreflightResult:
    """A `CallerError` for the first thing that is missing or not allowed."""
    await _demand_namespace(kubectl, namespace)
    scheduler = await _deployment(kubectl, namespace, SCHEDULER)
    processor = await _deployment(kubectl, namespace, PROCESSOR)
    await _demand(kubectl, namespace, "delete", "pods")
    await _demand(kubectl, namespace, "get", "pods", "log")
    if forwards:
        await _demand(kubectl, namespace, "create", "pods", "portforward")
    replicas = _number(scheduler, "spec", "replicas")
    if replicas < _REPLICAS_MIN:
        raise CallerError(
            f"the Deployment {SCHEDULER} has {replicas} replicas; a takeover takes {_REPLICAS_MIN} or more"
        )
    if _number(scheduler, "status", "readyReplicas") < _REPLICAS_MIN or not _number(
        processor, "status", "readyReplicas"
    ):
        raise CallerError(f"not enough pods are ready; see {kubectl.shown} get pods")
    may_exec = await _may(kubectl, "create", "pods", "exec")
    kills, left_out = _kills(scheduler, may_exec=may_exec)
    return PreflightResult(
        deployment=scheduler,
        replicas=replicas,
        http_port=_http_port(scheduler),
        ways=(KILL, DELETE, FORCE) if kills else (DELETE, FORCE),
        processor_way=KILL if _kills(processor, may_exec=may_exec)[0] else FORCE,
        left_out=left_out,
    )


async def _demand_namespace(kubectl: Kubectl, namespace: str) -> None:
    try:
        await kubectl.json("get", "namespace", namespace)
    except KubectlFailed as error:
        if error.not_found:
            expected = "one that hascheduler runs in: docs/operations/kubernetes.md#in-any-cluster says how to get one"
            raise InvalidInput(("--namespace",), f"there is no namespace {namespace}", expected) from None
        if not error.forbidden:  # who may see no namespaces may still have one
            raise CallerError(f"the cluster can't be used: {error.said}") from None


async def _deployment(kubectl: Kubectl, namespace: str, name: str) -> Mapping[str, Any]:
    try:
        return await kubectl.json("get", "deployment", name)
    except KubectlFailed as error:
        if error.not_found:
            raise CallerError(
                f"there is no Deployment {name} in namespace {namespace}; is hascheduler there?"
            ) from None
        raise CallerError(f"the Deployment {name} can't be read: {error.said}") from None


async def _demand(kubectl: Kubectl, namespace: str, verb: str, what: str, sub: str = "") -> None:
    if not await _may(kubectl, verb, what, sub):
        thing = f"{what}/{sub}" if sub else what
        raise CallerError(f"this user may not {verb} {thing} in namespace {namespace}; the demo needs that")


async def _may(kubectl: Kubectl, verb: str, what: str, sub: str = "") -> bool:
    more = (f"--subresource={sub}",) if sub else ()
    # It prints no, and ends with 1, where one may not.
    return (await kubectl.run("auth", "can-i", verb, what, *more, also_good=(1,))).strip() == "yes"


def _kills(deployment: Mapping[str, Any], *, may_exec: bool) -> tuple[bool, str]:
    """Whether a process in its pods can get a SIGKILL; why not."""
    try:
        shared = deployment["spec"]["template"]["spec"].get("shareProcessNamespace", False)
        name = deployment["metadata"]["name"]
    except (KeyError, TypeError, AttributeError):
        raise WorldError("kubectl answered something that is no Deployment") from None
    if not shared:
        return False, f"no kill -9 from inside: the pods of {name} do not share a process namespace"
    return may_exec, "" if may_exec else "no kill -9 from inside: this user may not create pods/exec"


def _number(deployment: Mapping[str, Any], *path: str) -> int:
    """0 where it is not there: that is how the API writes it."""
    value: Any = deployment
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, int) else 0


def _http_port(deployment: Mapping[str, Any]) -> int:
    for container in deployment["spec"]["template"]["spec"].get("containers", ()):
        for port in container.get("ports", ()):
            if port.get("name") == "http":
                return int(port["containerPort"])
    return _PORT_DEFAULT
