"""The command ``hascheduler``: its subcommands, and the options that come before them."""

import logging
import os
import sys
from typing import Annotated

import typer

from hascheduler import __version__
from hascheduler.cli.commands import COMMANDS
from hascheduler.cli.environment import require_known_variables, set_options
from hascheduler.cli.lazy_groups import lazy_group
from hascheduler.cli.options import InContext, option
from hascheduler.cli.output.instants import Utc, set_utc

# Plain help: in a table the names of environment variables would be cut off.
app = typer.Typer(cls=lazy_group(COMMANDS), no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hascheduler {__version__}")
        raise typer.Exit


@app.callback()
def hascheduler(
    version: Annotated[
        bool, option("--version", "Show the version and exit", callback=_show_version, is_eager=True)
    ] = False,
    ca_file: Annotated[
        str | None,
        option("--ca-file FILE", "PEM authorities to verify replicas over HTTPS [env var: HASCHEDULER_CA_FILE]"),
    ] = None,
    context: InContext = None,
    utc: Utc = False,
) -> None:
    """A highly available job scheduler on MongoDB and RabbitMQ.

    HASCHEDULER_TOKEN, or the file named by HASCHEDULER_TOKEN_FILE, holds the token if replicas require one.
    """
    require_known_variables(os.environ)
    log = logging.getLogger("hascheduler.client")
    log.propagate, log.handlers = False, [_OnStandardError()]
    set_options(ca_file, context)
    set_utc(utc)


class _OnStandardError(logging.Handler):
    """Prints the warnings of a replica, one line each on standard error, apart from the answer."""

    def emit(self, record: logging.LogRecord) -> None:
        from hascheduler.cli.output.printable import one_printable_line

        sys.stderr.write(f"warning: {one_printable_line(record.getMessage())}\n")


def version(
    verbose: Annotated[
        bool, option("--verbose", "Also show Python, time-zone data, path, and whether the core is compiled")
    ] = False,
) -> None:
    """Show the version and whether the core runs compiled.

    Both forms of the core make the same decisions; the compiled one uses about half the CPU.
    """
    typer.echo(f"hascheduler {__version__}")
    if not verbose:
        return
    import platform
    from pathlib import Path

    from hascheduler.compiled import compiled_rooms, is_stale
    from hascheduler.model.values.zone_data import ZONE_DATA_VERSION

    rooms = ", ".join(compiled_rooms())
    typer.echo(f"Python {platform.python_version()} on {platform.machine()}")
    typer.echo(f"time-zone data: {ZONE_DATA_VERSION}")
    typer.echo(f"core: compiled ({rooms})" if rooms else "core: pure Python")
    if is_stale():
        typer.echo("warning: sources were edited after compiling and have no effect; compile again", err=True)
    typer.echo(f"from {Path(__file__).parents[1]}")
