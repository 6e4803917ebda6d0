"""``hascheduler token``: who may ask a cluster for what."""

import typer

from hascheduler.cli.on_demand import on_demand

_COMMANDS = {
    "list": "hascheduler.cli.token_commands:list_tokens",
    "create": "hascheduler.cli.token_commands:create",
    "revoke": "hascheduler.cli.token_commands:revoke",
    "whoami": "hascheduler.cli.token_commands:whoami",
}

token = typer.Typer(cls=on_demand(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@token.callback()
def _token() -> None:
    """Make, see and revoke tokens."""
