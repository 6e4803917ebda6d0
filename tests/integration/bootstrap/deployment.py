"""A deployment as a person makes it with our commands alone: secrets, a server of each kind, bootstrap."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from yarl import URL

from hascheduler.embedded.children import free_port
from hascheduler.embedded.servers import start_rabbitmq
from tests.integration.bootstrap.members import Members
from tests.manifests.making import make_secrets

SCHEDULER = "hascheduler-scheduler"
PROCESSOR = "hascheduler-processor"


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    out: str
    err: str


async def hascheduler(*arguments: str, **variables: str) -> Ended:
    """The command in a process of its own, as a container has it; only ``variables`` of ours are set."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HASCHEDULER_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hascheduler", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**clean, **variables},
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def done(*arguments: str, **variables: str) -> Ended:
    ended = await hascheduler(*arguments, **variables)
    assert ended.status == 0, ended.err
    return ended


@dataclass(frozen=True, slots=True)
class Deployment:
    secrets: Path
    member: str

    def read(self, secret: str, name: str) -> str:
        return (self.secrets / secret / name).read_text()

    def settings(self, secret: str) -> dict[str, str]:
        return {
            "HASCHEDULER_MONGODB_URI": self.read(secret, "mongodb-uri"),
            "HASCHEDULER_AMQP_URL": self.read(secret, "amqp-url"),
        }

    @property
    def admin_uri(self) -> str:
        password = self.read("hascheduler-mongodb", "admin-password")
        return f"mongodb://admin:{password}@{self.member}/?replicaSet=rs0"

    def bootstrap_arguments(self) -> list[str]:
        of_mongodb = self.secrets / "hascheduler-mongodb"
        return [
            *("bootstrap", "mongodb", "--members", self.member, "--keyfile", str(of_mongodb / "keyfile")),
            *("--users-from", str(of_mongodb)),
        ]


@asynccontextmanager
async def deployed(folder: Path) -> AsyncIterator[Deployment]:
    """Both servers with the secrets that `k8s/make-secrets` has written, MongoDB's users there."""
    members = Members(folder)
    deployment = Deployment(folder / "secrets", members.address())
    # The broker's port is in the secrets, so it has to be known before there is a broker.
    port = free_port()
    make_secrets(deployment.secrets, TLS="no", MEMBERS=deployment.member, BROKER=f"127.0.0.1:{port}")
    definitions = deployment.read("hascheduler-rabbitmq", "definitions.json")
    try:
        await members.start(deployment.member, key=deployment.read("hascheduler-mongodb", "keyfile"))
        await done(*deployment.bootstrap_arguments())
        async with start_rabbitmq(definitions=definitions, port=port) as broker:
            assert URL(broker.url).port == port
            yield deployment
    finally:
        await members.stop_all()
