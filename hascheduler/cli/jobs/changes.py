"""The commands ``hascheduler job cancel``, ``reprioritize``, ``retry`` (by id or filter) and ``delete`` (by filter).

To change all jobs or schedules that match, the command counts them, asks, and shows a progress bar.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.completion import JobIds
from hascheduler.cli.fields import filter_of, options_of
from hascheduler.cli.input.values import check_job_id, confirmed, sendable_key, whole
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Command, DryRun, Given, IdempotencyKey, Options, Yes, argument, option, widened
from hascheduler.cli.output.answers import OutputForm, Shown, asks
from hascheduler.cli.output.console import console, count_text, progress_bar
from hascheduler.cli.output.printable import one_printable_line
from hascheduler.cli.replica import Scheduler, as_cli_errors
from hascheduler.client import Changed
from hascheduler.errors import CallerError, InvalidInput
from hascheduler.schema.filters import JobFilter
from hascheduler.schema.noun import Part

_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class ChangeOfAll:
    """The options of a change of all that match; ``given`` are the filter's."""

    given: Given
    dry_run: bool
    yes: bool

    @property
    def is_asked(self) -> bool:
        """Return True if an option for many is given."""
        return self.dry_run or self.yes


def changes_all(filter: type[Part], more: Options | None = None) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of a filter and of a change, which the command gets as ``how``."""
    which = {**(more or {}), **options_of(filter)}
    options: dict[str, tuple[Any, Any]] = {"dry_run": (DryRun, False), "yes": (Yes, False)}
    options |= {name: (annotation, None) for name, annotation in which.items()}

    def widen(command: Command) -> Command:
        def run(*, dry_run: bool, yes: bool, **values: Any) -> Any:
            offered = {name: values.pop(name) for name in which}
            given = {name: value for name, value in offered.items() if value not in (None, [], False)}
            return command(**values, how=ChangeOfAll(given, dry_run, yes))

        return asks()(widened(command, run, options, {"how"}))

    return widen


def change_all(
    change: Callable[..., Changed],
    noun: str,
    verb: str,
    done: str,
    how: ChangeOfAll,
    *,
    again: str = "the command",
) -> Shown:
    """Count all that match, ask, and change them.

    ``change`` is a method of the SDK with its filter, ``done`` the verb's participle, ``again`` what to repeat after
    Ctrl-C.
    """
    counted = change(dry_run=True)
    count = count_text(counted.matched, noun, exact=counted.exact)
    if how.dry_run or not counted.matched:
        would = f"would {verb} {count}" if counted.matched else f"No {noun}s match."
        return _shown(counted, would)
    if not confirmed(f"{verb.capitalize()} {count}?", yes=how.yes):
        return _shown(counted, "not done")
    so_far = replace(counted, complete=False)
    with progress_bar(console()) as bar:
        task = bar.add_task(f"{verb} {noun}s", total=counted.matched)

        def show(now: Changed) -> None:
            nonlocal so_far
            so_far, met = now, now.changed + now.asked_to_stop + now.refused
            bar.update(task, completed=met, total=max(now.matched, met))

        try:
            so_far = change(expected=counted.matched, progress=show)
        except KeyboardInterrupt:
            bar.stop()
            typer.echo(
                f"interrupted; the current request may still change some jobs; to continue, run {again}", err=True
            )
            return _shown(so_far, f"{_summary(so_far, noun, done)} so far, of {count}", _INTERRUPTED)
    return _shown(so_far, _summary(so_far, noun, done))


def _summary(changed: Changed, noun: str, done: str) -> str:
    text = f"{done} {count_text(changed.changed, noun)}"
    if changed.asked_to_stop:
        text += f", asked {changed.asked_to_stop} to stop"
    if changed.refused:
        text += f", {changed.refused} refused: {one_printable_line(changed.error or '')}"
    return text


def _shown(changed: Changed, text: str, status: int = 0) -> Shown:
    return Shown({name: value for name, value in asdict(changed).items() if name != "next"}, Text(text), status)


_DONE = {"cancel": "cancelled", "reprioritize": "reprioritized", "retry": "retrying"}
_ANSWERS = {
    "cancel": {
        "cancelled": "cancelled {}",
        "already_running": "{} is running and was asked to stop",
        "already_done": "{} has already ended",
    },
    "reprioritize": {
        "ok": "reprioritized {}",
        "already_running": "{} is already at a processor",
        "already_done": "{} has already ended",
    },
    "retry": {"ok": "{} is waiting again", "not_ended": "{} has not ended", "not_failed": "{} has not failed"},
}
_DEPENDENT_ANSWERS = {
    "ok": "{} is waiting for it again",
    "not_ended": "{} has not ended",
    "kept": "{} is unchanged: it ended for another reason",
    "dependency_failed": "{} is unchanged: another job that it depends on failed too",
    "changed": "{} was changed by another request",
}


@example(
    "hascheduler job cancel fire:nightly:1893456000000",
    "hascheduler job cancel --definition resize --state pending --label team=a --dry-run",
)
@changes_all(JobFilter)
def cancel(scheduler: Scheduler, ids: JobIds = None, *, how: ChangeOfAll, output: OutputForm) -> Shown:
    """Cancel waiting jobs, and ask running jobs to stop.

    Give their ids, or options to select all that match; their number is shown before you confirm.
    """
    return _carry_out(scheduler, "cancel", ids or [], how, output)


@example("hascheduler job reprioritize job:0194f3a1b2c3 9", "hascheduler job reprioritize 9 --tenant acme --yes")
@changes_all(JobFilter)
def reprioritize(
    scheduler: Scheduler,
    *,
    ids: JobIds = None,
    priority: Annotated[str, argument("PRIORITY", "0 to 10; 10 is the most urgent")],
    how: ChangeOfAll,
    output: OutputForm,
) -> Shown:
    """Change the priority of waiting jobs.

    Give their ids, or options to select all that match; their number is shown before you confirm.
    """
    level = _priority(priority, ids or [])
    return _carry_out(scheduler, "reprioritize", ids or [], how, output, priority=level)


@example("hascheduler job retry job:0194f3a1b2c3", "hascheduler job retry --definition resize --yes")
@changes_all(JobFilter)
def retry(
    scheduler: Scheduler,
    ids: JobIds = None,
    *,
    with_dependents: Annotated[
        bool, option("--with-dependents", "Also retry the jobs that never ran because these failed")
    ] = False,
    idempotency_key: IdempotencyKey = None,
    how: ChangeOfAll,
    output: OutputForm,
) -> Shown:
    """Run failed or cancelled jobs again.

    They get all their attempts again. Give their ids, or options to select all failed jobs that match (with
    --state cancelled, all cancelled ones); their number is shown before you confirm.
    """
    for flag, is_given in {"--with-dependents": with_dependents, "--idempotency-key": idempotency_key}.items():
        if is_given and not ids:
            raise InvalidInput((flag,), "applies only to jobs given by id", f"ids of jobs, or no {flag}")
    more: dict[str, Any] = {} if idempotency_key is None else {"idempotency_key": sendable_key(idempotency_key)}
    if with_dependents:
        more["with_dependents"] = True
    return _carry_out(scheduler, "retry", ids or [], how, output, **more)


@example("hascheduler job delete --state failed --ended-before 7d", "hascheduler job delete --tenant acme --dry-run")
@changes_all(JobFilter)
def delete(scheduler: Scheduler, *, how: ChangeOfAll) -> Shown:
    """Delete ended jobs that match.

    Their number is shown before you confirm. They are gone after ten minutes; a retry until then keeps a job. Jobs of
    schedules that exist are not deleted: they show what became of its times.
    """
    filter = filter_of(how.given)
    if not filter:
        raise InvalidInput(("job delete",), "no jobs are given", "options such as --state failed --ended-before 7d")
    shown = change_all(partial(scheduler.delete_where, **filter), "job", "delete", "deleted", how)
    later = Text("They are gone after ten minutes; until then a retry keeps a job.", style="dim")
    return replace(shown, picture=[shown.picture, later]) if shown.answer["changed"] else shown


def _priority(text: str, ids: Sequence[str]) -> int:
    if ids and ids[0].isdigit() and not text.isdigit():
        right = " ".join([*ids[1:], text, ids[0]])
        raise InvalidInput(("PRIORITY",), f"{ids[0][:64]} comes before the jobs", f"it last: {right[:512]}")
    priority = whole("PRIORITY", text)
    if not 0 <= priority <= 10:
        raise InvalidInput(("PRIORITY",), f"{text[:64]!r} is not a priority", "0 to 10")
    return priority


def _carry_out(
    scheduler: Scheduler, verb: str, ids: Sequence[str], how: ChangeOfAll, output: OutputForm, **more: Any
) -> Shown:
    """Change the jobs by the scheduler's method ``verb``, or all that match; ``more`` are its arguments."""
    filter = filter_of(how.given)
    if bool(ids) == bool(filter):
        problem = "ids and options exclude each other" if ids else f"no jobs to {verb} are given"
        raise InvalidInput(("JOB",), problem, "ids of jobs, or options such as --definition")
    if ids and how.dry_run:
        raise InvalidInput(
            ("--dry-run",), "counts the jobs that match options, but ids are given", "options, or no --dry-run"
        )
    if ids:
        return _change_each(scheduler, verb, ids, tells=not output.is_for_programs, **more)
    return change_all(partial(getattr(scheduler, f"{verb}_where"), **more, **filter), "job", verb, _DONE[verb], how)


def _change_each(
    scheduler: Scheduler, verb: str, ids: Sequence[str], *, tells: bool, with_dependents: bool = False, **more: Any
) -> Shown:
    """Change the jobs one by one and report each as it is done; the error of one does not stop the others."""
    results: list[dict[str, Any]] = []
    for id in [check_job_id(id) for id in ids]:
        try:
            with as_cli_errors():
                if with_dependents:
                    answer = {**scheduler.retry_with_dependents(id, **more).fields}
                else:
                    answer = {"answer": getattr(scheduler, verb)(id, **more)}
            results.append({"job": id, **answer})
            if tells:
                _tell(verb, id, answer)
        except CallerError as error:
            if len(ids) == 1:
                raise
            results.append({"job": id, "answer": None, "problem": str(error)})
            typer.echo(f"hascheduler: {one_printable_line(str(error))}", err=True)
    if len(ids) == 1:
        return Shown({name: value for name, value in results[0].items() if name != "job"}, None)
    return Shown({"results": results}, None, 2 if any(one["answer"] is None for one in results) else 0)


def _tell(verb: str, id: str, answer: Mapping[str, Any]) -> None:
    console().print(_ANSWERS[verb][answer["answer"]].format(id), soft_wrap=True)
    for one in answer.get("dependents", ()):
        text = _DEPENDENT_ANSWERS.get(one["answer"], "{}: " + one["answer"]).format(one["job"])
        console().print(f"  {text}", soft_wrap=True)
    if not answer.get("complete", True):
        console().print("  … and more than one request handles")
