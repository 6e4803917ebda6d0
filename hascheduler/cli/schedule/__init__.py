"""``hascheduler schedule``: the commands on schedules, one file each."""

import typer

from hascheduler.cli.on_demand import on_demand

_ROOM = "hascheduler.cli.schedule"

_COMMANDS = {
    "list": f"{_ROOM}.listing:list_schedules",
    "timeline": f"{_ROOM}.timeline:timeline",
    "calendar": f"{_ROOM}.calendar:calendar",
    "get": f"{_ROOM}.get:get",
    "verdicts": f"{_ROOM}.verdicts:verdicts",
    "preview": f"{_ROOM}.preview:preview_schedule",
    "add": f"{_ROOM}.add:add",
    "edit": f"{_ROOM}.edit:edit",
    "pause": f"{_ROOM}.pausing:pause",
    "resume": f"{_ROOM}.pausing:resume",
    "trigger": f"{_ROOM}.trigger:trigger",
    "backfill": f"{_ROOM}.backfill:backfill",
    "delete": f"{_ROOM}.delete:delete",
}

schedule = typer.Typer(cls=on_demand(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@schedule.callback()
def _schedule() -> None:
    """See, preview, make and change schedules."""
