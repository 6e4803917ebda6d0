"""Change all jobs or schedules that match: count them, ask, and show the progress."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import typer
from rich.text import Text

from hascheduler.cli.fields import options_of
from hascheduler.cli.input.prompts import confirmed
from hascheduler.cli.options import Command, DryRun, Given, Options, Yes, widened
from hascheduler.cli.output.answers import Shown, asks
from hascheduler.cli.output.console import console, progress_bar
from hascheduler.cli.output.printable import one_printable_line
from hascheduler.client import Changed
from hascheduler.schema.noun import Part

_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class ChangeOfAll:
    """What is said of a change of all that match; ``given`` are the options that say which."""

    given: Given
    dry_run: bool
    yes: bool

    @property
    def is_asked(self) -> bool:
        """Whether an option is given that is for many."""
        return self.dry_run or self.yes


def changes_all(filter: type[Part], more: Options | None = None) -> Callable[[Command], Command]:
    """Return the command with the options of a filter and of a change; it gets them as ``how``."""
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
    """``change`` is a method of the SDK with its filter; ``done`` is the verb's participle, ``again`` what to repeat
    after Ctrl-C."""
    counted = change(dry_run=True)
    count = _count_text(counted.matched, noun, exact=counted.exact)
    if how.dry_run or not counted.matched:
        would = f"would {verb} {count}" if counted.matched else f"There are no such {noun}s."
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
            typer.echo(f"interrupted: the request under way may still change some; to go on, repeat {again}", err=True)
            return _shown(so_far, f"{_summary(so_far, noun, done)} so far, of {count}", _INTERRUPTED)
    return _shown(so_far, _summary(so_far, noun, done))


def _count_text(number: int, noun: str, *, exact: bool = True) -> str:
    return f"{'' if exact else 'more than '}{number} {noun}{'' if number == 1 else 's'}"


def _summary(changed: Changed, noun: str, done: str) -> str:
    text = f"{done} {_count_text(changed.changed, noun)}"
    if changed.asked_to_stop:
        text += f", asked {changed.asked_to_stop} to stop"
    if changed.refused:
        text += f", {changed.refused} refused: {one_printable_line(changed.error or '')}"
    return text


def _shown(changed: Changed, text: str, status: int = 0) -> Shown:
    return Shown({name: value for name, value in asdict(changed).items() if name != "next"}, Text(text), status)
