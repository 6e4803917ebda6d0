"""``hascheduler schedule``: the commands on schedules, one file each."""

import typer

from hascheduler.cli.lazy_groups import lazy_group

_COMMANDS = {
    "list": "hascheduler.cli.schedules.show:list_schedules",
    "timeline": "hascheduler.cli.schedules.upcoming:timeline",
    "calendar": "hascheduler.cli.schedules.upcoming:calendar",
    "get": "hascheduler.cli.schedules.show:get",
    "verdicts": "hascheduler.cli.schedules.show:verdicts",
    "preview": "hascheduler.cli.schedules.preview:preview_schedule",
    "add": "hascheduler.cli.schedules.edit:add",
    "edit": "hascheduler.cli.schedules.edit:edit",
    "pause": "hascheduler.cli.schedules.actions:pause",
    "resume": "hascheduler.cli.schedules.actions:resume",
    "trigger": "hascheduler.cli.schedules.actions:trigger",
    "backfill": "hascheduler.cli.schedules.actions:backfill",
    "delete": "hascheduler.cli.schedules.actions:delete",
}

schedule = typer.Typer(cls=lazy_group(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@schedule.callback()
def _schedule() -> None:
    """See, preview, make and change schedules."""
