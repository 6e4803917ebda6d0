"""``hascheduler lane``: the classes of work, and how they share."""

import typer

from hascheduler.cli.lazy_groups import lazy_group

_COMMANDS = {
    "list": "hascheduler.cli.resources.lane:list_lanes",
    "get": "hascheduler.cli.resources.lane:get",
    "put": "hascheduler.cli.resources.lane:put",
    "edit": "hascheduler.cli.resources.lane:edit",
    "delete": "hascheduler.cli.resources.lane:delete",
}

lane = typer.Typer(cls=lazy_group(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@lane.callback()
def _lane() -> None:
    """See, make and change lanes."""
