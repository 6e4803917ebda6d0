"""The health port of a process, from its start to its end; `hascheduler.telemetry.health_port` has its answers."""

import asyncio

import structlog
from prometheus_client import CollectorRegistry

from hascheduler.api.http.server import ApiServer
from hascheduler.telemetry.health import Health
from hascheduler.telemetry.health_port import health_application

log = structlog.get_logger(__name__)

_CONNECTIONS_MAX = 64


class HealthPort:
    """``port`` None: there is none. It opens before the first request to the database, so that a process that waits for
    the database can be told from a dead one."""

    def __init__(
        self, host: str, port: int | None, health: Health, registry: CollectorRegistry, *, leads: bool
    ) -> None:
        self._server = (
            None
            if port is None
            else ApiServer(
                health_application(health, registry, leads=leads),
                host,
                port,
                setting="HEALTH",
                connections_max=_CONNECTIONS_MAX,
                connections_reserve=0,
            )
        )
        self._host = host
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Answer from now on; `InvalidInput` where the port is not available."""
        if self._server is not None:
            await self._server.bind()
            log.info("health_port", health=f"{self._host}:{self._server.port}")
            self._serving = asyncio.create_task(self._server.run(), name="health port")

    async def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])
