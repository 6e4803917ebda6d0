"""What the commands that run processes make of their options and of a silent home, and how a process ends."""

import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError

from hascheduler.assembly_api import ProcessServices, services_of
from hascheduler.assembly_processor import ProcessorParts
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.lifecycle import database_ready
from hascheduler.model.processor import NAME_BYTES_MAX, ProcessorRef, id_in_shard, require_name
from hascheduler.mongo.work.store import MongoWorkStore
from hascheduler.rabbitmq.connection import ROUTING_KEY_BYTES_MAX, bundle_key, queue_name
from hascheduler.shards.layout import Layout, encode_layout
from hascheduler.telemetry.health import Vitals
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
    ended = invoke("processor", "hascheduler.handlers.log", "--name", name)
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
    process = ProcessServices.of(settings, database, HandClock(), NO_TRACING, HttpMetrics(), health=Vitals())
    replicas: Any = [ReplicaOfShard(), ReplicaOfShard()]
    home, other = (
        services_of(settings, process, name, database, replica, count=2)
        for name, replica in zip(("default", "0001"), replicas, strict=True)
    )
    for shared in "limits logins auth tokens audit audit_writer schedule_limits metrics new_id".split():  # noqa: SIM905
        assert getattr(home, shared) == getattr(other, shared), shared
    for own in ("view", "events", "admission", "jobs", "schedules", "work", "registrations", "recent"):
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


# A processor whose home does not say how many shards there are

TWO = encode_layout(Layout.even(["default", "0001"]))


class Home:
    """A database whose reads of the layout end as they are told to, one after the other; then there is none."""

    name = "x"

    def __init__(self, *answers: PyMongoError | dict[str, Any]) -> None:
        self._answers = list(answers)

    def __getitem__(self, collection: str) -> "Home":
        return self

    def with_options(self, **options: Any) -> "Home":
        return self

    async def find_one(self, *query: Any) -> dict[str, Any] | None:
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, PyMongoError):
            raise answer
        return answer


def parts(home: Home, shards: int = 1) -> ProcessorParts:
    settings: Any = SimpleNamespace(shards=shards, database="x", shard="default")
    other: Any = None
    return ProcessorParts(settings, [home], *[other] * 7)  # type: ignore[list-item]


@pytest.mark.parametrize("error", [AutoReconnect("gone"), OperationFailure("not authorized", 13)])
@pytest.mark.parametrize("shards", [1, 2])
async def test_one_failed_read_of_the_layout_makes_no_processor_that_of_a_single_shard(
    error: PyMongoError, shards: int
) -> None:
    with pytest.raises(StoreUnavailable, match="read the layout"):
        await parts(Home(error), shards).layout()


async def test_a_processor_reads_again_until_the_home_says_that_there_are_several() -> None:
    asked = parts(Home(AutoReconnect("gone"), AutoReconnect("gone"), TWO))

    async def read() -> None:
        await asked.layout()

    with pytest.raises(InvalidInput, match=r"HASCHEDULER_SHARDS: 1, but the deployment .* has 2"):
        await database_ready(read, patience_ms=60_000)


async def test_only_a_home_without_a_layout_is_the_only_shard() -> None:
    assert await parts(Home()).layout() is None


async def test_a_processor_registers_in_no_database_that_was_not_compared() -> None:
    """That of a shard in another MongoDB which did not answer at its start."""
    tries: list[str] = []

    async def compare() -> None:
        tries.append("compared")
        if len(tries) < 2:
            raise StoreUnavailable("the database 'x' there is another one")

    class Registrations(Home):
        async def update_one(self, *update: Any, **options: Any) -> None:
            tries.append("registered")

    processor = ProcessorRef("p.1", "p", "0001", frozenset(), 1, beat=1, draining=False, parked=0)
    store = MongoWorkStore(Registrations(), 1_000, compare)  # type: ignore[arg-type]
    with pytest.raises(StoreUnavailable, match="another one"):
        await store.register(processor)
    await store.register(processor)
    assert tries == ["compared", "compared", "registered"]
