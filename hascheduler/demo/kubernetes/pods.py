"""What pods there are, looked at again and again."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hascheduler.demo.kubernetes.kubectl import Kubectl
from hascheduler.errors import WorldError

SCHEDULER = "scheduler"
PROCESSOR = "processor"
_COMPONENT = "app.kubernetes.io/component"
_SELECTOR = f"app.kubernetes.io/name=hascheduler,{_COMPONENT} in ({SCHEDULER},{PROCESSOR})"
_EVERY_S = 1.0
_PATIENCE_S = 30.0


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
    """Owner of what was seen last; `keep_seeing` keeps it fresh."""

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

    async def keep_seeing(self) -> None:
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
            await asyncio.sleep(_EVERY_S)


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
