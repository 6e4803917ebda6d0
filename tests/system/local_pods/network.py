"""A bridge for a node, a network namespace for each pod, and the network policies.

The policies are rules for the routes of each pod: a connection that is not allowed has no route, so it fails at once,
where a cluster's network would drop its packets in silence. They bind TCP between pods; the node reaches every pod, as
a kubelet must. Names of Services and members are lines of ``/etc/hosts``.
"""

import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.chaos.hosts import run

NODE = 1
_FIRST_POD = 10
_REPLY, _ALLOWED, _ELSE = 200, 300, 1_000


@dataclass(frozen=True, slots=True)
class Link:
    """One pod's: ``namespace`` is what `ip netns` calls it."""

    namespace: str
    ip: str


class Network:
    """Owns the bridge and every namespace on it; `close` removes them."""

    def __init__(self) -> None:
        self._name = f"reh{secrets.token_hex(3)}"
        # Its own for each run, as two may be under way on one machine.
        self._prefix = f"10.{201 + os.getpid() % 40}.{secrets.randbelow(250) + 1}"
        self._count = 0
        self._rules: dict[str, set[str]] = {}

    async def open(self) -> None:
        await run("ip", "link", "add", self._name, "type", "bridge")
        await run("ip", "address", "add", f"{self._prefix}.{NODE}/24", "dev", self._name)
        await run("ip", "link", "set", self._name, "up")

    async def close(self) -> None:
        for namespace in list(self._rules):
            await self.detach(namespace)
        await run("ip", "link", "delete", self._name)

    async def attach(self, ports: Iterable[int]) -> Link:
        """A new namespace with an address that none had before; it may answer on ``ports`` and reach nobody yet."""
        self._count += 1
        namespace, outer = f"{self._name}-{self._count}", f"{self._name}v{self._count}"
        ip = f"{self._prefix}.{_FIRST_POD + self._count}"
        await run("ip", "netns", "add", namespace)
        self._rules[namespace] = set()
        await run("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        await run("ip", "link", "set", outer, "master", self._name, "up")
        replies = [f"rule add priority {_REPLY} ipproto tcp sport {port} lookup main" for port in ports]
        await self._batch(
            namespace,
            "link set lo up",
            "link set eth0 up",
            f"address add {ip}/24 dev eth0",
            *replies,
            f"rule add priority {_ELSE} ipproto tcp unreachable",
        )
        return Link(namespace, ip)

    async def detach(self, namespace: str) -> None:
        del self._rules[namespace]
        await run("ip", "netns", "delete", namespace)

    async def allow(self, reachable: Mapping[str, set[tuple[str, int]]]) -> None:
        """From each namespace these addresses and ports, and no others."""
        for namespace, ends in reachable.items():
            if namespace not in self._rules:
                continue
            wanted = {f"priority {_ALLOWED} to {ip} ipproto tcp dport {port} lookup main" for ip, port in ends}
            present = self._rules[namespace]
            lines = [f"rule add {rule}" for rule in sorted(wanted - present)]
            lines += [f"rule delete {rule}" for rule in sorted(present - wanted)]
            self._rules[namespace] = wanted
            if lines:
                await self._batch(namespace, *lines)

    async def _batch(self, namespace: str, *lines: str) -> None:
        await run("ip", "-netns", namespace, "-batch", "-", input="\n".join(lines) + "\n")
