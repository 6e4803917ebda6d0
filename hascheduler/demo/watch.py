"""The system as it looks right now: asked over HTTP of whichever replica answers, many times a second."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx

from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack

_EVERY_S = 0.1


@dataclass(slots=True)
class Sight:
    """The newest answers; ``cluster`` is None until one came."""

    cluster: dict[str, Any] | None = None
    processors: list[dict[str, Any]] = field(default_factory=list)


async def keep_watching(stack: Stack, effects: Effects, sight: Sight) -> None:
    """Keep ``effects`` and ``sight`` fresh until cancelled."""
    async with httpx.AsyncClient(timeout=1) as http:
        while True:
            effects.read([stack.log_of(name) for name in stack.processors])
            await _ask(stack, http, sight)
            await asyncio.sleep(_EVERY_S)


async def _ask(stack: Stack, http: httpx.AsyncClient, sight: Sight) -> None:
    for name, child in stack.replicas.items():
        if not child.running:
            continue
        try:
            cluster = await http.get(f"{stack.urls[name]}/v1/cluster")
            processors = await http.get(f"{stack.urls[name]}/v1/processors")
        except httpx.TransportError:
            continue
        if cluster.status_code == processors.status_code == httpx.codes.OK and cluster.json()["ready"]:
            sight.cluster = cluster.json()
            sight.processors = processors.json()["items"]
            return
