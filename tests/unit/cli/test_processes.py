"""What the commands that run processes make of their options and settings, and how a process ends."""

import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hascheduler.assembly_api import ProcessServices, services_of
from hascheduler.model.processor import NAME_BYTES_MAX, id_in_shard, require_name
from hascheduler.rabbitmq.connection import ROUTING_KEY_BYTES_MAX, bundle_key, queue_name
from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.tracing import NO_TRACING
from tests.unit.cli.invoking import invoke
from tests.unit.cli.test_settings import read
from tests.unit.daemon.doubles import HandClock

# A processor: its help and its name


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


# What the services of several shards of one process share


class AnyDatabase:
    """It has every collection, and is asked for nothing."""

    def __getitem__(self, collection: str) -> "AnyDatabase":
        return self

    def with_options(self, **options: Any) -> "AnyDatabase":
        return self


class ReplicaOfShard:
    def __init__(self) -> None:
        self.events: Any = object()
        self.view: Any = SimpleNamespace(ready=True)
        self.listeners: list[Any] = []

    def on_job_arrival(self, listener: Any) -> None:
        self.listeners.append(listener)


def test_shards_of_one_process_share_who_may_ask_and_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, database = read(monkeypatch), cast("Any", AnyDatabase())
    process = ProcessServices.of(settings, database, HandClock(), tracer=NO_TRACING, metrics=HttpMetrics())
    replicas: Any = [ReplicaOfShard(), ReplicaOfShard()]
    home, other = (
        services_of(settings, process, name, database, replica, count=2)
        for name, replica in zip(("default", "0001"), replicas, strict=True)
    )
    for shared in "limits logins auth tokens audit audit_writer schedule_limits metrics new_id".split():  # noqa: SIM905
        assert getattr(home, shared) == getattr(other, shared), shared
    for own in ("view", "events", "admission", "jobs", "schedules", "work", "registrations", "load"):
        assert getattr(home, own) is not getattr(other, own), own
    assert (home.view, other.view) == (replicas[0].view, replicas[1].view)
    assert (home.work_terms.scheduler, other.work_terms.scheduler) == ("default", "0001")
    assert [len(replica.listeners) for replica in replicas] == [1, 1], "each counts its own arrivals"


# A process that was asked to end ends, whatever it waits for

WAITS_FOR = {
    "a loop that is blocked": """
def stop():
    print("blocked", flush=True)
    time.sleep(600)

async def block():
    asyncio.current_task().set_name("the culprit")
    with on_signal(stop, 0.2):
        print("ready", flush=True)
        await asyncio.sleep(600)
""",
    "a thread, when all else has ended": """
async def block():
    stopping = asyncio.Event()
    threading.Thread(target=time.sleep, args=(600,), name="the culprit").start()
    with on_signal(stopping.set, 0.2):
        print("ready", flush=True)
        await stopping.wait()
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", WAITS_FOR)
def test_a_process_ends_at_the_limit_of_its_stop_and_says_what_it_waited_for(what: str) -> None:
    begin = "import asyncio, threading, time\nfrom hascheduler.lifecycle import on_signal\n"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{begin}{WAITS_FOR[what]}\nasyncio.run(block())"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    [overran] = [line for line in said.splitlines() if "stop_timed_out" in line]
    assert "the culprit" in overran
