"""``hascheduler dev``: a whole system on this machine, until Ctrl-C. Nothing restarts a process that ends: experiments
may break things.
"""

import asyncio
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from hascheduler.embedded.children import Child
    from hascheduler.embedded.stack import StackPlan


SHARDS_SHOWN_MAX = 9
"""More processes than that are of no use on one machine."""


class TransportOption(StrEnum):
    RABBITMQ = "rabbitmq"
    MONGO = "mongo"


def dev(
    *,
    replicas: Annotated[int, typer.Option(min=1, max=9, help="How many replicas.")] = 3,
    processors: Annotated[
        int | None,
        typer.Option(min=0, max=SHARDS_SHOWN_MAX, help="How many processors [2, and one for each shard]"),
    ] = None,
    slots: Annotated[int, typer.Option(min=1, max=1_000, help="Jobs that each processor runs at once.")] = 8,
    transport: Annotated[
        TransportOption | None, typer.Option(help="How jobs reach processors; RabbitMQ where it is installed.")
    ] = None,
    shards: Annotated[int, typer.Option(min=1, max=SHARDS_SHOWN_MAX, help="How many shards.")] = 1,
    folder: Annotated[Path, typer.Option(help="Where the processes' logs go.")] = Path(".run"),
) -> None:
    """Run MongoDB, RabbitMQ, replicas and processors on this machine, until Ctrl-C.

    HASCHEDULER_MONGODB_URI and HASCHEDULER_AMQP_URL, where set, are used instead of servers of its own.
    """
    from rich.console import Console

    from hascheduler.embedded.children import run_in_foreground
    from hascheduler.embedded.stack import StackPlan, processors_for

    require_folder(folder)
    plan = StackPlan(
        folder,
        replicas,
        processors_for(shards) if processors is None else processors,
        slots,
        None if transport is None else transport.value,
        shards=shards,
    )
    run_in_foreground(_run(plan, Console(highlight=False)))


def require_folder(folder: Path) -> None:
    """`InvalidInput` where no logs can go: it is a file, or below one, or may not be written."""
    from hascheduler.errors import InvalidInput

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = "is no folder" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        raise InvalidInput(("--folder",), f"{folder} {problem}", "a folder, which is made if need be") from None


async def require_own_servers(transport: str | None) -> None:
    """`InvalidInput` where those that the environment names can't be used: said before any process starts."""
    from hascheduler import assembly
    from hascheduler.settings import read_settings

    if os.environ.get("HASCHEDULER_MONGODB_URI"):
        used = transport or ("rabbitmq" if os.environ.get("HASCHEDULER_AMQP_URL") else "mongo")
        await assembly.require_servers(read_settings(startup_patience_ms=0, transport=used))


async def _run(plan: "StackPlan", console: "Console") -> None:
    from hascheduler.embedded.stack import list_servers, list_stack, open_stack

    await require_own_servers(plan.transport)
    async with open_stack(plan, console.print) as stack:
        console.print(list_stack(stack))
        console.print(list_servers(stack), soft_wrap=True)
        console.print("Ctrl-C stops everything.")
        async with asyncio.TaskGroup() as watches:
            for child in (*stack.replicas.values(), *stack.processors.values()):
                watches.create_task(_tell_when_ended(child, console))
            await asyncio.Event().wait()  # until cancelled


async def _tell_when_ended(child: "Child", console: "Console") -> None:
    code = await child.wait()
    console.print(f"{child.name} ended with {code}; see {child.log}", style="red")
