"""Serves an ASGI application on a port, inside the event loop of its process.

uvicorn, but without signal handlers, logging set-up, access log or exit of the process. Limits on connections are
here and in `hascheduler.api.http.connection`, limits on requests in `hascheduler.api.middleware.overload` and
`hascheduler.api.http.limits`.

A replica that passes a request on to another one, its *peer*, sends the client's address and the batch's id, so that
the peer charges the request to the client's own address. Anybody can send such headers: a client that chose its address
could charge others, or escape its share of the limits, and one that chose a batch could add jobs to another's. So the
headers count only with a proof, an HMAC by a key that the database gives to replicas alone. That is no defence against
somebody who reads the traffic between replicas: tokens are in it too.
"""

import asyncio
import errno
import hmac
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import uvicorn
from starlette.types import ASGIApp, Scope

from hascheduler.api.http.connection import KEEP_ALIVE_S, BoundedConnection, TlsConnection
from hascheduler.api.http.limits import Limit
from hascheduler.errors import InvalidInput
from hascheduler.lifecycle import in_time
from hascheduler.telemetry.metrics_http import HttpMetrics

CONNECTIONS_MAX = 1_000
CONNECTIONS_RESERVE = 50
_BACKLOG = 256
_RESOLVE_PATIENCE_S = 5
_DRAIN_S = 5
_STOP_S = _DRAIN_S + 3  # on top of draining: requests cancelled at its end have this long to finish
_CHECK_EVERY_S = 1
_END_CHECK_EVERY_S = 0.005


class ApiServer:
    """An HTTP server: ``await bind()``, then ``port`` is known, then ``await run()`` until cancelled.

    With ``tls`` it speaks HTTPS. If the port is not available, an `InvalidInput` names ``HASCHEDULER_<setting>_HOST``
    or ``…_PORT``. ``connections_max`` and ``connections_reserve`` are those of `hascheduler.api.http.limits`.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        *,
        setting: str = "HTTP",
        connections_max: int | None = None,
        connections_reserve: int | None = None,
        metrics: HttpMetrics | None = None,
    ) -> None:
        limit = Limit(
            "connections",
            CONNECTIONS_MAX if connections_max is None else connections_max,
            CONNECTIONS_RESERVE if connections_reserve is None else connections_reserve,
        )
        bounds = limit, HttpMetrics() if metrics is None else metrics
        connection: Any = partial(BoundedConnection, *bounds) if tls is None else partial(TlsConnection, tls, *bounds)
        self._setting = f"HASCHEDULER_{setting}"
        self._host = host
        self._port = port
        self._listener: socket.socket | None = None
        self._config = uvicorn.Config(
            app,
            http=connection,  # called as a class would be
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=_DRAIN_S,
        )
        self._server = PromptServer(self._config)

    @property
    def port(self) -> int:
        """Return the bound port or, before `bind`, the requested one, which may be 0."""
        return self._port

    async def bind(self) -> None:
        """Bind the port and listen on it, or raise `InvalidInput` if that is impossible."""
        family, address = await self._resolved()
        # Asyncio sets TCP_NODELAY only if a socket names its protocol.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            # Here, not in `run`: until one of them listens, two processes may bind the same port.
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise self._refused(error) from None
        listener.setblocking(False)
        self._listener = listener
        self._port = listener.getsockname()[1]

    async def run(self) -> None:
        """Serve until cancelled, then finish the requests in flight within a few seconds."""
        assert self._listener is not None, "bind comes first"
        serving = asyncio.create_task(self._server.serve(sockets=[self._listener]), name="uvicorn")
        try:
            await asyncio.shield(serving)
        finally:
            self._server.end()
            try:
                await in_time(serving, _STOP_S)  # cancelled after that; connections that are still open are cut
            finally:
                self._listener.close()

    async def _resolved(self) -> tuple[socket.AddressFamily, tuple[str | int | bytes, ...]]:
        try:
            async with asyncio.timeout(_RESOLVE_PATIENCE_S):
                found = await asyncio.get_running_loop().getaddrinfo(
                    self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
                )
        except (OSError, TimeoutError):
            raise InvalidInput(
                (f"{self._setting}_HOST",), f"{self._host!r} does not resolve to an address", "one of this machine's"
            ) from None
        family, _, _, _, address = found[0]
        return family, address

    def _refused(self, error: OSError) -> InvalidInput:
        if error.errno == errno.EADDRNOTAVAIL:
            return InvalidInput(
                (f"{self._setting}_HOST",), f"{self._host} is not an address of this machine", "one of this machine's"
            )
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"can't be bound ({error.strerror})"
        return InvalidInput(
            (f"{self._setting}_PORT",), f"{self._host}:{self._port} {reason}", "a free port, or 0 for any"
        )


class PromptServer(uvicorn.Server):
    """A uvicorn server that ends on request, as soon as its last connection and request have.

    uvicorn's own polls ten times a second whether it should end, and then whether they have: a process would take up to
    0.3 s longer to end.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    def end(self) -> None:
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        while not self._ending.is_set():
            await self.on_tick(0)  # the Date header of responses
            now_s = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, BoundedConnection):
                    connection.check(now_s)
            await in_time(self._ending.wait(), _CHECK_EVERY_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110  # uvicorn keeps sets
                    await asyncio.sleep(_END_CHECK_EVERY_S)
                for server in self.servers:
                    await server.wait_closed()
        except TimeoutError:
            for task in list(self.server_state.tasks):
                task.cancel()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process, which stops its parts in order."""
        yield


BATCH_ID = "batch_id"
"""The key in ``scope["state"]`` of the id of the whole batch, for a request that has a part of it."""
_CLIENT = b"x-hascheduler-client"
_BATCH = b"x-hascheduler-batch"
_PROOF = b"x-hascheduler-proof"


class PassedOn(NamedTuple):
    """A peer's claim about a request that it passed on.

    ``client`` is an address, ``batch_id`` the id of the whole batch if the request has a part of one.
    """

    client: str
    batch_id: str | None = None


def peer_headers(key: bytes, scope: Scope) -> Sequence[tuple[bytes, bytes]]:
    """Return the headers that prove the claim to a peer with the same key."""
    client = (scope.get("client") or ("",))[0].encode("latin-1", "replace")
    batch = (scope["state"].get(BATCH_ID) or "").encode()
    return (_CLIENT, client), (_BATCH, batch), (_PROOF, _proof(key, client, batch))


def passed_on_by_peer(scope: Scope, key: bytes) -> PassedOn | None:
    """Return what a peer claims about the request; None if no peer passed it on."""
    headers = {name: value for name, value in scope["headers"] if name in (_CLIENT, _BATCH, _PROOF)}
    client, batch, proof = headers.get(_CLIENT, b""), headers.get(_BATCH, b""), headers.get(_PROOF)
    if proof is None or not hmac.compare_digest(proof, _proof(key, client, batch)):
        return None
    return PassedOn(client.decode("latin-1"), batch.decode("latin-1") or None)


def _proof(key: bytes, client: bytes, batch: bytes) -> bytes:
    return hmac.digest(key, client + b"\n" + batch, "sha256").hex().encode()
