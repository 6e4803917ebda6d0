"""The command ``hascheduler dev``: a whole system on this machine, in which a process that ends starts again.

Processors may run your own handlers, and with ``--reload`` begin anew whenever a file of these changes.
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.machinery import PathFinder
from itertools import chain
from pathlib import Path
from random import uniform
from signal import SIGTERM
from typing import Annotated, BinaryIO

from rich.console import Console
from rich.text import Text

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import argument, option
from hascheduler.cli.output.printable import printable
from hascheduler.cli.run import whole_system
from hascheduler.embedded.children import Child, run_in_foreground
from hascheduler.embedded.stack import READY_MADE, Stack, StackPlan, list_servers, list_stack, open_stack
from hascheduler.errors import CallerError, InvalidInput

_STARTS_MAX = 10
"""In a row, of a process that ends soon each time."""
_STEADY_S = 30.0
_PAUSE_S, _PAUSE_MAX_S = 0.5, 15.0
_LOOK_EVERY_S = 0.3
_FILES_MAX = 5_000
_READ_BYTES = 64 * 1024
_MISTAKE_STATUS = 2


@example("hascheduler dev", "hascheduler dev shop:handlers --reload --folder .dev")
def dev(
    modules: Annotated[
        list[str] | None,
        argument("[MODULE]...", f"Your modules with handlers, {whole_system.MODULE}; default: the ready-made ones"),
    ] = None,
    *,
    reload: Annotated[bool, option("--reload", "Restart processors when a file of MODULE changes")] = False,
    replicas: Annotated[int, option("--replicas N", "How many replicas", min=1, max=9)] = 3,
    processors: Annotated[int, option("--processors N", "How many processors", min=0, max=9)] = 2,
    slots: Annotated[int, option("--slots N", "How many jobs each processor runs at once", min=1, max=1_000)] = 8,
    port: Annotated[
        int, option("--port N", "Replicas listen on the first free ports from here", min=1, max=65_000)
    ] = 8080,
    transport: whole_system.TransportOrNone = None,
    shards: Annotated[int, option("--shards N", "How many shards", min=1, max=whole_system.SHARDS_SHOWN_MAX)] = 1,
    folder: Annotated[
        Path | None,
        option("--folder DIR", "Directory for logs and data, which are kept; default: logs in .run, no data"),
    ] = None,
) -> None:
    """Run MongoDB, RabbitMQ, replicas and processors on this machine, until Ctrl-C.

    A replica or processor that ends starts again. What processors log is shown, among it the end of each job.

    HASCHEDULER_MONGODB_URI and HASCHEDULER_AMQP_URL, if set, are used instead of servers of its own.
    """
    if reload and not modules:
        raise InvalidInput(("--reload",), "applies only to modules of your own", "MODULE with it")
    logs = folder or Path(".run")
    whole_system.require_folder(logs)
    plan = StackPlan(
        logs, replicas, 0, slots, transport, {"HASCHEDULER_LOG_FORMAT": "console"}, modules or READY_MADE, shards, port,
        None if folder is None else folder / "mongodb",
    )  # fmt: skip
    names = [f"processor-{number}" for number in range(1, processors + 1)]
    run_in_foreground(_run(plan, names, [_folder_of(module) for module in modules or []] if reload else []))


async def _run(plan: StackPlan, processors: list[str], watched: list[Path]) -> None:
    console = Console(highlight=False, markup=False)
    say = partial(console.print, soft_wrap=True)
    await whole_system.require_own_servers(plan.transport)
    with ExitStack() as files:
        async with open_stack(plan, say) as stack, asyncio.TaskGroup() as group:
            for name in processors:
                stack.log_of(name).touch()
                log = files.enter_context(stack.log_of(name).open("rb"))
                log.seek(0, os.SEEK_END)
                group.create_task(_show(name, log, say))
                await stack.start_processor(name)
            attended = _Attended(stack, say, is_watched=bool(watched))
            with suppress(*([CallerError] if watched else [])):
                await stack.processors_ready()
            for name in stack.replicas:
                group.create_task(attended.keep(name, stack.replicas, stack.start_replica))
            for name in processors:
                group.create_task(attended.keep(name, stack.processors, stack.start_processor))
            console.print(list_stack(stack))
            say(list_servers(stack), "Ctrl-C stops everything.", sep="\n")
            if watched:
                group.create_task(attended.reload(watched))
            await asyncio.Event().wait()  # until cancelled


@dataclass
class _Attended:
    """Starts processes again that have ended."""

    stack: Stack
    say: Callable[..., None]
    is_watched: bool
    changes: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    told_to_end: set[str] = field(default_factory=set)

    async def keep(self, name: str, living: Mapping[str, Child], start: Callable[[str], Awaitable[None]]) -> None:
        """Start the process again whenever it ends: at once for a change, else after longer and longer pauses."""
        soon = 0
        while True:
            began_s = time.monotonic()
            child, changes = living[name], self.changes
            code = await child.wait()
            if name in self.told_to_end:
                self.told_to_end.discard(name)
                soon = 0
            elif code == _MISTAKE_STATUS and name in self.stack.processors and self.is_watched:
                self.say(f"{name} waits for a change of your files", style="yellow")
                while self.changes == changes:
                    await self.changed.wait()
            else:
                soon = 1 if time.monotonic() - began_s > _STEADY_S else soon + 1
                if soon == _STARTS_MAX:
                    self.say(
                        f"{name} has ended {soon} times in a row and is left so; see {child.log}", style="bold red"
                    )
                    return
                pause_s = uniform(0.5, 1) * min(_PAUSE_S * 2**soon, _PAUSE_MAX_S)  # noqa: S311  # jitter, no secret
                self.say(f"{name} ended with {code} and starts again in {pause_s:.1f} s; see {child.log}", style="red")
                await asyncio.sleep(pause_s)
            await start(name)

    async def reload(self, folders: list[Path]) -> None:
        """End the processors, which drain, whenever a file below these folders changes."""
        seen = await asyncio.to_thread(_files, folders)
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            now = await asyncio.to_thread(_files, folders)
            if changed := sorted({path for path, _ in seen.items() ^ now.items()}):
                self.say(f"{changed[0]} has changed: the processors start again", style="yellow")
                running = {name for name, child in self.stack.processors.items() if child.running}
                self.told_to_end |= running
                for name in running:
                    self.stack.processors[name].signal(SIGTERM)
                self.changes += 1
                self.changed.set()
                self.changed.clear()  # it wakes those that wait now
            seen = now


def _files(folders: list[Path]) -> dict[str, int]:
    """Return when each Python file was written, of the first thousands."""
    found: dict[str, int] = {}
    for where, inner, files in chain.from_iterable(map(os.walk, folders)):
        inner[:] = sorted(name for name in inner if _holds_sources(os.path.join(where, name)))
        for name in files:
            if name.endswith(".py") and len(found) < _FILES_MAX:
                with suppress(OSError):
                    found[os.path.join(where, name)] = os.stat(os.path.join(where, name)).st_mtime_ns
    return found


def _holds_sources(folder: str) -> bool:
    name = os.path.basename(folder)
    return not (name.startswith((".", "__")) or name == "node_modules" or os.path.exists(f"{folder}/pyvenv.cfg"))


def _folder_of(module: str) -> Path:
    """Return the folder that has the module, or its package, without an import of it."""
    found = PathFinder.find_spec(module.partition(":")[0].partition(".")[0], [os.getcwd(), *sys.path])
    if found is None:
        return Path.cwd()  # it may come
    inner = list(found.submodule_search_locations or ())
    return Path(inner[0]) if inner else Path(found.origin or "").parent


async def _show(name: str, log: BinaryIO, say: Callable[..., None]) -> None:
    """Print what the process logs from now on."""
    rest = b""
    while True:
        *lines, rest = (rest + log.read(_READ_BYTES)).split(b"\n")
        for line in lines:
            say(Text.assemble((f"{name}  ", "dim"), printable(line.decode(errors="replace"))))
        if not lines:
            await asyncio.sleep(_LOOK_EVERY_S)
        await asyncio.sleep(0)
