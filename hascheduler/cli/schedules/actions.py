"""``hascheduler schedule pause``, ``resume``, ``reset``, ``trigger``, ``backfill`` and ``delete``."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.text import Text

from hascheduler.cli.completion import ScheduleName, ScheduleNameOrNone
from hascheduler.cli.input.prompts import delete_stored
from hascheduler.cli.input.values import check_name, read_payload, sendable_key
from hascheduler.cli.jobs.all_that_match import ChangeOfAll, change_all, changes_all
from hascheduler.cli.jobs.filters import filter_of
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import (
    DEFAULT_URL,
    AsJson,
    DryRun,
    Options,
    Url,
    Yes,
)
from hascheduler.cli.output.console import console, print_answer, print_json
from hascheduler.cli.output.instants import with_utc
from hascheduler.cli.replica import replica
from hascheduler.cli.schedules.tables import schedule_page, trigger_text
from hascheduler.client.answers import ScheduleResponse
from hascheduler.client.options import TriggerNowBody
from hascheduler.client.synchronous.schedules import SchedulesApi
from hascheduler.clock import SystemClock
from hascheduler.errors import InvalidInput
from hascheduler.schema.filters import ScheduleFilter
from hascheduler.schema.schedule import Overlap, ScheduleState

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
@with_utc
def pause(
    name: ScheduleNameOrNone = None,
    because: Annotated[str | None, typer.Option("--because", metavar="TEXT", help="Why, for people.")] = None,
    *,
    how: ChangeOfAll,
) -> None:
    """Pause a schedule, or all that match. Their jobs go on, and they can still be triggered by hand."""
    if _is_of_many("pause", name, how):
        _change_all("pause", how, because=because)
    else:
        _change_one(how, name, lambda schedules, name: schedules.pause(name, because))


@example("hascheduler schedule resume nightly --catch-up", "hascheduler schedule resume --all")
@changes_all(ScheduleFilter, _ALL)
@with_utc
def resume(
    name: ScheduleNameOrNone = None,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Treat the times since the pause as late ones, by the misfire policy.")
    ] = False,
    *,
    how: ChangeOfAll,
) -> None:
    """Resume a paused schedule, or all that match, from now on.

    What lay in between does not fire, unless with --catch-up.
    """
    if _is_of_many("resume", name, how):
        _change_all("resume", how, catch_up=catch_up or None)
    else:
        _change_one(how, name, lambda schedules, name: schedules.resume(name, catch_up=catch_up))


class ResetFrom(StrEnum):
    NOW = "now"


@example("hascheduler schedule reset nightly --from now", "hascheduler schedule reset --all --dry-run")
@changes_all(ScheduleFilter, _ALL)
@with_utc
def reset(
    name: ScheduleNameOrNone = None,
    start: Annotated[ResetFrom, typer.Option("--from", help="The times after this instant fire.")] = ResetFrom.NOW,
    *,
    how: ChangeOfAll,
) -> None:
    """Let a schedule go on that a wrong clock made fire early.

    Or all that match. It would be silent until the time that it had come to. Times that have a job already keep it, and
    do not fire again. Nothing changes for schedules that are not ahead.
    """
    if _is_of_many("reset", name, how):
        _change_all("reset", how)
    else:
        _change_one(how, name, lambda schedules, name: schedules.reset(name, start.value))


def _change_one(how: ChangeOfAll, name: str | None, change: Callable[[SchedulesApi, str], ScheduleResponse]) -> None:
    assert name is not None, "it is not of many"
    with replica(how.url) as scheduler:
        answer = change(scheduler.schedules, check_name(name))
    print_answer(answer, lambda _: schedule_page(answer, SystemClock().wall_ms()), as_json=how.as_json)


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


def _change_all(verb: str, how: ChangeOfAll, *, again: str = "the command", **more: Any) -> None:
    """Count the schedules, ask, and change them; ``more`` are arguments of the SDK's method."""
    filter = filter_of({name: value for name, value in how.given.items() if name != "all"})
    if how.given.get("all"):
        filter.setdefault("state", ScheduleState.PAUSED.value if verb == "resume" else ScheduleState.ACTIVE.value)
    with replica(how.url) as scheduler:
        where = partial(getattr(scheduler.schedules, f"{verb}_where"), **filter, **more)
        change_all(where, "schedule", verb, _DONE[verb], how, again=again)


@example("hascheduler schedule delete nightly --yes")
def delete(name: ScheduleName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Delete a schedule. Jobs that it made go on."""
    delete_stored(
        "schedule",
        name,
        yes=yes,
        url=url,
        as_json=as_json,
        described=lambda stored: f" ({trigger_text(stored['trigger'])})",
    )


@example(
    """hascheduler schedule trigger nightly --payload '{"full": true}'""",
    "hascheduler schedule trigger --verdict missed --dry-run",
)
@changes_all(ScheduleFilter, _ALL)
def trigger(
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
    idempotency_key: Annotated[
        str | None,
        typer.Option("--idempotency-key", metavar="TEXT", help="Triggered again under it, each is the same job."),
    ] = None,
    how: ChangeOfAll,
) -> None:
    """Make a job of a schedule now, or of all that match.

    Beside its times, and whether it is paused or not.
    """
    options = {"--overlap": overlap, "--payload": payload}
    of_one = tuple(option for option, value in options.items() if value is not None)
    key = None if idempotency_key is None else sendable_key(idempotency_key)
    if _is_of_many("trigger", name, how, of_one=of_one):
        action = key or str(uuid4())
        again = f"the command with --idempotency-key {action}"
        _change_all("trigger", how, again=again, idempotency_key=action)
        return
    assert name is not None
    check_name(name)
    body: TriggerNowBody = {} if overlap is None else {"overlap": overlap.value}
    if payload is not None:
        body["payload"] = read_payload("--payload", payload)
    with replica(how.url) as scheduler:
        job = scheduler.schedules.trigger(name, body, idempotency_key=key)
    if how.as_json:
        print_json(job.fields)
    else:
        done = "triggered already: " if job.replayed else "triggered "
        console().print(Text.assemble(done, (job.id, "bold green")), soft_wrap=True)


class BackfillOverlap(StrEnum):
    ALLOW = "allow"
    BUFFER_ONE = "buffer_one"


@example("hascheduler schedule backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z --dry-run")
def backfill(
    name: ScheduleName,
    *,
    start: Annotated[str, typer.Option("--from", metavar="INSTANT", help="The first time, included.")],
    end: Annotated[str, typer.Option("--to", metavar="INSTANT", help="The last time, included; not in the future.")],
    overlap: Annotated[
        BackfillOverlap, typer.Option("--overlap", help="All at once, or one after the other.")
    ] = BackfillOverlap.BUFFER_ONE,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make jobs for times that have passed.

    One for each time between the two instants that has none yet, so it can be repeated.
    """
    with replica(url) as scheduler:
        answer = scheduler.schedules.backfill(check_name(name), start, end, overlap=overlap.value, dry_run=dry_run)
    if as_json:
        print_json(answer)
        return
    done = "would be created" if dry_run else "created"
    text = Text.assemble((f"{answer['created']} {done}", "bold green"))
    text.append(f", {answer['existing']} there already, of {answer['count']} times")
    jobs = answer.get("jobs") or []
    for job in jobs[:_SHOWN_MAX]:
        text.append(f"\n  {job}", style="dim")
    if len(jobs) > _SHOWN_MAX:
        text.append(f"\n  … and {len(jobs) - _SHOWN_MAX} more; --json lists them", style="dim")
    console().print(text, soft_wrap=True)
