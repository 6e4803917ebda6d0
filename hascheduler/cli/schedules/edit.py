"""``hascheduler schedule put`` and ``edit``: by options, or in an editor."""

from typing import Annotated, Any

import typer

from hascheduler.cli.completion import NewName, ScheduleName
from hascheduler.cli.input.prompts import edit_stored
from hascheduler.cli.input.values import check_name
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DryRun, Given, Yes, with_options
from hascheduler.cli.output.answers import Answer, Shown, asks
from hascheduler.cli.output.yaml_text import as_text, change
from hascheduler.cli.replica import Scheduler
from hascheduler.cli.schedules.options import SCHEDULE, changed_schedule, new_schedule
from hascheduler.cli.schedules.preview import preview_page
from hascheduler.cli.schedules.tables import manifest, schedule_page
from hascheduler.errors import InvalidInput

Paused = Annotated[bool, typer.Option("--paused", help="Make it paused; a schedule that is there stays as it is.")]


@example(
    'hascheduler schedule edit nightly --cron "0 3 * * *" --dry-run',
    "hascheduler schedule edit nightly --end-at none --label team=b --label old-",
    "EDITOR=vi hascheduler schedule edit nightly",
)
@asks(manifest=manifest)
@with_options("given", SCHEDULE)
def edit(scheduler: Scheduler, name: ScheduleName, dry_run: DryRun = False, yes: Yes = False, *, given: Given) -> Shown:
    """Edit a schedule, by options or in $EDITOR.

    Options change what they name; without any, the whole is edited, and the difference shown before it is written.
    `none` puts a part back to its default, `--label KEY-` removes a label. Times that were decided stay decided.
    """
    body, schedules = changed_schedule(given), scheduler.schedules
    check_name(name)
    if dry_run:
        if not body:
            raise InvalidInput(("--dry-run",), "nothing is given to try", "what to change, such as --every 5s")
        preview = schedules.preview_patch(name, body)
        return Shown(preview, preview_page(f"Next fires of {name} if it is edited so", preview))
    before = schedules.get(name)
    return _written(
        before, schedules.patch(name, body) if body else edit_stored(schedules, "schedule", before, yes=yes)
    )


@example(
    "hascheduler schedule put tick --every 1s --definition log",
    'hascheduler schedule put nightly --cron "30 2 * * *" --timezone Europe/Paris \\',
    "    --definition repack --target demo --overlap skip --label team=a",
)
@asks(manifest=manifest)
@with_options("given", SCHEDULE)
def put(
    context: typer.Context,
    scheduler: Scheduler,
    name: NewName,
    paused: Paused = False,
    dry_run: DryRun = False,
    *,
    given: Given,
) -> Shown:
    """Make or replace a schedule.

    --cron, --every or --at say when, --definition says what; what is left out gets its default.
    """
    body = new_schedule(check_name(name), given)
    made = body | ({"paused": True} if paused else {})
    if dry_run:
        preview = scheduler.schedules.preview_trigger(body["trigger"], name=name)
        return Shown({"body": made, "preview": preview}, [as_text(made), "", preview_page("Next fires", preview)])
    # By its old name, `add`, it replaces none.
    before: Any = None if context.info_name == "add" else scheduler.schedules.find(name)
    if before is None:
        return _written(None, scheduler.schedules.create_document(made))
    return _written(before, scheduler.schedules.put_document(name, body, if_match=before["rev"]))


def _written(before: Answer | None, after: Answer) -> Shown:
    """Return what was changed, and the whole."""
    changed = change(before, after)
    answer = after if before is None else {**after, **changed.as_json()}
    return Shown(answer, [changed.as_text(f"schedule {after['name']}"), schedule_page(after)])
