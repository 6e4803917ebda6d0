"""The way out: resolves a name once, judges the addresses, and connects to exactly one of those.

The URL of the request is rewritten to the address, so no code below can look the name up again; the Host header and
the TLS server name (and with it the check of the certificate) stay those of the name. No connection is kept: one that
was opened under one name must not serve another name that shares the address.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from ipaddress import ip_address

import httpx

from processors.webhook.addresses import Address
from processors.webhook.destinations import Destinations

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]

_CONNECT_LIMIT_S = 10.0
"""For each address, so that one that does not answer leaves time for the next."""


async def resolved(host: str, port: int) -> list[Address]:
    """All addresses of ``host``, in the order of preference of this machine; no address is an `httpx.ConnectError`."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpx.ConnectError(f"{host!r} can't be resolved: {error}") from None
    return list(dict.fromkeys(ip_address(entry[4][0]) for entry in found))


class PinnedTransport(httpx.AsyncBaseTransport):
    """Raises `httpx.TransportError`, or `InvalidInput` for what ``destinations`` refuse."""

    def __init__(self, destinations: Destinations, resolve: Resolve = resolved) -> None:
        self._destinations = destinations
        self._resolve = resolve
        self._inner = httpx.AsyncHTTPTransport(
            verify=_trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
            trust_env=False,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        asked_for = url.raw_host.decode("ascii")  # with the dot at its end, if any: to a resolver that matters
        host = asked_for.lower().rstrip(".")
        self._destinations.check_host(host)
        addresses = await self._resolve(asked_for, url.port or (443 if url.scheme == "https" else 80))
        failed: httpx.TransportError = httpx.ConnectError(f"{host!r} has no address")
        for address in self._destinations.allowed(host, addresses) if addresses else ():
            pinned = httpx.Request(
                request.method,
                url.copy_with(host=str(address)),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host, "timeout": {"connect": _CONNECT_LIMIT_S}},
            )
            try:
                return await self._inner.handle_async_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:  # nothing has been sent yet
                failed = error
        raise failed

    async def aclose(self) -> None:
        await self._inner.aclose()


@lru_cache(maxsize=8)
def _trusted(cert_file: str | None, cert_dir: str | None) -> ssl.SSLContext:
    """Kept, as reading the authorities takes longer than a request. Where to find them is all that the environment
    (the key of the cache) has a say in."""
    return httpx.create_ssl_context()
