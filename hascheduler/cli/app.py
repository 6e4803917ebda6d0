"""``hascheduler``: the list of commands, and ``--version``."""

from typing import Annotated

import typer

from hascheduler import __version__
from hascheduler.cli.credentials import trust
from hascheduler.cli.on_demand import on_demand

_COMMANDS = {
    "serve": "hascheduler.cli.serve:serve",
    "processor": "hascheduler.cli.processor:processor",
    "dev": "hascheduler.cli.dev:dev",
    "demo": "hascheduler.cli.demo:demo",
    "cluster": "hascheduler.cli.cluster:cluster",
    "schedule": "hascheduler.cli.schedule:schedule",
    "job": "hascheduler.cli.job:job",
    "why": "hascheduler.cli.why:why",
    "events": "hascheduler.cli.events:events",
    "definition": "hascheduler.cli.definition:definition",
    "lane": "hascheduler.cli.lane:lane",
    "tenant": "hascheduler.cli.tenant:tenant",
    "token": "hascheduler.cli.token:token",
    "audit": "hascheduler.cli.audit_command:audit",
    "audit-log": "hascheduler.cli.audit:audit_log",
    "apply": "hascheduler.cli.apply:apply",
    "simulate": "hascheduler.cli.simulate:simulate",
    "record": "hascheduler.cli.record:record",
    "migrate": "hascheduler.cli.migrate:migrate",
    "bootstrap": "hascheduler.cli.bootstrap:bootstrap",
    "secrets": "hascheduler.cli.secrets:secrets",
}

# Plain help: in a table the names of environment variables would be cut off.
app = typer.Typer(cls=on_demand(_COMMANDS), no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hascheduler {__version__}")
        raise typer.Exit


@app.callback()
def hascheduler(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    ca_file: Annotated[
        str | None,
        typer.Option(
            "--ca-file",
            metavar="FILE",
            envvar="HASCHEDULER_CA_FILE",
            help="The authorities, in PEM, of replicas that speak HTTPS.",
        ),
    ] = None,
) -> None:
    """A highly available job scheduler on MongoDB and RabbitMQ.

    HASCHEDULER_TOKEN, or a file that HASCHEDULER_TOKEN_FILE names, holds the token for replicas that demand one.
    """
    trust(ca_file)
