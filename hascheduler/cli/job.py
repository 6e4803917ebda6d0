"""``hascheduler job``: single jobs."""

import typer

from hascheduler.cli.on_demand import on_demand

_COMMANDS = {
    "submit": "hascheduler.cli.job_submit:submit",
    "list": "hascheduler.cli.job_commands:list_jobs",
    "get": "hascheduler.cli.job_commands:get",
    "cancel": "hascheduler.cli.job_commands:cancel",
}

job = typer.Typer(cls=on_demand(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@job.callback()
def _job() -> None:
    """Submit, see and cancel jobs; `hascheduler why` says why one waits."""
