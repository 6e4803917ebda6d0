"""The commands of ``hascheduler schedule`` that change schedules.

``put`` and ``edit``, by options or in an editor; ``pause``, ``resume``, ``reset``, ``trigger``, ``backfill`` and
``delete``.
"""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import uuid4

import typer
from rich.text import Text

from hascheduler.cli.completion import NewName, ScheduleName, ScheduleNameOrNone
from hascheduler.cli.fields import filter_of
from hascheduler.cli.input import values
from hascheduler.cli.jobs.changes import ChangeOfAll, change_all, changes_all
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Because, DryRun, Given, IdempotencyKey, Options, Yes, option, with_options
from hascheduler.cli.output.answers import Answer, OutputForm, Shown, asks
from hascheduler.cli.output.yaml_text import as_text, change
from hascheduler.cli.replica import Scheduler
from hascheduler.cli.schedules.options import SCHEDULE, changed_schedule, new_schedule
from hascheduler.cli.schedules.preview import preview_page
from hascheduler.cli.schedules.show import manifest, schedule_page, trigger_text
from hascheduler.errors import InvalidInput
from hascheduler.schema.filters import ScheduleFilter
from hascheduler.schema.schedule import Overlap, ScheduleState

if TYPE_CHECKING:
    from hascheduler.client.options import TriggerNowBody


_SHOWN_MAX = 20

_ALL: Options = {"all": Annotated[bool | None, option("--all", "All active schedules; with resume, all paused ones")]}
_DONE = {"pause": "paused", "resume": "resumed", "reset": "reset", "trigger": "triggered"}


@example(
    'hascheduler schedule pause nightly --because "the disk is full"',
    "hascheduler schedule pause --label team=a --dry-run",
)
@changes_all(ScheduleFilter, _ALL)
def pause(
    scheduler: Scheduler,
    name: ScheduleNameOrNone = None,
    because: Because = None,
    *,
    how: ChangeOfAll,
) -> Shown:
    """Pause a schedule, or all that match. Their jobs continue, and they can still be triggered by hand."""
    return _change(scheduler, "pause", name, how, because=because)


@example("hascheduler schedule resume nightly --catch-up", "hascheduler schedule resume --all")
@changes_all(ScheduleFilter, _ALL)
def resume(
    scheduler: Scheduler,
    name: ScheduleNameOrNone = None,
    catch_up: Annotated[bool, option("--catch-up", "Apply the misfire policy to the times since the pause")] = False,
    *,
    how: ChangeOfAll,
) -> Shown:
    """Resume a paused schedule, or all that match, from now on.

    Times during the pause do not fire, unless with --catch-up.
    """
    return _change(scheduler, "resume", name, how, catch_up=catch_up or None)


@example("hascheduler schedule reset nightly --from now", "hascheduler schedule reset --all --dry-run")
@changes_all(ScheduleFilter, _ALL)
def reset(
    scheduler: Scheduler,
    name: ScheduleNameOrNone = None,
    start: Annotated[Literal["now"], option("--from now", "Fire the times after this instant")] = "now",
    *,
    how: ChangeOfAll,
) -> Shown:
    """Move a schedule back that a wrong clock made fire early.

    Or all that match. Without a reset it would not fire until the time that it has reached. Times that already have a
    job do not fire again. Schedules that are not ahead do not change.
    """
    return _change(scheduler, "reset", name, how, **({"start": start} if name else {}))


def _change(scheduler: Scheduler, verb: str, name: str | None, how: ChangeOfAll, **more: Any) -> Shown:
    if _is_of_many(verb, name, how):
        return _change_all(scheduler, verb, how, **more)
    schedule = getattr(scheduler.schedules, verb)(values.check_name(str(name)), **more)
    return Shown(schedule, schedule_page(schedule))


def _is_of_many(verb: str, name: str | None, how: ChangeOfAll, *, of_one: tuple[str, ...] = ()) -> bool:
    """Return True if no name is given; raise an `InvalidInput` unless either a name or a filter is given.

    ``of_one`` are given options that apply to a single schedule only.
    """
    if (name is None) == (not how.given):
        problem = "a name and options exclude each other"
        if name is None:
            problem = f"no schedules to {verb} are given"
        raise InvalidInput(("NAME",), problem, "a name, or options such as --text or --all")
    if name is not None and how.is_asked:
        raise InvalidInput(("NAME",), "--dry-run and --yes require options that select schedules", "a filter with them")
    if name is None and of_one:
        raise InvalidInput((of_one[0],), "requires the name of one schedule", "a name, or no such option")
    return name is None


def _change_all(scheduler: Scheduler, verb: str, how: ChangeOfAll, *, again: str = "the command", **more: Any) -> Shown:
    """Count the schedules, ask, and change them; ``more`` are arguments of the SDK's method."""
    filter = filter_of({name: value for name, value in how.given.items() if name != "all"})
    if how.given.get("all"):
        filter.setdefault("state", ScheduleState.PAUSED.value if verb == "resume" else ScheduleState.ACTIVE.value)
    where = partial(getattr(scheduler.schedules, f"{verb}_where"), **filter, **more)
    return change_all(where, "schedule", verb, _DONE[verb], how, again=again)


@example("hascheduler schedule delete nightly --yes")
@asks()
def delete(scheduler: Scheduler, name: ScheduleName, yes: Yes = False) -> Shown:
    """Delete a schedule. Its jobs continue."""
    return values.delete_stored(
        scheduler, "schedule", name, yes=yes, described=lambda stored: f" ({trigger_text(stored['trigger'])})"
    )


@example(
    """hascheduler schedule trigger nightly --payload '{"full": true}'""",
    "hascheduler schedule trigger --verdict missed --dry-run",
)
@changes_all(ScheduleFilter, _ALL)
def trigger(
    scheduler: Scheduler,
    name: ScheduleNameOrNone = None,
    overlap: Annotated[
        Overlap | None, option("--overlap", "Overlap policy if an earlier job has not ended; default: the schedule's")
    ] = None,
    payload: Annotated[str | None, option("--payload JSON|@FILE", "Payload instead of the schedule's")] = None,
    *,
    idempotency_key: IdempotencyKey = None,
    how: ChangeOfAll,
    output: OutputForm,
) -> Shown:
    """Create a job of a schedule now, or of all that match.

    The schedule may be paused, and its times do not change.
    """
    options = {"--overlap": overlap, "--payload": payload}
    of_one = tuple(option for option, value in options.items() if value is not None)
    key = values.sendable_key(idempotency_key)
    if _is_of_many("trigger", name, how, of_one=of_one):
        action = key or str(uuid4())
        again = f"the command with --idempotency-key {action}"
        return _change_all(scheduler, "trigger", how, again=again, idempotency_key=action)
    body: TriggerNowBody = {} if overlap is None else {"overlap": overlap.value}
    if payload is not None:
        body["payload"] = values.read_payload("--payload", payload)
    job = scheduler.schedules.trigger(values.check_name(str(name)), body, idempotency_key=key)
    if output is OutputForm.NAME:
        return Shown(job.fields, Text(job.id))
    done = "already triggered: " if job.replayed else "triggered "
    return Shown(job.fields, Text.assemble(done, (job.id, "bold green")))


@example("hascheduler schedule backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z --dry-run")
@asks()
def backfill(
    scheduler: Scheduler,
    name: ScheduleName,
    *,
    start: Annotated[str, option("--from INSTANT|SPAN", "First time, inclusive; 7d: 7 days ago")],
    end: Annotated[str, option("--to INSTANT|SPAN", "Last time, inclusive; not in the future")],
    overlap: Annotated[
        Literal["allow", "buffer_one"], option("--overlap", "Run the jobs all at once, or one after the other")
    ] = "buffer_one",
    dry_run: DryRun = False,
) -> Shown:
    """Create jobs for past times of a schedule.

    One for each time between the two instants that has no job yet, so the command can be repeated.
    """
    start, end = values.past_instant("--from", start), values.past_instant("--to", end)
    answer = scheduler.schedules.backfill(values.check_name(name), start, end, overlap=overlap, dry_run=dry_run)
    done = "would be created" if dry_run else "created"
    text = Text.assemble((f"{answer['created']} {done}", "bold green"))
    text.append(f", {answer['existing']} already existed, of {answer['count']} times")
    jobs = answer.get("jobs") or []
    for job in jobs[:_SHOWN_MAX]:
        text.append(f"\n  {job}", style="dim")
    if len(jobs) > _SHOWN_MAX:
        text.append(f"\n  … and {len(jobs) - _SHOWN_MAX} more; -o json lists them", style="dim")
    return Shown(answer, text)


Paused = Annotated[bool, option("--paused", "Create it paused; an existing schedule keeps its state")]


@example(
    'hascheduler schedule edit nightly --cron "0 3 * * *" --dry-run',
    "hascheduler schedule edit nightly --end-at none --label team=b --label old-",
    "EDITOR=vi hascheduler schedule edit nightly",
)
@asks(manifest=manifest)
@with_options("given", SCHEDULE)
def edit(scheduler: Scheduler, name: ScheduleName, dry_run: DryRun = False, yes: Yes = False, *, given: Given) -> Shown:
    """Edit a schedule, by options or in $EDITOR.

    With options, only those fields change; without, the schedule opens in $EDITOR and the difference is shown before
    you confirm. `none` resets a field to its default, `--label KEY-` removes a label. Times already decided stay
    decided.
    """
    body, schedules = changed_schedule(given), scheduler.schedules
    values.check_name(name)
    if dry_run:
        if not body:
            raise InvalidInput(("--dry-run",), "no change is given", "a change, such as --every 5s")
        preview = schedules.preview_patch(name, body)
        return Shown(preview, preview_page(f"Next fires of {name} after this edit", preview))
    before = schedules.get(name)
    return _written(
        before, schedules.patch(name, body) if body else values.edit_stored(schedules, "schedule", before, yes=yes)
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
    """Create or replace a schedule.

    --cron, --every or --at set when it fires, --definition what it runs; fields that are left out get their defaults.
    """
    body = new_schedule(values.check_name(name), given)
    made = body | ({"paused": True} if paused else {})
    if dry_run:
        preview = scheduler.schedules.preview_trigger(body["trigger"], name=name)
        return Shown({"body": made, "preview": preview}, [as_text(made), "", preview_page("Next fires", preview)])
    # Under its old name, `add`, it replaces no schedule.
    before: Any = None if context.info_name == "add" else scheduler.schedules.find(name)
    if before is None:
        return _written(None, scheduler.schedules.create_document(made))
    return _written(before, scheduler.schedules.put_document(name, body, if_match=before["rev"]))


def _written(before: Answer | None, after: Answer) -> Shown:
    """Return the change, and the schedule as it is now."""
    changed = change(before, after)
    answer = after if before is None else {**after, **changed.as_json()}
    return Shown(answer, [changed.as_text(f"schedule {after['name']}"), schedule_page(after)])
