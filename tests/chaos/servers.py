"""The servers of a row: MongoDB, alone or three members, and RabbitMQ; each may be stopped, killed, wiped, started."""

import asyncio
import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import PyMongoError

from hascheduler.embedded.children import Child, free_port, start_child
from hascheduler.embedded.servers import RabbitMQ, find_mongod, start_rabbitmq
from hascheduler.mongo.connection import MAJORITY
from tests.chaos.hosts import Host, run
from tests.chaos.waiting import eventually

Client = AsyncMongoClient[dict[str, Any]]
Database = AsyncDatabase[dict[str, Any]]
ELECTION_TIMEOUT_MS = 2_000
_LIMIT_S = 60.0
OPLOG_MB = 256
_CONTROL = "/usr/lib/rabbitmq/bin/rabbitmqctl"
_SMALL_DISK = "size=700m"


@dataclass
class Member:
    """One mongod: where it listens, its data, and its process while there is one."""

    host: Host
    port: int
    home: Path
    child: Child | None = None

    @property
    def address(self) -> str:
        return f"{self.host.ip}:{self.port}"

    def client(self, **options: Any) -> Client:
        """To this one alone, whatever it is to the others."""
        return Client(self.host.ip, self.port, directConnection=True, **options)


@dataclass
class Mongods:
    """One replica set. ``oplog_mb`` is the size of its history; a small disk is a file system of its own, in memory."""

    folder: Path
    oplog_mb: int = OPLOG_MB
    small_disk: bool = False
    members: list[Member] = field(default_factory=list)

    async def start(self, hosts: Sequence[Host]) -> None:
        """A member on each host, configured, and one of them primary."""
        for number, host in enumerate(hosts):
            self.members.append(Member(host, free_port(), self.folder / f"mongod-{number}"))
        if self.small_disk:
            for member in self.members:
                member.home.mkdir(parents=True)
                await run("mount", "-t", "tmpfs", "-o", _SMALL_DISK, "tmpfs", str(member.home))
        await asyncio.gather(*(self.start_member(member) for member in self.members))
        described = [{"_id": number, "host": member.address} for number, member in enumerate(self.members)]
        settings = {"electionTimeoutMillis": ELECTION_TIMEOUT_MS, "heartbeatIntervalMillis": 500}
        async with self.members[0].client() as client:
            configuration = {"_id": "rs0", "members": described, "settings": settings}
            await client.admin.command({"replSetInitiate": configuration})
        await self.has_primary()

    async def start_member(self, member: Member) -> None:
        (member.home / "data").mkdir(parents=True, exist_ok=True)
        arguments = [
            *(*member.host.prefix, find_mongod(), "--dbpath", str(member.home / "data"), "--port", str(member.port)),
            *("--bind_ip", member.host.ip, "--nounixsocket", "--wiredTigerCacheSizeGB", "0.4", "--replSet", "rs0"),
            *("--oplogSize", str(self.oplog_mb), "--setParameter", "diagnosticDataCollectionEnabled=false"),
            # History is kept from the last checkpoint on, however small it is to be.
            *(("--syncdelay", "1") if self.oplog_mb < OPLOG_MB else ()),
        ]
        name = f"mongod {member.address}"
        child = await start_child(name, arguments, member.home / "mongod.log", environment=os.environ)
        member.child = child
        async with asyncio.timeout(_LIMIT_S):
            while child.running:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection(member.host.ip, member.port)
                    writer.close()
                    return
                await asyncio.sleep(0.05)
        raise AssertionError(child.last_lines())

    @property
    def uri(self) -> str:
        return f"mongodb://{','.join(member.address for member in self.members)}/?replicaSet=rs0"

    def client(self) -> Client:
        # The harness is busy at times, which is nobody's silence; and a member that falls silent is to be noticed.
        patience: dict[str, Any] = {
            "serverSelectionTimeoutMS": 20_000,
            "connectTimeoutMS": 8_000,
            "heartbeatFrequencyMS": 2_000,
        }
        return Client(self.uri, **patience)

    async def primary(self) -> Member | None:
        """The member that takes writes, as seen by each member itself; of two the one with the later term."""
        found: list[tuple[int, Member]] = []
        for member in self.members:
            with suppress(PyMongoError, TimeoutError):
                async with asyncio.timeout(1), member.client(serverSelectionTimeoutMS=500) as client:
                    hello = await client.admin.command("hello")
                    if hello["isWritablePrimary"]:
                        election: Any = hello["electionId"]
                        found.append((int(str(election), 16), member))
        return max(found, key=lambda pair: pair[0])[1] if found else None

    async def has_primary(self) -> Member:
        return await eventually(self.primary, "a primary")

    async def commits(self, members: Sequence[Member]) -> None:
        """Wait until one of them takes a write that a majority has; it may be primary for long before."""

        async def find() -> bool:
            for member in members:
                with suppress(PyMongoError, TimeoutError):
                    async with asyncio.timeout(2), member.client(serverSelectionTimeoutMS=500) as client:
                        if (await client.admin.command("hello"))["isWritablePrimary"]:
                            probe = client["chaos-probe"]["probe"].with_options(write_concern=MAJORITY)
                            await probe.insert_one({})
                            return True
            return False

        await eventually(find, "a majority takes a write")

    async def step_up(self, member: Member) -> None:
        """Make that one the primary; as often as it takes."""
        async with asyncio.timeout(_LIMIT_S):
            while await self.primary() is not member:
                with suppress(PyMongoError):
                    async with member.client() as client:
                        await client.admin.command("replSetStepUp")
                await asyncio.sleep(0.3)

    async def step_down(self) -> None:
        """The primary steps down at once, and not without a successor for long."""
        primary = await self.has_primary()
        with suppress(PyMongoError):
            async with primary.client() as client:
                await client.admin.command({"replSetStepDown": 5, "secondaryCatchUpPeriodSecs": 2, "force": True})

    async def kill(self, member: Member) -> None:
        assert member.child is not None
        await member.child.kill()

    def signal(self, member: Member, number: signal.Signals) -> None:
        assert member.child is not None
        member.child.signal(number)

    async def stop(self) -> None:
        # Nobody needs the data, and a primary that gets SIGTERM first looks for a successor.
        for member in self.members:
            if member.child is not None:
                member.child.signal(signal.SIGCONT)
                await member.child.kill()
            if self.small_disk:
                await run("umount", str(member.home))
        shutil.rmtree(self.folder, ignore_errors=True)


class Broker:
    """One RabbitMQ node that keeps its name, port and folder over restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._running: AsyncExitStack | None = None
        self._node: RabbitMQ | None = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self._port}/"

    @property
    def port(self) -> int:
        return self._port

    async def start(self) -> None:
        self._running = AsyncExitStack()
        self._node = await self._running.enter_async_context(start_rabbitmq(self._folder, port=self._port))

    async def stop(self) -> None:
        """In good order."""
        running, self._running = self._running, None
        if running is not None:
            self.signal(signal.SIGCONT)
            await running.aclose()

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await self.stop()

    def signal(self, number: signal.Signals) -> None:
        assert self._node is not None
        with suppress(ProcessLookupError):
            os.kill(self._node.pid, number)

    async def raise_alarm(self) -> None:
        """As if all memory were used: it takes no more messages."""
        await self._control("set_vm_memory_high_watermark", "0")

    async def clear_alarm(self) -> None:
        await self._control("set_vm_memory_high_watermark", "0.6")

    async def grant(self, user: str) -> str:
        """The URL for a user who may do everything."""
        with suppress(AssertionError):  # it is there from an earlier row
            await self._control("add_user", user, user)
        await self._control("set_permissions", user, ".*", ".*", ".*")
        return f"amqp://{user}:{user}@127.0.0.1:{self._port}/"

    async def revoke(self, user: str) -> None:
        """The user may do nothing any more; connections stay."""
        await self._control("clear_permissions", user)

    async def _control(self, *arguments: str) -> None:
        assert self._node is not None
        environment, owner = _lives_in(self._node.pid)
        command = [_CONTROL, "-n", environment["RABBITMQ_NODENAME"], *arguments]
        child = await start_child(
            "rabbitmqctl", command, self._folder / "log/control.log", environment=environment, user=owner
        )
        assert await child.wait() == 0, child.last_lines()

    def wipe(self) -> None:
        """Everything that it kept, while it is down."""
        shutil.rmtree(self._folder / "mnesia", ignore_errors=True)

    async def remove(self) -> None:
        await self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def _lives_in(pid: int) -> tuple[dict[str, str], str | None]:
    """The node's environment, by which it is found (its name, its port mapper, the cookie in its home), and its user,
    where we are not the same."""
    process = Path(f"/proc/{pid}")
    variables = (process / "environ").read_bytes().split(b"\0")
    environment = dict(each.decode().split("=", 1) for each in variables if b"=" in each)
    return environment, process.owner() if os.geteuid() == 0 else None
