"""``hascheduler definition``: the named types of job and their limits."""

import typer

from hascheduler.cli.lazy_groups import lazy_group

_COMMANDS = {
    "list": "hascheduler.cli.resources.definition:list_definitions",
    "get": "hascheduler.cli.resources.definition:get",
    "put": "hascheduler.cli.resources.definition:put",
    "edit": "hascheduler.cli.resources.definition:edit",
    "delete": "hascheduler.cli.resources.definition:delete",
}

definition = typer.Typer(cls=lazy_group(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@definition.callback()
def _definition() -> None:
    """See, make and change types of job."""
