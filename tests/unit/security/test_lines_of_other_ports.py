"""The ports beside the API's: one address that takes all connections keeps neither probes nor standbys out."""

import asyncio
from contextlib import suppress

from hascheduler.api.ops import health_port
from hascheduler.api.ops.health_port import HealthPort
from hascheduler.daemon.leadership import liveness as liveness_module
from hascheduler.daemon.leadership.liveness import GREETING, LivenessServer
from hascheduler.telemetry.registry import new_registry
from tests.unit.security.crowding import HERE, LIMIT_S, THERE, answer_of

GREETED = GREETING.format(id="replica-1").encode()


async def test_standbys_keep_and_get_connections_when_one_address_takes_the_rest() -> None:
    liveness = LivenessServer(HERE, 0, "replica-1")
    await liveness.bind()
    serving = asyncio.create_task(liveness.run())
    writers = []

    async def line(address: str) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection(HERE, liveness.port, local_addr=(address, 0))
        writers.append(writer)
        async with asyncio.timeout(LIMIT_S):
            assert await reader.readline() == GREETED
        return reader

    standby = await line(THERE)
    greedy = [await line(HERE) for _ in range(2 * liveness_module.CONNECTIONS_MAX)]
    await line("127.0.0.3")
    assert not standby.at_eof()
    async with asyncio.timeout(LIMIT_S):
        with suppress(ConnectionResetError):
            assert await greedy[0].read() == b"", "the oldest of those with the most has gone"
    for writer in writers:
        writer.transport.abort()
    serving.cancel()
    await asyncio.wait([serving])


async def test_a_probe_is_answered_when_one_address_takes_all_connections_of_the_health_port() -> None:
    class Well:
        def not_alive(self) -> str:
            return ""

        not_ready = not_leading = not_alive

    port = HealthPort(HERE, 0, Well(), new_registry(), leads=True)
    await port.open()
    assert port._server is not None
    number = port._server.port
    idle = [(await asyncio.open_connection(HERE, number)) for _ in range(3 * health_port._CONNECTIONS_MAX)]
    reader, writer = await asyncio.open_connection(HERE, port._server.port, local_addr=(THERE, 0))
    writer.write(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n")
    assert (await answer_of(reader))[0] == 200
    assert (await answer_of(idle[-1][0]))[0] == 429
    for each in (*(held for _, held in idle), writer):
        each.transport.abort()
    await port.close()
