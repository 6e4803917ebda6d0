"""The demo from its start to its verdict."""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from rich.console import Console

from hascheduler.demo.evidence import Effects
from hascheduler.demo.report import report
from hascheduler.demo.stage import Stage
from hascheduler.demo.story import Story, Told
from hascheduler.demo.view import View
from hascheduler.demo.watch import Sight, keep_watching

Opening = Callable[[str, Callable[[str], None]], AbstractAsyncContextManager[Stage]]
"""Opens a stage: gets an id for this run, and what to say things with."""


async def run_demo(console: Console, opening: Opening, *, keep: bool, pause_s: float) -> bool:
    """Tell the story and print the report; with ``keep`` leave everything running until cancelled.

    Returns whether nothing was lost or doubled.
    """
    sight, effects, told = Sight(), Effects(), Told()
    view = View(console, sight, effects, told)
    async with opening(secrets.token_hex(3), view.say) as stage:
        effects.prefix = f"fire:{stage.prefix}"
        async with asyncio.TaskGroup() as eyes:
            looking = [
                eyes.create_task(keep_watching(stage, effects, sight)),
                eyes.create_task(view.keep_showing(stage)),
            ]
            await Story(stage, effects, view.say, told, pause_s).tell()
            for task in looking:
                task.cancel()
        good = report(console, told, effects.all)
        if keep:
            for listed in stage.listing():
                console.print(listed, soft_wrap=True)
            console.print("Everything is left running, until Ctrl-C.")
            await asyncio.Event().wait()
    return good
