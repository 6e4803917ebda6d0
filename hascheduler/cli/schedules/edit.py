"""``hascheduler schedule add`` and ``edit``: by options, or in an editor."""

from typing import Annotated, Any

import typer

from hascheduler.cli.completion import NewName, ScheduleName
from hascheduler.cli.input.normal_forms import normal_schedule
from hascheduler.cli.input.prompts import edit_document
from hascheduler.cli.input.values import check_name
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, DryRun, Given, Url, Yes, with_options
from hascheduler.cli.output.console import console, print_json
from hascheduler.cli.output.instants import with_utc
from hascheduler.cli.output.yaml_text import NounChange, as_text, change
from hascheduler.cli.replica import replica
from hascheduler.cli.schedules.options import SCHEDULE, changed_schedule, new_schedule
from hascheduler.cli.schedules.preview import preview_page
from hascheduler.cli.schedules.tables import schedule_page
from hascheduler.clock import SystemClock
from hascheduler.errors import InvalidInput


@example(
    'hascheduler schedule edit nightly --cron "0 3 * * *" --dry-run',
    "hascheduler schedule edit nightly --end-at none --label team=b --label old-",
    "EDITOR=vi hascheduler schedule edit nightly",
)
@with_utc
@with_options("given", SCHEDULE)
def edit(
    name: ScheduleName,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    *,
    given: Given,
) -> None:
    """Edit a schedule, by options or in $EDITOR.

    Options change what they name; without any, the whole is edited, and the difference shown before it is written.
    `none` puts a part back to its default, `--label KEY-` removes a label. Times that were decided stay decided.
    """
    body = changed_schedule(given)
    now_ms = SystemClock().wall_ms()
    check_name(name)
    answer: Any
    changed = NounChange("unchanged")
    with replica(url) as scheduler:
        if dry_run:
            if not body:
                raise InvalidInput(("--dry-run",), "nothing is given to try", "what to change, such as --every 5s")
            answer = scheduler.schedules.preview_patch(name, body)
        else:
            before = scheduler.schedules.get(name)
            schedules = scheduler.schedules
            answer = schedules.patch(name, body) if body else _in_editor(schedules, before, yes=yes)
            changed = change(before, answer)
    if as_json:
        print_json(answer if dry_run else {**answer, **changed.as_json()})
    elif dry_run:
        console().print(preview_page(f"Next fires of {name} if it is edited so", answer, now_ms))
    else:
        console().print(changed.as_text(f"schedule {name}"), soft_wrap=True)
        console().print(schedule_page(answer, now_ms))


def _in_editor(schedules: Any, stored: Any, *, yes: bool) -> Any:
    name = stored["name"]
    # Being paused is not edited, but changed by pausing and resuming.
    document = {part: value for part, value in normal_schedule(stored).items() if part != "paused"}

    def write(edited: dict[str, Any]) -> dict[str, Any]:
        return dict(schedules.put_document(name, edited, if_match=stored["rev"]))

    return edit_document(name, document, normal_schedule, write, yes=yes) or stored


@example(
    "hascheduler schedule add tick --every 1s --definition log",
    'hascheduler schedule add nightly --cron "30 2 * * *" --timezone Europe/Paris \\',
    "    --definition repack --target demo --overlap skip --label team=a",
)
@with_utc
@with_options("given", SCHEDULE)
def add(
    name: NewName,
    paused: Annotated[bool, typer.Option("--paused", help="Create it paused.")] = False,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    *,
    given: Given,
) -> None:
    """Make a schedule.

    --cron, --every or --at say when, --definition says what.
    """
    body = new_schedule(name, given) | ({"paused": True} if paused else {})
    now_ms = SystemClock().wall_ms()
    answer: Any
    with replica(url) as scheduler:
        if dry_run:
            answer = scheduler.schedules.preview_trigger(body["trigger"], name=name)
        else:
            answer = scheduler.schedules.create_document(body)
    if as_json:
        print_json({"body": body, "preview": answer} if dry_run else answer)
    elif dry_run:
        console().print(as_text(body), "")
        console().print(preview_page("Next fires", answer, now_ms))
    else:
        console().print(change(None, answer).as_text(f"schedule {name}"), soft_wrap=True)
        console().print(schedule_page(answer, now_ms))
