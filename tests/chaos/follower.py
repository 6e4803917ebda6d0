"""A user who follows the events of all jobs, at one replica after another."""

import asyncio
from dataclasses import dataclass, field

from hascheduler.client import Refused, Unavailable
from tests.chaos.load import Load
from tests.checkers.evidence import SeenEvent

_AGAIN_S = 0.3


@dataclass
class Follower:
    """Owner of the events that it got; a new run of them begins where it was told of a gap."""

    load: Load
    runs: list[list[SeenEvent]] = field(default_factory=lambda: [[]])

    async def run(self) -> None:
        after: str | None = None
        while True:
            try:
                async for event in self.load.any_scheduler().events.stream(after=after):
                    if event.type == "reset":
                        self.runs.append([])
                    elif event.fields.get("job") and event.id != after:
                        self.runs[-1].append(SeenEvent(event.fields["job"], event.type))
                    after = event.id or after
            except (Refused, Unavailable, LookupError):
                pass  # the next one goes on
            await asyncio.sleep(_AGAIN_S)
