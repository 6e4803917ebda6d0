"""A whole system on this machine: servers, replicas and processors, each a process of its own with a log file.

``HASCHEDULER_MONGODB_URI`` and ``HASCHEDULER_AMQP_URL`` name servers to use instead of embedded ones. If RabbitMQ is
not installed, everything runs on the ``mongo`` transport. Embedded servers keep their data in the system's temporary
folder, which the broker's own user can enter, and the stack removes the data when it ends; a plan may keep MongoDB's,
which are all that matter.
"""

import asyncio
import os
import shlex
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from rich.console import Group
from rich.table import Table
from rich.text import Text

from hascheduler.embedded.children import READY_S, Daemon, free_port, start_daemon
from hascheduler.embedded.servers import find_rabbitmq, start_mongod, start_rabbitmq
from hascheduler.errors import CallerError, StoreUnavailable

READY_MADE = (
    "hascheduler.handlers.log",
    "hascheduler.handlers.sleep",
    "hascheduler.handlers.webhook",
    "hascheduler.handlers.command",
)


@dataclass(frozen=True, slots=True)
class StackPlan:
    """The parts of a stack and their settings.

    If ``transport`` is None, RabbitMQ is used if it is installed, else MongoDB alone. Every process gets ``settings``;
    ``handlers`` are names of modules. A processor serves at most eight ``shards``. MongoDB keeps its data in ``data``.
    """

    folder: Path
    replicas: int = 3
    processors: int = 2
    slots: int = 8
    transport: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    handlers: Sequence[str] = READY_MADE
    shards: int = 1
    first_port: int = 8080
    data: Path | None = None


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers that the processes use; ``exports`` has the variables for others, but for those that are set."""

    mongodb_uri: str
    transport: str
    amqp_url: str
    exports: Mapping[str, str]


class Stack:
    """Owner of the processes, made and stopped by `open_stack`; callers may kill and restart single ones."""

    def __init__(self, plan: StackPlan, servers: Servers, environment: Mapping[str, str]) -> None:
        self._plan = plan
        self._environment = environment
        self.transport = servers.transport
        self.mongodb_uri = servers.mongodb_uri
        self.exports = servers.exports
        self.replicas: dict[str, Daemon] = {}
        self.processors: dict[str, Daemon] = {}
        self.urls: dict[str, str] = {}
        self._last_port = plan.first_port - 1

    @property
    def logs(self) -> Path:
        """Return the folder with the log of each process."""
        return self._plan.folder / "logs"

    def log_of(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    async def start_replica(self, name: str) -> None:
        """Start a replica, on its previous port if it ran before."""
        if name not in self.urls:
            self._last_port = _next_port(self._last_port)
            self.urls[name] = f"http://127.0.0.1:{self._last_port}"
        port = self.urls[name].rpartition(":")[2]
        self.replicas[name] = await self._start(
            name, ["serve"], self.urls[name], HASCHEDULER_REPLICA_ID=name, HASCHEDULER_HTTP_PORT=port
        )

    async def start_processor(self, name: str) -> None:
        arguments = ["processor", *self._plan.handlers, "--name", name, "--slots", str(self._plan.slots)]
        self.processors[name] = await self._start(name, arguments)

    async def processors_ready(self) -> None:
        """Wait until each processor is alive for at least one replica, since a replica may not follow every shard.

        Raise at once, with the last line of its log, if one has ended.
        """
        urls = [url for name, url in self.urls.items() if self.replicas[name].running]
        try:
            async with asyncio.timeout(READY_S), httpx2.AsyncClient() as http:
                while True:
                    for child in self.processors.values():
                        if not child.running:
                            raise CallerError(child.last_lines(1).removeprefix("hascheduler: "))
                    answers = await asyncio.gather(*(http.get(f"{url}/v1/processors") for url in urls))
                    items = [item for answer in answers for item in answer.json()["items"]]
                    if {item["name"] for item in items if item["alive"]} >= set(self.processors):
                        return
                    await asyncio.sleep(0.05)
        except (TimeoutError, httpx2.TransportError):
            logs = "\n".join(child.last_lines(2) for child in self.processors.values())
            raise StoreUnavailable(f"the processors are not ready; their logs end with:\n{logs}") from None

    async def ready(self, *names: str) -> None:
        """Wait until these replicas, or all, are ready; raise `StoreUnavailable` with the end of its log if not."""
        for name in names or self.replicas:
            await self.replicas[name].ready()

    async def stop(self) -> None:
        """Stop the processors, which give their attempts back, and then the replicas."""
        for children in (self.processors, self.replicas):
            await asyncio.gather(*(child.stop() for child in children.values()))

    async def _start(self, name: str, arguments: Sequence[str], url: str = "", **settings: str) -> Daemon:
        environment = {**self._environment, **settings}
        return await start_daemon(name, arguments, self.log_of(name), environment=environment, url=url)


@asynccontextmanager
async def open_stack(plan: StackPlan, say: Callable[[str], None]) -> AsyncIterator[Stack]:
    """Yield a running system in which every replica is ready; call ``say`` with each step of the start."""
    async with AsyncExitStack() as embedded:
        servers = await _servers(plan, embedded, say)
        environment = {
            # Shorter than the grace of `Child.stop`, so that a drain ends before it is cut off.
            "HASCHEDULER_DRAIN_GRACE": "5s",
            **os.environ,
            "HASCHEDULER_SHARDS": str(plan.shards),
            "HASCHEDULER_LOG_FORMAT": "json",
            **plan.settings,
            "HASCHEDULER_MONGODB_URI": servers.mongodb_uri,
            "HASCHEDULER_TRANSPORT": servers.transport,
            "HASCHEDULER_AMQP_URL": servers.amqp_url,
            # The stack uses plain HTTP on loopback, whatever the environment sets.
            "HASCHEDULER_AUTH": "none",
            "HASCHEDULER_HTTP_TLS_CERT_FILE": "",
            "HASCHEDULER_HTTP_TLS_KEY_FILE": "",
            "HASCHEDULER_HTTP_TLS_CLIENT_CA_FILE": "",
        }
        stack = Stack(plan, servers, environment)
        shards = f" of {plan.shards} shards" if plan.shards > 1 else ""
        processors = f" and processors ({plan.processors})" if plan.processors else ""
        say(f"starting replicas ({plan.replicas}){processors}{shards}")
        try:
            for number in range(1, plan.replicas + 1):
                await stack.start_replica(f"replica-{number}")
            starting = [f"processor-{number}" for number in range(1, plan.processors + 1)]
            if plan.shards > 1:
                # Processors need the layout, which a replica makes.
                await stack.ready()
            for name in starting:
                await stack.start_processor(name)
            await stack.ready()
            await stack.processors_ready()
            yield stack
        finally:
            await asyncio.shield(stack.stop())


async def _servers(plan: StackPlan, embedded: AsyncExitStack, say: Callable[[str], None]) -> Servers:
    """Return the servers that the environment names, or start embedded ones."""
    exports = {} if plan.shards == 1 else {"HASCHEDULER_SHARDS": str(plan.shards)}
    mongodb_uri = os.environ.get("HASCHEDULER_MONGODB_URI", "")
    if not mongodb_uri:
        say("starting MongoDB")
        mongodb_uri = exports["HASCHEDULER_MONGODB_URI"] = (
            await embedded.enter_async_context(start_mongod(plan.data))
        ).uri
    amqp_url = os.environ.get("HASCHEDULER_AMQP_URL", "")
    if plan.transport is None and not amqp_url and find_rabbitmq() is None:
        say("rabbitmq-server is not installed (apt-get install rabbitmq-server): running on the mongo transport")
    elif plan.transport != "mongo":
        if not amqp_url:
            say("starting RabbitMQ (this takes some seconds)")
            amqp_url = exports["HASCHEDULER_AMQP_URL"] = (await embedded.enter_async_context(start_rabbitmq())).url
        return Servers(mongodb_uri, "rabbitmq", amqp_url, exports)
    return Servers(mongodb_uri, "mongo", "", {**exports, "HASCHEDULER_TRANSPORT": "mongo"})


def _next_port(above: int) -> int:
    """Return the first free port of the hundred above that one; otherwise any free port."""
    for port in range(above + 1, above + 101):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    return free_port()


def list_stack(stack: Stack) -> Group:
    """Return a title, and a table of the processes with their pids and addresses."""
    title = f"hascheduler over {stack.transport}: /ui is the dashboard, /docs the API"
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("process", "pid", "where"):
        table.add_column(column, overflow="fold")
    for name, child in stack.replicas.items():
        table.add_row(name, str(child.pid), stack.urls[name])
    for name, child in stack.processors.items():
        table.add_row(name, str(child.pid), "")
    return Group(Text(title, style="italic"), table)  # a table wraps a title of its own at the width of its rows


def list_servers(stack: Stack) -> str:
    """Return the folder of the logs, and the lines that make another terminal use this system; none is wrapped."""
    exports = {"HASCHEDULER_URL": next(iter(stack.urls.values())), **stack.exports}
    lines = [f"export {name}={shlex.quote(value)}" for name, value in exports.items()]
    return "\n".join([f"logs: {stack.logs}/<process>.log", "In another terminal:", *lines])
