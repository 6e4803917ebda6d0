"""``hascheduler tenant``: who owns jobs, and how many of them may run."""

import typer

from hascheduler.cli.on_demand import on_demand

_COMMANDS = {
    "list": "hascheduler.cli.tenant_commands:list_tenants",
    "get": "hascheduler.cli.tenant_commands:get",
    "put": "hascheduler.cli.tenant_commands:put",
    "edit": "hascheduler.cli.tenant_commands:edit",
    "delete": "hascheduler.cli.tenant_commands:delete",
}

tenant = typer.Typer(cls=on_demand(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@tenant.callback()
def _tenant() -> None:
    """See, make and change tenants."""
