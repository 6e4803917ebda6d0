"""The system as it looks right now: asked over HTTP of whichever replica answers, many times a second."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hascheduler.demo.evidence import Effects
from hascheduler.demo.stage import Stage


@dataclass(slots=True)
class Sight:
    """The newest answers; ``cluster`` is None until one came."""

    cluster: dict[str, Any] | None = None
    processors: list[dict[str, Any]] = field(default_factory=list)


async def keep_watching(stage: Stage, effects: Effects, sight: Sight) -> None:
    """Keep ``effects`` and ``sight`` fresh until cancelled."""
    while True:
        effects.read(stage.outputs())
        look = await stage.look()
        if look is not None:
            sight.cluster = look.cluster
            sight.processors = look.processors
        await asyncio.sleep(stage.look_every_s)
