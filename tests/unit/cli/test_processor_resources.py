"""The resources that a processor is given are those that it registers, and those that tables show."""

import asyncio

from hascheduler.model.resources import parse_resources
from hascheduler.processor import Handlers, Processor, ProcessorConfig
from tests.unit.cli.invoking import Replica
from tests.unit.processor.world import HandClock, World, until


async def test_a_processor_registers_its_resources() -> None:
    world = World()
    config = ProcessorConfig(
        id="p.1",
        name="p",
        shard="default",
        slots=4,
        heartbeat_interval_ms=20,
        heartbeat_deadline_ms=400,
        drain_grace_ms=0,
        resources=parse_resources("gpu=1,cpu=8"),
    )
    running = asyncio.create_task(Processor(Handlers(), world, world, HandClock(), config).run())
    await until(lambda: world.registered is not None)
    assert world.registered is not None
    assert world.registered.resources == (("cpu", 8), ("gpu", 1))
    running.cancel()
    await asyncio.wait({running})


async def test_the_cluster_shows_them(replica: Replica) -> None:
    assert "cpu=8" in (await replica.done("cluster", COLUMNS="120")).out
