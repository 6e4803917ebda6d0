"""``hascheduler definition``: the named types of job and their limits."""

import typer

from hascheduler.cli.on_demand import on_demand

_COMMANDS = {
    "list": "hascheduler.cli.definition_commands:list_definitions",
    "get": "hascheduler.cli.definition_commands:get",
    "put": "hascheduler.cli.definition_commands:put",
    "edit": "hascheduler.cli.definition_commands:edit",
    "delete": "hascheduler.cli.definition_commands:delete",
}

definition = typer.Typer(cls=on_demand(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@definition.callback()
def _definition() -> None:
    """See, make and change types of job."""
