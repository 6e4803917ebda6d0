"""The commands ``hascheduler serve``, ``processor MODULE…`` and ``demo``.

``serve`` is one replica, ``processor`` one processor. ``demo`` kills the leader of a whole system repeatedly, here or
in a cluster, and reports.
"""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
import uvloop

from hascheduler.cli import environment
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import argument, option
from hascheduler.cli.setting_options import with_settings
from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import parse_duration
from hascheduler.settings import Settings, read_settings

MODULE = "such as hascheduler.handlers.log; shop:mine if `handlers` has another name there"
SHARDS_SHOWN_MAX = 8
"""The number of shards that one processor serves at once."""


TransportOrNone = Annotated[
    Literal["rabbitmq", "mongo"] | None,
    option("--transport", "How jobs reach processors; default: RabbitMQ if it is installed"),
]
Folder = Annotated[Path, option("--folder DIR", "Directory for the processes' logs")]


def require_folder(folder: Path) -> None:
    """Raise `InvalidInput` if no logs can be written there: it is a file, or below one, or not writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = "is not a directory" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        raise InvalidInput(("--folder",), f"{folder} {problem}", "a directory; it is created if missing") from None


async def require_own_servers(transport: str | None) -> None:
    """Raise `InvalidInput` before any process starts if servers that the environment names can't be used."""
    from hascheduler import assembly

    if os.environ.get("HASCHEDULER_MONGODB_URI"):
        used = transport or ("rabbitmq" if os.environ.get("HASCHEDULER_AMQP_URL") else "mongo")
        await assembly.require_servers(read_settings(startup_patience_ms=0, transport=used))


_NAMESPACE = "hascheduler"
_KILLS = 3


@example("hascheduler demo", "hascheduler demo --shards 4", "hascheduler demo --kubernetes --kills 6")
def demo(
    *,
    keep: Annotated[bool, option("--keep", "Keep everything running after the report, until Ctrl-C")] = False,
    transport: TransportOrNone = None,
    shards: Annotated[
        int | None, option("--shards N", "How many shards [1]", min=1, max=SHARDS_SHOWN_MAX, show_default=False)
    ] = None,
    folder: Folder = Path(".run/demo"),
    pause: Annotated[str, option("--pause SPAN", "How long to wait between two kills")] = "5s",
    kubernetes: Annotated[
        bool, option("--kubernetes", "Run in a Kubernetes cluster with hascheduler, not on this machine")
    ] = False,
    context: Annotated[str | None, option("--context NAME", "Context of kubectl; default: the current one")] = None,
    namespace: Annotated[
        str | None,
        option("--namespace NAME", f"Namespace of hascheduler in the cluster [{_NAMESPACE}]", show_default=False),
    ] = None,
    kills: Annotated[
        int | None, option("--kills N", "How often to kill the leader's pod [3]", min=1, max=100, show_default=False)
    ] = None,
) -> None:
    """Run a whole system, kill its leader repeatedly and a processor once, and report what happened.

    On this machine it starts three replicas and two processors, and takes about a minute. With --shards 4 the
    schedules are spread over four shards, each with its own leader, and the replica that leads most of them is killed:
    the report shows that the other shards are not affected. With --kubernetes it uses the running deployment: the
    leader's pod, found by its lease, is killed from inside, deleted, and deleted by force, in turn. The demo's
    schedules have their own names and are deleted at the end.

    The exit status is 1 if a nominal time was missed or an effect was doubled, and 3 if that is not known yet because
    jobs are late and have not run.
    """
    from rich.console import Console

    from hascheduler.demo.run import OpenEnvironment, run_demo
    from hascheduler.embedded.children import run_in_foreground

    pause_ms = parse_duration(pause)
    of_a_cluster = {"--context": context, "--namespace": namespace, "--kills": kills}
    of_this_machine = {"--keep": keep or None, "--transport": transport, "--shards": shards}
    for flag, value in (of_this_machine if kubernetes else of_a_cluster).items():
        if value is not None and kubernetes:
            raise InvalidInput((flag,), "applies only to a system on this machine", "no --kubernetes with it")
        if value is not None:
            raise InvalidInput((flag,), "applies only to a cluster", "--kubernetes with it")
    opening: OpenEnvironment
    if kubernetes:
        from hascheduler.demo.kubernetes import Kubectl, open_kubernetes_environment

        kubectl = Kubectl(context, namespace or _NAMESPACE)
        token = environment.access("the pods").token()  # not that of a context, which is for its own URLs
        opening = partial(
            open_kubernetes_environment, kubectl=kubectl, folder=folder, kills=kills or _KILLS, token=token
        )
    else:
        from hascheduler.demo.local import open_local_environment

        opening = partial(open_local_environment, folder, transport, shards or 1)
    require_folder(folder)
    console = Console(highlight=False)

    async def checked_demo() -> int:
        if not kubernetes:
            await require_own_servers(transport)
        return await run_demo(console, opening, keep=keep, pause_s=pause_ms / 1_000)

    raise typer.Exit(run_in_foreground(checked_demo()))


@with_settings
def serve(*, settings: Settings) -> None:
    """Run one replica: the scheduler's loops and the HTTP API. On SIGTERM it hands over leadership and stops."""
    from hascheduler import assembly  # imports every driver, so only if the command runs

    uvloop.run(assembly.serve(settings))


_OF_PROCESSORS = (
    "slots", "resources", "mongodb_uri", "database", "transport", "transport_fallback", "amqp_url", "shard",
    "shards", "shard_mongodb_uris", "drain_grace_ms", "health_host", "health_port", "liveness_host", "liveness_port",
    "advertise_host",
    "heartbeat_interval_ms", "heartbeat_timeout_ms", "startup_patience_ms", "job_retention_ms",
    "mongodb_tls_ca_file", "mongodb_tls_cert_file", "amqp_tls_ca_file", "amqp_tls_cert_file", "amqp_tls_key_file",
    "replica_id", "development_secrets", "tracing", "log_format", "log_level",
)  # fmt: skip
"""The settings that `assembly.work` reads."""


@partial(with_settings, first=_OF_PROCESSORS)
def processor(
    modules: Annotated[list[str], argument("MODULE...", f"Modules with handlers, {MODULE}")],
    name: Annotated[str, option("--name", "Name of the processor; default: the host name")] = "",
    *,
    settings: Settings,
) -> None:
    """Run one processor with the handlers of the given modules. On SIGTERM it drains."""
    from hascheduler import assembly  # imports every driver, so only if the command runs
    from hascheduler.processor import load_handlers
    from hascheduler.processor.handler_loop import HandlerLoop

    # Modules of the user are found in the current directory, as with `python -m`.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    with HandlerLoop(uvloop.new_event_loop) as handler_loop:
        # Handlers use what their modules bind to the running loop during import, such as a session.
        handlers = handler_loop.before_start(lambda: load_handlers(modules))
        uvloop.run(assembly.work(settings, handlers, handler_loop, name or settings.replica_id))
