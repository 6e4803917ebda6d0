"""``hascheduler lane``: the classes of work, and how they share."""

import typer

from hascheduler.cli.on_demand import on_demand

_COMMANDS = {
    "list": "hascheduler.cli.lane_commands:list_lanes",
    "get": "hascheduler.cli.lane_commands:get",
    "put": "hascheduler.cli.lane_commands:put",
    "edit": "hascheduler.cli.lane_commands:edit",
    "delete": "hascheduler.cli.lane_commands:delete",
}

lane = typer.Typer(cls=on_demand(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@lane.callback()
def _lane() -> None:
    """See, make and change lanes."""
