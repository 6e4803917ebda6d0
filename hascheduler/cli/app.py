"""``hascheduler``: the list of commands, and ``--version``."""

from typing import Annotated

import typer

from hascheduler import __version__
from hascheduler.cli.credentials import set_ca_file
from hascheduler.cli.lazy_groups import lazy_group

_COMMANDS = {
    "serve": "hascheduler.cli.run.processes:serve",
    "processor": "hascheduler.cli.run.processes:processor",
    "dev": "hascheduler.cli.run.dev:dev",
    "demo": "hascheduler.cli.run.demo:demo",
    "cluster": "hascheduler.cli.cluster:cluster",
    "schedule": "hascheduler.cli.schedules:schedule",
    "job": "hascheduler.cli.job:job",
    "why": "hascheduler.cli.jobs.why:why",
    "events": "hascheduler.cli.jobs.events:events",
    "definition": "hascheduler.cli.definition:definition",
    "lane": "hascheduler.cli.lane:lane",
    "tenant": "hascheduler.cli.tenant:tenant",
    "token": "hascheduler.cli.token:token",
    "audit": "hascheduler.cli.setup.check:audit",
    "audit-log": "hascheduler.cli.audit_log:audit_log",
    "apply": "hascheduler.cli.resources.apply:apply",
    "simulate": "hascheduler.cli.simulate.command:simulate",
    "record": "hascheduler.cli.simulate.record:record",
    "migrate": "hascheduler.cli.setup.migrate:migrate",
    "bootstrap": "hascheduler.cli.bootstrap:bootstrap",
    "secrets": "hascheduler.cli.setup.secrets:secrets",
}

# Plain help: in a table the names of environment variables would be cut off.
app = typer.Typer(
    cls=lazy_group(_COMMANDS), no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


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
    set_ca_file(ca_file)
