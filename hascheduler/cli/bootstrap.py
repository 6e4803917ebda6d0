"""``hascheduler bootstrap``: makes the servers ready, once, or as often as one likes."""

import typer

from hascheduler.cli.on_demand import on_demand

_COMMANDS = {"mongodb": "hascheduler.cli.bootstrap_mongodb:mongodb"}

bootstrap = typer.Typer(cls=on_demand(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@bootstrap.callback()
def _bootstrap() -> None:
    """Make the servers ready for a deployment."""
