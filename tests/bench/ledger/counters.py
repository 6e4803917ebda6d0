"""What the kernel and MongoDB have counted for the processes of a system, at one instant."""

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from pymongo import AsyncMongoClient

from tests.bench.cast import Cast

OPERATIONS = ("insert", "query", "update", "delete", "getmore", "command")
_NUMBERS = re.compile(r"[-_.:]?\d+")
_SWITCHES = re.compile(r"^(voluntary|nonvoluntary)_ctxt_switches:\s+(\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProcessLook:
    """``cpu_s`` is of the whole process; threads that have ended are in it, and in nothing else."""

    cpu_s: float
    threads_s: Mapping[str, float]
    voluntary: int
    involuntary: int


@dataclass(frozen=True, slots=True)
class MongodLook:
    """``operations`` are ``opcounters``, ``commands`` the server's counts by the names of commands."""

    operations: Mapping[str, int]
    commands: Mapping[str, int]
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class Look:
    """By process id."""

    at: float
    processes: Mapping[int, ProcessLook]
    mongod: MongodLook


async def look(client: AsyncMongoClient[dict[str, Any]], cast: Cast) -> Look:
    mongod = _mongod(await client.admin.command("serverStatus"))
    processes = {each.pid: look_at(each.pid) for kind in cast.values() for each in kind}
    return Look(time.monotonic(), processes, mongod)


def look_at(pid: int, proc: Path = Path("/proc")) -> ProcessLook:
    """Threads by name, numbers left out. Where there is no ``/proc``, CPU alone."""
    times = psutil.Process(pid).cpu_times()
    threads: Counter[str] = Counter()
    switches: Counter[str] = Counter()
    for task in (proc / str(pid) / "task").glob("*"):
        try:
            name, status = (task / "comm").read_text().strip(), (task / "status").read_text()
            ran_ns = int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        threads[_NUMBERS.sub("", name) or name] += ran_ns
        for kind, count in _SWITCHES.findall(status):
            switches[kind] += int(count)
    threads_s = {name: ran_ns / 1e9 for name, ran_ns in threads.items()}
    return ProcessLook(times.user + times.system, threads_s, switches["voluntary"], switches["nonvoluntary"])


def _mongod(status: Mapping[str, Any]) -> MongodLook:
    # Beside the commands there are counts of what the server does not know.
    commands = {name: int(each["total"]) for name, each in status["metrics"]["commands"].items() if _is_command(each)}
    network = status["network"]
    operations = {name: int(status["opcounters"][name]) for name in OPERATIONS}
    return MongodLook(operations, commands, int(network["bytesIn"]), int(network["bytesOut"]))


def _is_command(value: object) -> bool:
    return isinstance(value, Mapping) and "total" in value
