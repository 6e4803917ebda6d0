"""A container's probes, with the timings that the spec gives them."""

import asyncio
from collections.abc import Callable, Mapping

from tests.manifests.objects import Object
from tests.system.local_pods.container import Container

Ports = Mapping[str, int]


async def succeeds_in_time(probe: Object, container: Container, ports: Ports) -> bool:
    """The first success, or as many failures as the threshold says."""
    await asyncio.sleep(probe.get("initialDelaySeconds", 0))
    for _ in range(probe.get("failureThreshold", 3)):
        if await _succeeds(probe, container, ports):
            return True
        await _pause(probe)
    return False


async def fails(probe: Object, container: Container, ports: Ports) -> None:
    """Returns when it has failed so many times in a row that something has to be done."""
    await asyncio.sleep(probe.get("initialDelaySeconds", 0))
    failures = 0
    while failures < probe.get("failureThreshold", 3):
        await _pause(probe)
        failures = 0 if await _succeeds(probe, container, ports) else failures + 1


async def tell(probe: Object, container: Container, ports: Ports, told: Callable[[bool], None]) -> None:
    """For as long as it runs, ``told`` hears what is known."""
    while True:
        if await succeeds_in_time({**probe, "failureThreshold": 1}, container, ports):
            told(True)
            await fails(probe, container, ports)
            told(False)
        await _pause(probe)


async def _pause(probe: Object) -> None:
    await asyncio.sleep(probe.get("periodSeconds", 10))


async def _succeeds(probe: Object, container: Container, ports: Ports) -> bool:
    limit_s = probe.get("timeoutSeconds", 1)
    ip = container.around.link.ip
    try:
        match probe:
            case {"exec": {"command": command}}:
                return (await container.execute(command, limit_s))[0] == 0
            case {"tcpSocket": {"port": port}}:
                async with asyncio.timeout(limit_s):
                    _, writer = await asyncio.open_connection(ip, number_of(port, ports))
                writer.close()
                return True
            case {"httpGet": {"port": port, "path": path}}:
                async with asyncio.timeout(limit_s):
                    return 200 <= await _status(ip, number_of(port, ports), path) < 400
    except (OSError, TimeoutError):
        return False
    raise AssertionError(f"a probe that this kubelet does not know: {probe}")


def number_of(port: int | str, ports: Ports) -> int:
    return ports[port] if isinstance(port, str) else port


async def _status(ip: str, port: int, path: str) -> int:
    reader, writer = await asyncio.open_connection(ip, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {ip}\r\nConnection: close\r\n\r\n".encode())
        line = await reader.readline()
        return int(line.split()[1]) if line else 0
    finally:
        writer.close()
