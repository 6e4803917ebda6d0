"""``hascheduler job``: jobs, one or many."""

import typer

from hascheduler.cli.on_demand import on_demand

_COMMANDS = {
    "submit": "hascheduler.cli.job_submit:submit",
    "batch": "hascheduler.cli.job_batch:batch",
    "list": "hascheduler.cli.job_commands:list_jobs",
    "failed": "hascheduler.cli.job_commands:failed",
    "get": "hascheduler.cli.job_commands:get",
    "wait": "hascheduler.cli.job_wait:wait",
    "cancel": "hascheduler.cli.job_changes:cancel",
    "reprioritize": "hascheduler.cli.job_changes:reprioritize",
    "retry": "hascheduler.cli.job_changes:retry",
}

job = typer.Typer(cls=on_demand(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@job.callback()
def _job() -> None:
    """Submit, see, wait for, cancel and retry jobs; `hascheduler why` says why one waits."""
