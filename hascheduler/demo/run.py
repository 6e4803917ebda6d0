"""The demo from its start to its verdict."""

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rich.console import Console

from hascheduler.demo.evidence import Effects
from hascheduler.demo.report import report
from hascheduler.demo.story import Story, Told
from hascheduler.demo.view import View
from hascheduler.demo.watch import Sight, keep_watching
from hascheduler.embedded.listing import list_servers, list_stack
from hascheduler.embedded.stack import Stack, StackPlan, open_stack
from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.faults import faults


async def run_demo(console: Console, folder: Path, *, keep: bool, transport: str | None) -> bool:
    """Tell the story and print the report; with ``keep`` leave everything running until cancelled.

    Returns whether nothing was lost or doubled.
    """
    shutil.rmtree(folder / "logs", ignore_errors=True)
    # A database of its own: the server may be one that others use.
    name = f"hascheduler-demo-{secrets.token_hex(3)}"
    sight, effects, told = Sight(), Effects(), Told()
    view = View(console, sight, effects, told)
    plan = StackPlan(folder, transport=transport, settings={"HASCHEDULER_DATABASE": name})
    async with open_stack(plan, view.say) as stack, _database(stack, name) as database:
        view.say("everything is ready")
        async with asyncio.TaskGroup() as eyes:
            looking = [
                eyes.create_task(keep_watching(stack, effects, sight)),
                eyes.create_task(view.keep_showing(stack)),
            ]
            await Story(stack, database, view.say, told).tell()
            for task in looking:
                task.cancel()
        effects.read([stack.log_of(processor) for processor in stack.processors])
        good = report(console, told, effects.all)
        if keep:
            console.print(list_stack(stack))
            console.print(list_servers(stack), soft_wrap=True)
            console.print("Everything is left running, until Ctrl-C.")
            await asyncio.Event().wait()
    return good


@asynccontextmanager
async def _database(stack: Stack, name: str) -> AsyncIterator[Database]:
    """The database for looking into; dropped at the end where the server is not the stack's own."""
    client = connect(stack.mongodb_uri)
    try:
        yield open_database(client, name)
    finally:
        if os.environ.get("HASCHEDULER_MONGODB_URI"):
            await stack.stop()  # a replica would make its collections again
            with faults("dropping the database"):
                await client.drop_database(name)
        await client.close()
