"""``hascheduler job``: jobs, one or many."""

import typer

from hascheduler.cli.lazy_groups import lazy_group

_COMMANDS = {
    "submit": "hascheduler.cli.jobs.submit:submit",
    "batch": "hascheduler.cli.jobs.batch:batch",
    "list": "hascheduler.cli.jobs.show:list_jobs",
    "failed": "hascheduler.cli.jobs.show:failed",
    "get": "hascheduler.cli.jobs.show:get",
    "wait": "hascheduler.cli.jobs.submit:wait",
    "cancel": "hascheduler.cli.jobs.changes:cancel",
    "reprioritize": "hascheduler.cli.jobs.changes:reprioritize",
    "retry": "hascheduler.cli.jobs.changes:retry",
}

job = typer.Typer(cls=lazy_group(_COMMANDS), no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@job.callback()
def _job() -> None:
    """Submit, see, wait for, cancel and retry jobs; `hascheduler why` says why one waits."""
