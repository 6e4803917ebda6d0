"""``hascheduler dev``: a whole system on this machine, until Ctrl-C. Nothing restarts a process that ends: experiments
may break things.
"""

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from hascheduler.embedded.children import Child
    from hascheduler.embedded.stack import StackPlan


class TransportOption(StrEnum):
    RABBITMQ = "rabbitmq"
    MONGO = "mongo"


def dev(
    replicas: Annotated[int, typer.Option(min=1, max=9, help="How many replicas.")] = 3,
    processors: Annotated[int, typer.Option(min=0, max=9, help="How many processors.")] = 2,
    slots: Annotated[int, typer.Option(min=1, max=1_000, help="Jobs that each processor runs at once.")] = 8,
    transport: Annotated[
        TransportOption | None, typer.Option(help="How jobs reach processors; RabbitMQ where it is installed.")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where the processes' logs go.")] = Path(".run"),
) -> None:
    """Run MongoDB, RabbitMQ, replicas and processors on this machine, until Ctrl-C.

    HASCHEDULER_MONGODB_URI and HASCHEDULER_AMQP_URL, where set, are used instead of servers of its own.
    """
    from rich.console import Console

    from hascheduler.embedded.children import run_in_foreground
    from hascheduler.embedded.stack import StackPlan

    plan = StackPlan(folder, replicas, processors, slots, None if transport is None else transport.value)
    run_in_foreground(_run(plan, Console(highlight=False)))


async def _run(plan: "StackPlan", console: "Console") -> None:
    from hascheduler.embedded.stack import list_servers, list_stack, open_stack

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
