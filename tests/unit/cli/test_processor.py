"""``hascheduler processor``: its help, its name, and its resources."""

import asyncio
import re
from pathlib import Path

import pytest

from hascheduler.cli.run.whole_system import _OF_PROCESSORS
from hascheduler.model.processor import NAME_BYTES_MAX, id_in_shard, require_name
from hascheduler.model.resources import parse_resources
from hascheduler.processor import Handlers, Processor, ProcessorConfig
from hascheduler.rabbitmq.connection import ROUTING_KEY_BYTES_MAX, bundle_key, queue_name
from hascheduler.settings import Settings
from tests.unit.cli.invoking import invoke
from tests.unit.processor.world import HandClock, World, until

_ROOT = Path(__file__).parents[3]


def test_the_settings_of_a_processor_stand_first() -> None:
    shown = invoke("processor", "--help").out
    settings = re.findall(r"^  --(?:no-)?([a-z-]+)", shown, re.MULTILINE)
    assert settings[:3] == ["name", "slots", "resources"]
    assert settings.index("log-level") < settings.index("http-host") < settings.index("lease-duration")
    assert len(settings) == len(set(settings)) == len(Settings.model_fields) + 2  # and --name and --help
    assert f"the first {len(_OF_PROCESSORS)};" in " ".join(shown.split())


def test_what_a_processor_reads_stands_among_them() -> None:
    source = (_ROOT / "hascheduler/assembly.py").read_text()
    [work] = re.findall(r"^async def work\(.*?(?=^(?:async )?def )", source, re.MULTILINE | re.DOTALL)
    parts = (_ROOT / "hascheduler/assembly_processor.py").read_text()
    read = set(re.findall(r"(?<!hascheduler\.)settings\.([a-z_]+)", work + parts))
    assert "shards" in read
    assert read <= set(_OF_PROCESSORS)


LONGEST = "é" * (NAME_BYTES_MAX // 2)


@pytest.mark.parametrize(
    "name",
    ["n" * 300, f"{LONGEST}n", "a\nb", "a\x00b", "a\udcffb", "\u202ea", "http:mine"],
    ids=lambda name: ascii(name)[:20],
)
def test_a_processor_whose_queue_could_not_have_that_name_does_not_start(name: str) -> None:
    ended = invoke("processor", "processors.log", "--name", name)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert f"at most {NAME_BYTES_MAX} bytes" in ended.err


@pytest.mark.parametrize("name", [LONGEST, "a b/c@d", "host-1.example.org", "é"])
def test_every_other_name_leaves_room_for_its_queue_and_its_keys(name: str) -> None:
    require_name(name)
    id = id_in_shard(f"{name}.01234567", 63)
    assert max(len(text.encode()) for text in (queue_name(id), bundle_key(id))) <= ROUTING_KEY_BYTES_MAX


async def test_a_processor_registers_its_resources() -> None:
    world, resources = World(), parse_resources("gpu=1,cpu=8")
    config = ProcessorConfig(id="p.1", name="p", scheduler="default", slots=4, heartbeat_interval_ms=20,
                             heartbeat_deadline_ms=400, drain_grace_ms=0, resources=resources)  # fmt: skip
    running = asyncio.create_task(Processor(Handlers(), world, world, HandClock(), config).run())
    await until(lambda: world.registered is not None)
    assert world.registered is not None
    assert world.registered.resources == (("cpu", 8), ("gpu", 1))
    running.cancel()
    await asyncio.wait({running})
