"""``hascheduler token``: who may ask a cluster for what."""

import typer

from hascheduler.cli.lazy_groups import lazy_group

_COMMANDS = {
    "list": "hascheduler.cli.resources.token:list_tokens",
    "create": "hascheduler.cli.resources.token:create",
    "revoke": "hascheduler.cli.resources.token:revoke",
    "whoami": "hascheduler.cli.resources.token:whoami",
}

token = typer.Typer(cls=lazy_group(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@token.callback()
def _token() -> None:
    """Make, see and revoke tokens."""
