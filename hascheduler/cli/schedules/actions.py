"""``hascheduler schedule pause``, ``resume``, ``reset``, ``trigger``, ``backfill`` and ``delete``."""

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer
from rich.text import Text

from hascheduler.cli.completion import ScheduleName, ScheduleNameOrNone
from hascheduler.cli.fields import filter_of
from hascheduler.cli.input.prompts import delete_stored
from hascheduler.cli.input.values import check_name, read_payload, sendable_key
from hascheduler.cli.jobs.all_that_match import ChangeOfAll, change_all, changes_all
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Because, DryRun, IdempotencyKey, Options, Yes
from hascheduler.cli.output.answers import Shown, asks
from hascheduler.cli.replica import Scheduler
from hascheduler.cli.schedules.tables import schedule_page, trigger_text
from hascheduler.errors import InvalidInput
from hascheduler.schema.filters import ScheduleFilter
from hascheduler.schema.schedule import Overlap, ScheduleState

if TYPE_CHECKING:
    from hascheduler.client.options import TriggerNowBody

_SHOWN_MAX = 20

_ALL: Options = {
    "all": Annotated[bool | None, typer.Option("--all", help="All that are active; of resume, all that are paused.")]
}
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
    """Pause a schedule, or all that match. Their jobs go on, and they can still be triggered by hand."""
    return _change(scheduler, "pause", name, how, because=because)


@example("hascheduler schedule resume nightly --catch-up", "hascheduler schedule resume --all")
@changes_all(ScheduleFilter, _ALL)
def resume(
    scheduler: Scheduler,
    name: ScheduleNameOrNone = None,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Treat the times since the pause as late ones, by the misfire policy.")
    ] = False,
    *,
    how: ChangeOfAll,
) -> Shown:
    """Resume a paused schedule, or all that match, from now on.

    What lay in between does not fire, unless with --catch-up.
    """
    return _change(scheduler, "resume", name, how, catch_up=catch_up or None)


class ResetFrom(StrEnum):
    NOW = "now"


@example("hascheduler schedule reset nightly --from now", "hascheduler schedule reset --all --dry-run")
@changes_all(ScheduleFilter, _ALL)
def reset(
    scheduler: Scheduler,
    name: ScheduleNameOrNone = None,
    start: Annotated[ResetFrom, typer.Option("--from", help="The times after this instant fire.")] = ResetFrom.NOW,
    *,
    how: ChangeOfAll,
) -> Shown:
    """Let a schedule go on that a wrong clock made fire early.

    Or all that match. It would be silent until the time that it had come to. Times that have a job already keep it, and
    do not fire again. Nothing changes for schedules that are not ahead.
    """
    return _change(scheduler, "reset", name, how, **({"start": start.value} if name else {}))


def _change(scheduler: Scheduler, verb: str, name: str | None, how: ChangeOfAll, **more: Any) -> Shown:
    if _is_of_many(verb, name, how):
        return _change_all(scheduler, verb, how, **more)
    schedule = getattr(scheduler.schedules, verb)(check_name(str(name)), **more)
    return Shown(schedule, schedule_page(schedule))


def _is_of_many(verb: str, name: str | None, how: ChangeOfAll, *, of_one: tuple[str, ...] = ()) -> bool:
    """Return whether no name is given; raise an `InvalidInput` if nothing says which are meant, or both do.

    ``of_one`` are given options for one alone.
    """
    if (name is None) == (not how.given):
        problem = "a name and options can't be had together"
        if name is None:
            problem = f"nothing says which schedules to {verb}"
        raise InvalidInput(("NAME",), problem, "the name of one, or options such as --text or --all")
    if name is not None and how.is_asked:
        raise InvalidInput(("NAME",), "--dry-run and --yes are for all that match", "a filter, or neither")
    if name is None and of_one:
        raise InvalidInput((of_one[0],), "is for one schedule", "its name, or no such option")
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
    """Delete a schedule. Jobs that it made go on."""
    return delete_stored(
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
        Overlap | None,
        typer.Option("--overlap", help="While an earlier job has not ended; default: as the schedule has it."),
    ] = None,
    payload: Annotated[
        str | None,
        typer.Option("--payload", metavar="JSON|@FILE", help="Another payload than the schedule's."),
    ] = None,
    *,
    idempotency_key: IdempotencyKey = None,
    how: ChangeOfAll,
) -> Shown:
    """Make a job of a schedule now, or of all that match.

    Beside its times, and whether it is paused or not.
    """
    options = {"--overlap": overlap, "--payload": payload}
    of_one = tuple(option for option, value in options.items() if value is not None)
    key = sendable_key(idempotency_key)
    if _is_of_many("trigger", name, how, of_one=of_one):
        action = key or str(uuid4())
        again = f"the command with --idempotency-key {action}"
        return _change_all(scheduler, "trigger", how, again=again, idempotency_key=action)
    body: TriggerNowBody = {} if overlap is None else {"overlap": overlap.value}
    if payload is not None:
        body["payload"] = read_payload("--payload", payload)
    job = scheduler.schedules.trigger(check_name(str(name)), body, idempotency_key=key)
    done = "triggered already: " if job.replayed else "triggered "
    return Shown(job.fields, Text.assemble(done, (job.id, "bold green")))


class BackfillOverlap(StrEnum):
    ALLOW = "allow"
    BUFFER_ONE = "buffer_one"


@example("hascheduler schedule backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z --dry-run")
@asks()
def backfill(
    scheduler: Scheduler,
    name: ScheduleName,
    *,
    start: Annotated[str, typer.Option("--from", metavar="INSTANT", help="The first time, included.")],
    end: Annotated[str, typer.Option("--to", metavar="INSTANT", help="The last time, included; not in the future.")],
    overlap: Annotated[
        BackfillOverlap, typer.Option("--overlap", help="All at once, or one after the other.")
    ] = BackfillOverlap.BUFFER_ONE,
    dry_run: DryRun = False,
) -> Shown:
    """Make jobs for times that have passed.

    One for each time between the two instants that has none yet, so it can be repeated.
    """
    answer = scheduler.schedules.backfill(check_name(name), start, end, overlap=overlap.value, dry_run=dry_run)
    done = "would be created" if dry_run else "created"
    text = Text.assemble((f"{answer['created']} {done}", "bold green"))
    text.append(f", {answer['existing']} there already, of {answer['count']} times")
    jobs = answer.get("jobs") or []
    for job in jobs[:_SHOWN_MAX]:
        text.append(f"\n  {job}", style="dim")
    if len(jobs) > _SHOWN_MAX:
        text.append(f"\n  … and {len(jobs) - _SHOWN_MAX} more; -o json lists them", style="dim")
    return Shown(answer, text)
