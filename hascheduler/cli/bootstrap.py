"""``hascheduler bootstrap``: makes the servers ready, once, or as often as one likes."""

import typer

from hascheduler.cli.lazy_groups import lazy_group

_COMMANDS = {"mongodb": "hascheduler.cli.setup.bootstrap:mongodb"}

bootstrap = typer.Typer(cls=lazy_group(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@bootstrap.callback()
def _bootstrap() -> None:
    """Make the servers ready for a deployment."""
