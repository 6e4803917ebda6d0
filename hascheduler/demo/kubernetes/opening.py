"""Opens the stage in a cluster, and leaves nothing of it behind."""

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from hascheduler.demo.kubernetes.admission import admin_token, authority, speaks_https
from hascheduler.demo.kubernetes.forwards import Forwards
from hascheduler.demo.kubernetes.kubectl import Kubectl
from hascheduler.demo.kubernetes.outputs import Outputs
from hascheduler.demo.kubernetes.patience import once
from hascheduler.demo.kubernetes.pods import Pods
from hascheduler.demo.kubernetes.preflight import check
from hascheduler.demo.kubernetes.schedules import Schedules
from hascheduler.demo.kubernetes.stage import KubernetesStage
from hascheduler.demo.replicas import Replicas
from hascheduler.demo.stage import Look, Stage
from hascheduler.errors import CallerError

_PATIENCE_S = 30.0
_EVERY_S = 0.2
_HTTP_S = httpx.Timeout(5, connect=2)
_DEFINITIONS = ("log", "sleep")


@dataclass(frozen=True, slots=True)
class KubernetesPlan:
    """``url`` "": each pod is asked through a forwarded port. No ``headers``: the Deployment's own token is shown. No
    ``trusted``: of pods that speak HTTPS the authority that the Deployment names is trusted."""

    folder: Path
    context: str | None = None
    namespace: str = "hascheduler"
    url: str = ""
    kills: int = 3
    headers: Mapping[str, str] | None = None
    trusted: ssl.SSLContext | None = None


@asynccontextmanager
async def open_kubernetes_stage(plan: KubernetesPlan, run: str, say: Callable[[str], None]) -> AsyncIterator[Stage]:
    """A `CallerError` for what is missing. The schedules of this run are deleted at the end, also by Ctrl-C."""
    kubectl = Kubectl(plan.context, plan.namespace)
    cleared = await check(kubectl, plan.namespace, forwards=not plan.url)
    if cleared.left_out:
        say(cleared.left_out)
    headers = dict(plan.headers or {})
    if not headers:
        token = await admin_token(kubectl, cleared.deployment)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    shutil.rmtree(plan.folder / "logs", ignore_errors=True)
    pods = Pods(kubectl)
    await pods.look()
    is_https = speaks_https(cleared.deployment)
    forwards = Forwards(kubectl, pods, cleared.http_port, https=is_https)
    outputs = Outputs(kubectl, pods, plan.folder / "logs")
    trusted = plan.trusted
    if trusted is None and is_https and not plan.url:
        trusted = await authority(kubectl, cleared.deployment)
    verify: ssl.SSLContext | bool = True if trusted is None else trusted
    async with httpx.AsyncClient(timeout=_HTTP_S, headers=headers, verify=verify) as http, asyncio.TaskGroup() as loops:
        running = [loops.create_task(pods.keep_seeing()), loops.create_task(outputs.keep_following())]
        if not plan.url:
            running.append(loops.create_task(forwards.keep_open()))
        api = Replicas(http, lambda: {"": plan.url.rstrip("/")} if plan.url else forwards.urls)
        schedules = Schedules(api, say)
        prefix = f"demo-{run}-"
        try:
            _demand_handlers(await _first_look(api))
            await schedules.read_clock(f"{prefix}clock")
            say("everything is ready")
            title = f"namespace {plan.namespace}" + (f" of {plan.context}" if plan.context else "")
            yield KubernetesStage(
                kubectl=kubectl,
                cleared=cleared,
                pods=pods,
                outputs=outputs,
                api=api,
                schedules=schedules,
                kills=plan.kills,
                prefix=prefix,
                title=title,
            )
        finally:
            await schedules.delete_all()
            for loop in running:
                loop.cancel()


async def _first_look(api: Replicas) -> Look:
    what = "a replica that is ready answers, and knows who leads"

    async def look() -> Look | None:
        await api.get("/v1/cluster")  # fails with a reason
        sight = await api.look()
        return sight if sight is not None and sight.cluster["leader"] is not None else None

    return await once(look, what, patience_s=_PATIENCE_S, every_s=_EVERY_S)


def _demand_handlers(sight: Look) -> None:
    """Somebody has to run the jobs of this demo, and enough of them that one may be killed."""
    able = [
        one
        for one in sight.processors
        if one["alive"] and (set(_DEFINITIONS) <= set(one["definitions"]) or "*" in one["definitions"])
    ]
    if not able:
        raise CallerError("no processor lives that runs log and sleep; see the arguments of the Deployment processor")
