"""Where processes run: on this machine, or each on a host of its own, a network namespace on a bridge.

A host of its own can be cut off from all others, which takes root. Whatever runs on one host reaches itself even then.
"""

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Host:
    """``prefix`` is what a command begins with that is to run there."""

    ip: str
    prefix: tuple[str, ...] = ()
    wire: str = ""


HERE = Host("127.0.0.1")


def why_no_namespaces() -> str:
    """Empty where there can be hosts."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    return "" if shutil.which("ip") else "network namespaces need ip (apt-get install iproute2)"


@dataclass(frozen=True)
class Hosts:
    """``gateway`` is this machine as the hosts see it."""

    gateway: str
    all: Sequence[Host]

    async def cut_off(self, host: Host) -> None:
        await _ip("link", "set", host.wire, "down")

    async def reconnect(self, host: Host) -> None:
        await _ip("link", "set", host.wire, "up")


@asynccontextmanager
async def open_hosts(count: int) -> AsyncIterator[Hosts]:
    name = f"chs{secrets.token_hex(2)}"
    # Its own for each run, as two may be under way on one machine.
    prefix = f"10.{101 + os.getpid() % 90}.{secrets.randbelow(250) + 1}"
    await _ip("link", "add", name, "type", "bridge")
    namespaces: list[str] = []
    try:
        await _ip("address", "add", f"{prefix}.1/24", "dev", name)
        await _ip("link", "set", name, "up")
        hosts = []
        for number in range(count):
            namespace, wire, ip = f"{name}-{number}", f"{name}v{number}", f"{prefix}.{10 + number}"
            await _ip("netns", "add", namespace)
            namespaces.append(namespace)
            await _ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", namespace)
            await _ip("link", "set", wire, "master", name, "up")
            for command in ("link set lo up", "link set eth0 up", f"address add {ip}/24 dev eth0"):
                await _ip("-netns", namespace, *command.split())
            hosts.append(Host(ip, ("ip", "netns", "exec", namespace), wire))
        yield Hosts(f"{prefix}.1", hosts)
    finally:
        for namespace in namespaces:
            await asyncio.shield(_ip("netns", "delete", namespace))
        await asyncio.shield(_ip("link", "delete", name))


async def _ip(*arguments: str) -> None:
    await run("ip", *arguments)


async def run(*command: str, input: str = "") -> None:
    """A command that fails says why."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stderr=pipe)
    _, error = await process.communicate(input.encode())
    assert process.returncode == 0, f"{' '.join(command)}: {error.decode()}"
