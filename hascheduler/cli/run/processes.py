"""``hascheduler serve``: one replica. ``hascheduler processor MODULE…``: one processor."""

import os
import sys
from functools import partial
from typing import Annotated

import typer
import uvloop

from hascheduler.cli.output.logs import configure_logging
from hascheduler.cli.run.early_sigterm import exit_on_sigterm
from hascheduler.cli.setting_options import with_settings
from hascheduler.settings import Settings


@with_settings
def serve(*, settings: Settings) -> None:
    """Run one replica: the scheduler's loops and the HTTP API. SIGTERM hands over and ends it in good order."""
    exit_on_sigterm()
    from hascheduler import assembly  # every driver there is: only when it runs

    configure_logging(settings)
    uvloop.run(assembly.serve(settings))


_OF_PROCESSORS = (
    "slots", "resources", "mongodb_uri", "database", "transport", "transport_fallback", "amqp_url", "shard",
    "shards", "shard_mongodb_uris", "drain_grace_ms", "health_host", "health_port", "liveness_host", "liveness_port",
    "advertise_host",
    "heartbeat_interval_ms", "heartbeat_timeout_ms", "startup_patience_ms", "job_retention_ms",
    "mongodb_tls_ca_file", "mongodb_tls_cert_file", "amqp_tls_ca_file", "amqp_tls_cert_file", "amqp_tls_key_file",
    "replica_id", "development_secrets", "tracing", "log_format", "log_level",
)  # fmt: skip
"""What `assembly.work` reads."""


@partial(with_settings, first=_OF_PROCESSORS)
def processor(
    modules: Annotated[
        list[str], typer.Argument(metavar="MODULE...", help="Modules with handlers, such as processors.log")
    ],
    name: Annotated[str, typer.Option(help="Its name, for people; default: the host's name")] = "",
    *,
    settings: Settings,
) -> None:
    """Run one processor with the handlers of the given modules. SIGTERM drains it."""
    exit_on_sigterm()
    from hascheduler import assembly  # every driver there is: only when it runs
    from hascheduler.processor import load_handlers
    from hascheduler.processor.handler_loop import HandlerLoop

    # Modules of the user are found where the command is run, as with `python -m`.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    configure_logging(settings)
    with HandlerLoop(uvloop.new_event_loop) as handler_loop:
        # What the modules bind to the running loop while they are imported, such as a session, their handlers use.
        handlers = handler_loop.before_start(lambda: load_handlers(modules))
        uvloop.run(assembly.work(settings, handlers, handler_loop, name or settings.replica_id))
