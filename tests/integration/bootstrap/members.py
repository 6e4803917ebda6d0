"""Members of a replica set as a cluster starts them: with a key and authentication, without knowledge of each other."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from hascheduler.bootstrap import DatabasePlan, bootstrap_mongodb
from hascheduler.embedded.children import Child, free_port, start_child
from hascheduler.embedded.servers import find_mongod, greets

KEY = "OneKeyForAllOfThem"
PASSWORDS = {"scheduler": "scheduler's", "processor": "processor's", "admin": "a@dmin:/?#%"}
LIMIT_S = 60.0

Client = AsyncMongoClient[dict[str, Any]]


@dataclass
class Members:
    """Servers of one test, each by its address; `stop` ends what is left."""

    folder: Path
    running: dict[str, Child] = field(default_factory=dict)

    def address(self) -> str:
        return f"127.0.0.1:{free_port()}"

    async def start(self, address: str, *, key: str = KEY, replica_set: str | None = "rs0") -> str:
        home = self._home(address)
        (home / "data").mkdir(parents=True, exist_ok=True)
        keyfile = home / "keyfile"
        keyfile.unlink(missing_ok=True)
        keyfile.write_text(key + "\n")
        keyfile.chmod(0o400)
        port = address.rpartition(":")[2]
        arguments = [
            *(find_mongod(), "--dbpath", str(home / "data"), "--port", port, "--bind_ip", "127.0.0.1"),
            *("--keyFile", str(keyfile), "--nounixsocket", "--wiredTigerCacheSizeGB", "0.25"),
            *("--setParameter", "diagnosticDataCollectionEnabled=false", "--oplogSize", "16"),
            # On SIGTERM a member hands over, then serves for as long as this in all: by default 15 s.
            *("--setParameter", "shutdownTimeoutMillisForSignaledShutdown=1000"),
            *(("--replSet", replica_set) if replica_set else ()),
        ]
        child = await start_child(f"mongod {port}", arguments, home / "mongod.log", environment=os.environ)
        self.running[address] = child
        await child.until(lambda: greets(int(port)), LIMIT_S)
        return address

    async def stop(self, address: str) -> None:
        await self.running.pop(address).stop()

    async def lose_disk(self, address: str) -> None:
        await self.stop(address)
        shutil.rmtree(self._home(address))

    async def stop_all(self) -> None:
        # A primary that gets SIGTERM first looks for a successor; here none is needed.
        await asyncio.gather(*(child.stop(grace_s=0) for child in self.running.values()))

    def _home(self, address: str) -> Path:
        return self.folder / address.replace(":", "-")


def plan_for(
    *members: str, key: str = KEY, passwords: Mapping[str, str] = PASSWORDS, timeout_s: float = LIMIT_S
) -> DatabasePlan:
    return DatabasePlan(
        members=sorted(members),
        replica_set="rs0",
        databases=["hascheduler"],
        key=key,
        passwords=passwords,
        timeout_ms=int(timeout_s * 1_000),
    )


async def bootstrapped(*members: str, **options: Any) -> None:
    await bootstrap_mongodb(plan_for(*members, **options))


def as_user(*members: str, user: str, password: str, database: str = "hascheduler") -> Client:
    return Client(
        list(members), username=user, password=password, authSource=database, replicaSet="rs0",
        serverSelectionTimeoutMS=20_000,
    )  # fmt: skip


def as_admin(*members: str, password: str = PASSWORDS["admin"]) -> Client:
    return as_user(*members, user="admin", password=password, database="admin")


async def configuration(*members: str) -> Mapping[str, Any]:
    async with as_admin(*members) as client:
        answer: Mapping[str, Any] = (await client.admin.command("replSetGetConfig"))["config"]
        return answer


async def _status(*members: str) -> Mapping[str, Any]:
    async with as_admin(*members) as client:
        answer: Mapping[str, Any] = await client.admin.command("replSetGetStatus")
        return answer


async def all_in_step(*members: str) -> None:
    """Wait until one of the set is primary, all others are secondaries, and all of them vote."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            with suppress(PyMongoError):
                status = await _status(*members)
                found = sorted(member["stateStr"] for member in status["members"])
                if (found, status["votingMembersCount"]) == (
                    ["PRIMARY", *["SECONDARY"] * (len(members) - 1)],
                    len(members),
                ):
                    return
            await asyncio.sleep(0.1)
