"""``hascheduler``: the list of commands, and ``--version``."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from hascheduler import __version__

_COMMANDS = {
    "serve": "hascheduler.cli.serve",
    "processor": "hascheduler.cli.processor",
    "dev": "hascheduler.cli.dev",
    "demo": "hascheduler.cli.demo",
    "cluster": "hascheduler.cli.cluster",
}
"""Each command is the function of that name in its module."""


class _OnDemand(TyperGroup):
    """Loads a command's module when it is asked for: what one needs must not slow the others down."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name)(getattr(import_module(_COMMANDS[cmd_name]), cmd_name))
        return get_command(alone)


# Plain help: in a table the names of environment variables would be cut off.
app = typer.Typer(cls=_OnDemand, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hascheduler {__version__}")
        raise typer.Exit


@app.callback()
def hascheduler(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A highly available job scheduler on MongoDB and RabbitMQ."""
