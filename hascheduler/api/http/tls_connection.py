"""A connection during its TLS handshake: it counts from its first moment, and the handshake has a short time limit.

A server with a TLS context reports a connection to its protocol only after the handshake, and waits up to a minute for
that: clients that connect and send nothing would not be counted, and each would hold a file descriptor.

`loop.start_tls` would be too late: uvloop goes on reading as soon as it has reported a connection, and the first bytes
of the handshake would be lost. So the loop's protocol is the standard library's own TLS protocol, from the first byte.
"""

import asyncio
from asyncio.sslproto import SSLProtocol
from typing import Any

from uvicorn.server import ServerState

from hascheduler.api.http.connection import BoundedConfig, BoundedConnection

HANDSHAKE_PATIENCE_S = 5.0


class TlsConnection(SSLProtocol):
    """Speaks TLS for a `BoundedConnection`. That one does not learn of a failed handshake, so this one removes it from
    the table."""

    def __init__(
        self,
        config: BoundedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        assert config.tls is not None
        self._connection = BoundedConnection(config, server_state, app_state, _loop)
        super().__init__(
            asyncio.get_running_loop(),
            self._connection,
            config.tls,
            None,  # type: ignore[arg-type]  # nothing waits for the end of the handshake
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_PATIENCE_S,  # type: ignore[arg-type]  # a part of a second will do too
        )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Of the bare connection. A refused one is aborted: the client could not read an unencrypted reason."""
        if self._connection.enter(transport) is None:
            super().connection_made(transport)
        else:
            transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connection.leave()
        super().connection_lost(exc)
