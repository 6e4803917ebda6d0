"""A connection until its TLS handshake is done: it has a place among the others from its first moment, and little time.

The loop's own way tells a protocol of its connection after the handshake only, and waits a minute for that: clients
that connect and say nothing would be counted by nobody, and hold a file descriptor each.
"""

import asyncio
import ssl
from typing import Any

from uvicorn.server import ServerState

from hascheduler.api.connection import BoundedConfig, BoundedConnection

HANDSHAKE_PATIENCE_S = 5.0


class TlsEntrance(asyncio.Protocol):
    """Owner of the handshake. Then a `BoundedConnection` takes over, with whatever came early."""

    def __init__(
        self,
        config: BoundedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        assert config.tls is not None
        self._tls: ssl.SSLContext = config.tls
        self._connection = BoundedConnection(config, server_state, app_state, _loop)
        self._handshakes = config.handshakes
        self._early: list[bytes] = []
        self._is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Of the bare connection; nobody could read a reason that is not encrypted."""
        assert isinstance(transport, asyncio.Transport)
        if self._connection.enter(transport) is not None:
            transport.abort()
            return
        transport.pause_reading()
        handshake = asyncio.get_running_loop().create_task(self._shake_hands(transport), name="TLS handshake")
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    def data_received(self, data: bytes) -> None:
        """With the last of the handshake, before the connection has taken over."""
        self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._connection.leave()

    async def _shake_hands(self, transport: asyncio.Transport) -> None:
        encrypted: asyncio.Transport | None = None
        if self._is_lost:
            return
        try:
            encrypted = await asyncio.get_running_loop().start_tls(
                transport, self, self._tls, server_side=True, ssl_handshake_timeout=HANDSHAKE_PATIENCE_S
            )
        except (OSError, EOFError):  # of TLS, of time, of the network: the client's affair
            pass
        finally:
            # None where the client left halfway.
            if encrypted is None or self._is_lost:
                self._connection.leave()
                transport.abort()
        if encrypted is None or self._is_lost:
            return
        encrypted.set_protocol(self._connection)
        self._connection.connection_made(encrypted)
        for data in self._early:
            self._connection.data_received(data)
