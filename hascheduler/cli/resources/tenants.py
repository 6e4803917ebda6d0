"""The command ``hascheduler tenant delete``, also with everything that the tenant has.

First go the tokens, so that nobody adds more, then the schedules, the jobs, and the tenant itself. Each step finds what
earlier ones have left, so an interrupted deletion goes on when the command is run again.
"""

from contextlib import suppress
from time import monotonic
from typing import Annotated

from rich.text import Text

from hascheduler.cli.completion import NounName
from hascheduler.cli.input.values import check_name, confirmed, delete_stored
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DryRun, Yes, option
from hascheduler.cli.output.answers import Shown, asks
from hascheduler.cli.output.console import count_text
from hascheduler.cli.replica import Scheduler
from hascheduler.client import Changed, StillRunning
from hascheduler.client.answers import JobCountsResponse
from hascheduler.errors import InvalidInput, NotFound
from hascheduler.model.job import LIVE, TERMINAL
from hascheduler.model.token import ALL_TENANTS, Role

_STOP_LIMIT_S = 60.0
_NOT_STOPPED_STATUS = 5


@example("hascheduler tenant delete acme", "hascheduler tenant delete acme --with-everything --dry-run")
@asks()
def delete(
    scheduler: Scheduler,
    name: NounName,
    with_everything: Annotated[bool, option("--with-everything", "Also delete its tokens, schedules and jobs")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Shown:
    """Delete a tenant. Its jobs continue without a quota.

    With --with-everything, its tokens, schedules and jobs are counted, and deleted after you confirm: waiting jobs are
    cancelled, running ones asked to stop. If it is interrupted, run it again. Verdicts and the audit log stay until
    they expire.
    """
    if with_everything:
        return _delete_everything(scheduler, check_name(name), dry_run=dry_run, yes=yes)
    if dry_run:
        raise InvalidInput(("--dry-run",), "counts what --with-everything deletes", "--with-everything")
    return delete_stored(scheduler, "tenant", name, yes=yes)


def _delete_everything(scheduler: Scheduler, tenant: str, *, dry_run: bool, yes: bool) -> Shown:
    caller = scheduler.cluster.whoami()
    if caller["role"] != Role.ADMIN or caller["tenant"] != ALL_TENANTS:
        raise InvalidInput(("--with-everything",), f"{caller['name']} may not do this", "an admin of all tenants")
    tokens = [token["id"] for token in scheduler.tokens.list() if token["tenant"] == tenant]
    schedules = scheduler.schedules.count(tenant=tenant)["matched"]
    live = scheduler.cancel_where(tenant=tenant, dry_run=True).matched
    # While its schedules exist, their jobs are not deleted, and so not counted; deleted ones are there for ten minutes.
    ended: Changed | JobCountsResponse = (
        scheduler.count(tenant=tenant, state=sorted(TERMINAL))
        if schedules
        else scheduler.delete_where(tenant=tenant, dry_run=True)
    )
    jobs = live + ended.matched
    found = {"tokens": len(tokens), "schedules": schedules, "jobs": jobs, "not_ended": live}
    text = f"{count_text(len(tokens), 'token')}, {count_text(schedules, 'schedule')} and "
    text += count_text(jobs, "job", exact=ended.exact) + (f", of which {live} to cancel" if live else "")
    if not any(found.values()) and scheduler.tenants.find(tenant) is None:
        raise NotFound("tenant", tenant)
    if dry_run or not confirmed(f"Delete the tenant {tenant} with {text}?", yes=yes):
        done = f"would delete {tenant} with {text}" if dry_run else "left as it is"
        return Shown({"name": tenant, **found, "deleted": False}, Text(done))
    for token in tokens:
        scheduler.tokens.revoke(token)
    for schedule in list(scheduler.schedules.list(tenant=tenant)):
        scheduler.schedules.delete(schedule.name, if_match=schedule.rev)
    left = _cancel_and_wait(scheduler, tenant)
    if left:
        done = f"{count_text(left, 'job')} of {tenant} still to stop; run the command again to go on"
        return Shown({"name": tenant, **found, "not_ended": left, "deleted": False}, Text(done), _NOT_STOPPED_STATUS)
    scheduler.delete_where(tenant=tenant)
    scheduler.tenants.delete(tenant)
    done = f"deleted {tenant} with {text}" + ("; the jobs are gone after ten minutes" if jobs else "")
    return Shown({"name": tenant, **found, "deleted": True}, Text(done))


def _cancel_and_wait(scheduler: Scheduler, tenant: str) -> int:
    """Cancel the tenant's jobs, wait until those that run have stopped, and return how many have not."""
    until = monotonic() + _STOP_LIMIT_S
    scheduler.cancel_where(tenant=tenant)
    with suppress(StillRunning):
        for job in scheduler.list(tenant=tenant, state=sorted(LIVE)):
            scheduler.wait(job.id, timeout=max(0.0, until - monotonic()))
    return scheduler.cancel_where(tenant=tenant, dry_run=True).matched
