"""The demo from its start to its exit code."""

import asyncio
import secrets
import shutil
from pathlib import Path

from rich.console import Console

from hascheduler.demo.evidence import Effects
from hascheduler.demo.report import report
from hascheduler.demo.story import Story
from hascheduler.demo.view import View
from hascheduler.demo.watch import Sight, keep_watching
from hascheduler.embedded.listing import list_stack
from hascheduler.embedded.stack import StackPlan, open_stack


async def run_demo(console: Console, folder: Path, *, keep: bool, transport: str | None) -> bool:
    """Tell the story and print the report; with ``keep`` leave everything running until cancelled."""
    shutil.rmtree(folder / "logs", ignore_errors=True)
    # A database of its own: the server may be one that others use.
    database = f"hascheduler-demo-{secrets.token_hex(3)}"
    sight, effects = Sight(), Effects()
    view = View(console, sight)
    plan = StackPlan(folder, transport=transport, settings={"HASCHEDULER_DATABASE": database})
    async with open_stack(plan, view.say) as stack:
        view.say("everything is ready")
        async with asyncio.TaskGroup() as eyes:
            looking = [
                eyes.create_task(keep_watching(stack, effects, sight)),
                eyes.create_task(view.keep_showing(stack)),
            ]
            told = await Story(stack, database, view.say).tell()
            for task in looking:
                task.cancel()
        effects.read([stack.log_of(name) for name in stack.processors])
        good = report(console, told, effects.all)
        if keep:
            console.print(list_stack(stack))
            console.print("Everything is left running, until Ctrl-C.")
            await asyncio.Event().wait()
    return good
