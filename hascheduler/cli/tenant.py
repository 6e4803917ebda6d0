"""``hascheduler tenant``: who owns jobs, and how many of them may run."""

import typer

from hascheduler.cli.lazy_groups import lazy_group

_COMMANDS = {
    "list": "hascheduler.cli.resources.tenant:list_tenants",
    "get": "hascheduler.cli.resources.tenant:get",
    "put": "hascheduler.cli.resources.tenant:put",
    "edit": "hascheduler.cli.resources.tenant:edit",
    "delete": "hascheduler.cli.resources.tenant:delete",
}

tenant = typer.Typer(cls=lazy_group(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@tenant.callback()
def _tenant() -> None:
    """See, make and change tenants."""
