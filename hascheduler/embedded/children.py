"""Child processes, such as replicas and processors: with a log file, ended by pid, never outliving their parent.

A child gets a session of its own, so that Ctrl-C reaches only the parent, which then stops its children in order. If
the parent is killed, the kernel kills the children (on Linux; elsewhere they have to be found by hand). A coroutine
that owns children runs in the foreground (`run_in_foreground`): whatever ends it, it stops its children in order.
"""

import asyncio
import ctypes
import os
import random
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from hascheduler.errors import StoreUnavailable

READY_S = 60.0
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PORTS = range(20_000, 32_700)
"""Below the range for outgoing connections of Linux (``ip_local_port_range``) and of other systems."""
_PORTS_EACH = 100


def free_port() -> int:
    """Return a TCP port on loopback that is free now, and that no other process here chooses or connects from.

    A port that the kernel chooses is in its range for outgoing connections, so any client's next connection could take
    it before the server does.
    """
    ports, _ = _own_ports(os.getpid())
    for port in islice(ports, _PORTS_EACH):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"none of the {_PORTS_EACH} ports of this process is free")


@cache
def _own_ports(_pid: int) -> tuple[Iterator[int], socket.socket | None]:
    """Return the ports that only this process chooses from, in a circle, and the socket that claims them.

    The claim is a name that one socket can have, for as long as the process lives (on Linux; elsewhere two processes
    may have the same ports by chance).
    """
    starts = _PORTS[::_PORTS_EACH]
    for start in random.SystemRandom().sample(starts, len(starts)):
        ports = cycle(range(start, start + _PORTS_EACH))
        if sys.platform != "linux":
            return ports, None
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0hascheduler-ports-{start}")
        except OSError:
            claim.close()
        else:
            return ports, claim
    raise OSError(f"all ports between {_PORTS[0]} and {_PORTS[-1]} are claimed by other processes")


def die_with_parent() -> None:
    """Have the kernel kill this process when the parent's thread that started it ends (on Linux only)."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass
class Child:
    """A process that was started, and may have ended. ``output`` has its standard output, ``log`` its errors."""

    name: str
    process: asyncio.subprocess.Process
    log: Path
    output: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    def signal(self, number: signal.Signals) -> None:
        if self.running:
            self.process.send_signal(number)

    async def wait(self) -> int:
        return await self.process.wait()

    async def until(self, is_ready: Callable[[], Awaitable[bool]], limit_s: float) -> None:
        """Wait until it is ready; `StoreUnavailable` with the end of its log if it ends before, or takes longer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self.running:
                    if await is_ready():
                        return
                    await asyncio.sleep(0.05)
        raise StoreUnavailable(f"{self.name} is not ready; its log ends with:\n{self.last_lines()}")

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await self.wait()

    async def terminate(self, limit_s: float = 15) -> int:
        """Send SIGTERM and return the exit code; `TimeoutError` if it takes longer."""
        self.signal(signal.SIGTERM)
        async with asyncio.timeout(limit_s):
            return await self.wait()

    async def stop(self, grace_s: float = 10) -> None:
        """Send SIGTERM, then SIGKILL if the process still runs after the grace."""
        try:
            await self.terminate(grace_s)
        except TimeoutError:
            await self.kill()

    def last_lines(self, count: int = 5) -> str:
        """Return the end of its log, for an error message."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])


async def start_child(
    name: str,
    arguments: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str],
    user: str | None = None,
    output: Path | None = None,
    folder: Path | None = None,
) -> Child:
    """Start ``arguments``, in ``folder`` if given; errors go to ``log``, standard output to ``output`` or the same."""
    log.parent.mkdir(parents=True, exist_ok=True)
    output = output or log
    with log.open("ab") as errors, output.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
            preexec_fn=die_with_parent,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
    return Child(name, process, log, output)


@dataclass
class Daemon(Child):
    """A replica or processor; ``url`` is where it answers probes, "" if it answers none."""

    url: str = ""

    async def ready(self, limit_s: float = READY_S) -> None:
        """Wait until it answers that it is ready; `StoreUnavailable` with the end of its log if it does not."""
        # The probe is plain HTTP; loading all authorities for each process takes longer than most answers.
        async with httpx2.AsyncClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)) as http:

            async def answers() -> bool:
                with suppress(httpx2.TransportError):
                    return (await http.get(f"{self.url}/readyz")).status_code == httpx2.codes.OK
                return False

            await self.until(answers, limit_s)


async def start_daemon(
    name: str,
    arguments: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str],
    url: str = "",
    program: Sequence[str] = (sys.executable, "-P", "-m", "hascheduler"),
    output: Path | None = None,
    folder: Path | None = None,
) -> Daemon:
    """Start a replica or processor, as `start_child` does: ``program`` with ``arguments``.

    By default no file in the current folder stands for a module that it imports.
    """
    child = await start_child(name, [*program, *arguments], log, environment=environment, output=output, folder=folder)
    return Daemon(child.name, child.process, child.log, child.output, url)


Result = TypeVar("Result")


def run_in_foreground(main: Coroutine[Any, Any, Result]) -> Result:
    """Run ``main`` and return its result; Ctrl-C, SIGTERM and a closed terminal cancel it, and it may clean up.

    Then this raises `KeyboardInterrupt`. A second Ctrl-C ends the process at once; the kernel then kills the children.
    """

    async def attended() -> Result:
        task = asyncio.current_task()
        assert task is not None, "asyncio.run runs a task"
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await main

    try:
        return asyncio.run(attended())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
