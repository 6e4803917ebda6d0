"""Where requests may go: the operator's two settings, and the decision by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Self

from hascheduler.errors import InvalidInput
from processors.webhook.addresses import Address, special_kind, unwrapped

ALLOW = "HASCHEDULER_WEBHOOK_ALLOW"
ALLOW_PRIVATE = "HASCHEDULER_WEBHOOK_ALLOW_PRIVATE"
_PATH = ("payload", "url")


@dataclass(frozen=True, slots=True)
class Destinations:
    """``hosts`` are names and patterns, none for every name; ``networks`` are let through though not public."""

    hosts: tuple[str, ...] = ()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Self:
        """A setting that can't be read is an `InvalidInput` that names it."""
        hosts = tuple(name.lower().rstrip(".") for name in _listed(environment.get(ALLOW, "")))
        for name in hosts:
            if "*" in name.removeprefix("*.") and name != "*":
                raise InvalidInput((ALLOW,), f"{name!r} is not understood", "a name, '*.example.com' or '*'")
        return cls(hosts, tuple(_network(text) for text in _listed(environment.get(ALLOW_PRIVATE, ""))))

    def check_host(self, host: str) -> None:
        """``host`` in lower case, as the connection will name it; a refused one is an `InvalidInput`."""
        if self.hosts and not any(_matches(host, pattern) for pattern in self.hosts):
            raise InvalidInput(_PATH, f"the host {host!r} is not allowed", f"one that {ALLOW} names on the processor")

    def allowed(self, host: str, addresses: Sequence[Address]) -> list[Address]:
        """The ``addresses`` that may be connected to, in their order; if there is none, an `InvalidInput`."""
        allowed = [address for address in addresses if self._may(address)]
        if not allowed:
            found = ", ".join(f"{address} ({special_kind(address)})" for address in addresses[:3])
            raise InvalidInput(
                _PATH,
                f"{host!r} is at {found}, which is not allowed",
                f"a public address, or one that {ALLOW_PRIVATE} names on the processor",
            )
        return allowed

    def _may(self, address: Address) -> bool:
        if special_kind(address) is None:
            return True
        inner = unwrapped(address)
        return any(inner in network for network in self.networks)


def _listed(setting: str) -> list[str]:
    return [text for part in setting.split(",") if (text := part.strip())]


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise InvalidInput((ALLOW_PRIVATE,), f"{error}", "networks such as '10.96.0.0/12, fd00::/8'") from None


def _matches(host: str, pattern: str) -> bool:
    if pattern == "*":
        return True
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern
