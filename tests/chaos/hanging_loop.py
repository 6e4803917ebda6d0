"""A dispatch loop that hangs while everything else in its process goes on, the renewals of the lease among it."""

import asyncio
from pathlib import Path
from typing import Any

FILE = "hang"
_LOOK_EVERY_S = 0.05


def hang_on_demand(replica: Any, file: Path) -> Any:
    """The stepper of ``replica`` takes no turn while there is that file."""
    inbox, is_asked = replica._inbox, file.exists
    wait = inbox.wait

    async def wait_or_hang(timeout_s: float) -> None:
        await wait(timeout_s)
        while True:
            if not is_asked():
                return
            await asyncio.sleep(_LOOK_EVERY_S)

    inbox.wait = wait_or_hang
    return replica
