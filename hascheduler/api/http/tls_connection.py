"""A connection until its TLS handshake is done: it has a place among the others from its first moment, and little time.

A server that is given a context tells its protocol of a connection after the handshake only, and waits a minute for
that: clients that connect and say nothing would be counted by nobody, and hold a file descriptor each.

`loop.start_tls` would come too late: uvloop goes on reading as soon as it has told of a connection, and the first bytes
of the handshake were lost. So the standard library's own protocol is the one that the loop tells, from the first byte.
"""

import asyncio
from asyncio.sslproto import SSLProtocol
from typing import Any

from uvicorn.server import ServerState

from hascheduler.api.http.connection import BoundedConfig, BoundedConnection

HANDSHAKE_PATIENCE_S = 5.0


class TlsConnection(SSLProtocol):
    """Speaks TLS for a `BoundedConnection`, which never hears of a handshake that fails: so this has it leave."""

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
        """Of the bare connection; nobody could read a reason that is not encrypted."""
        if self._connection.enter(transport) is None:
            super().connection_made(transport)
        else:
            transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connection.leave()
        super().connection_lost(exc)
