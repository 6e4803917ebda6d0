"""``hascheduler simulate``: a scenario on the real dispatch core in virtual time, or a recording, decided again."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from hascheduler.cli.completion import one_of
from hascheduler.cli.input.values import read_source
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.output.answers import Shown, prints
from hascheduler.cli.output.console import new_table, progress_bar
from hascheduler.cli.output.instants import instant_text
from hascheduler.cli.simulate.tables import comparison, difference_lines
from hascheduler.dispatch.decisions import encode_decisions
from hascheduler.dispatch.recording import is_recording, read_recording
from hascheduler.errors import InvalidInput
from hascheduler.model.policy import PRESETS, policy_name
from hascheduler.model.values.instants import format_instant
from hascheduler.simulate.examples import example_names, example_note, example_text
from hascheduler.simulate.parsing import parse_scenario
from hascheduler.simulate.recorded import recorded_scenario, replay
from hascheduler.simulate.run import RunOutcome, as_document, run
from hascheduler.simulate.scenario import Scenario

_SHOWN_MAX = 5


_POLICIES: dict[str, Any] = {"metavar": "POLICY", "autocompletion": one_of(PRESETS)}
_File = typer.Argument(metavar="FILE", help="A scenario, YAML or JSON, or a recording; - reads it from here.")
_Example = typer.Option(
    "--example", metavar="NAME", help="One of ours instead.", autocompletion=one_of(example_names())
)
_Policy = typer.Option(
    "--policy",
    help="Instead of the file's: a preset (affinity, fair, swimlanes, balanced) or criteria with commas.",
    **_POLICIES,
)
_Compare = typer.Option(
    "--compare",
    help="Run it under this one too, side by side; several presets with commas, or again for more.",
    **_POLICIES,
)
_Plot = typer.Option("--plot", metavar="OUT", help="Draw a picture, OUT.png or OUT.svg.")


@example(
    "hascheduler simulate --example mixed-day --plot day.png",
    "hascheduler simulate day.yaml --compare fair,affinity --compare lane,score",
    "hascheduler simulate afternoon.jsonl --policy swimlanes",
)
@prints()
def simulate(
    file: Annotated[str | None, _File] = None,
    *,
    example: Annotated[str | None, _Example] = None,
    list_examples: Annotated[bool, typer.Option("--list-examples", help="Show what examples there are.")] = False,
    policy: Annotated[str | None, _Policy] = None,
    compare: Annotated[list[str] | None, _Compare] = None,
    plot: Annotated[str | None, _Plot] = None,
) -> Shown:
    """Run a scenario on the real dispatch core in virtual time, and show what comes of it.

    A recording (`hascheduler record`) is replayed: the same must be decided again. With --policy or --compare its work
    is run under the policy that was recorded and under the others.
    """
    if list_examples:
        notes = {name: example_note(name) for name in example_names()}
        table = new_table("", "example", "what there is to see")
        for name, note in notes.items():
            table.add_row(Text(name, style="bold"), Text(note))
        return Shown(notes, table)
    if (file is None) == (example is None):
        problem = "missing" if file is None else "given, and --example too"
        raise InvalidInput(("FILE",), problem, "a scenario file, - or --example NAME")
    text = example_text(example) if example else read_source(str(file), "YAML or JSON")
    with _located("standard input" if file == "-" else str(file or example)):
        recorded = is_recording(text)
        if recorded and not (policy or compare or plot):
            return _replayed(text)
        scenario = recorded_scenario(*read_recording(text.splitlines())) if recorded else parse_scenario(text)
    if recorded:
        # Another policy is worth nothing without the one that was recorded beside it.
        compare, policy = [*([policy] if policy else []), *(compare or [])], None
    draw = None if plot is None else _drawing(plot)
    outcomes = _run_all(_under(scenario, policy, compare or []))
    if draw is not None and plot is not None:
        _write(plot, draw(outcomes))
    documents = {outcome.scenario.policy.name: as_document(outcome) for outcome in outcomes}
    head = [Text(scenario.note, style="italic")] if scenario.note else []
    picture = [*head, comparison(outcomes), *difference_lines(outcomes)]
    return Shown(documents if compare else as_document(outcomes[0]), picture)


@contextmanager
def _located(source: str) -> Iterator[None]:
    """Errors inside the block name the source and the place in it."""
    try:
        yield
    except InvalidInput as error:
        where = (f"{source}, {error.path[0]}", *error.path[1:]) if error.path else (source,)
        raise InvalidInput(where, error.problem, error.expected) from None


def _under(scenario: Scenario, policy: str | None, compared: list[str]) -> list[Scenario]:
    """Return the scenario under ``policy``, if any, and under those it is compared with, each once."""
    first = scenario if policy is None else scenario.under(policy, "--policy")
    found = {first.policy.name: first}
    for each in compared:
        names = [name.strip() for name in each.split(",")]
        for name in names if all(name in PRESETS for name in names) else [",".join(names)]:
            found.setdefault(name, scenario.under(name, "--compare"))
    return list(found.values())


def _run_all(scenarios: list[Scenario]) -> list[RunOutcome]:
    with progress_bar(Console(stderr=True)) as bar:

        def with_bar(scenario: Scenario) -> RunOutcome:
            task = bar.add_task(scenario.policy.name, total=len(scenario.jobs))
            return run(scenario, lambda done: bar.update(task, completed=done))

        return [with_bar(scenario) for scenario in scenarios]


def _drawing(out: str) -> Callable[[Sequence[RunOutcome]], bytes]:
    """Return what draws a file of that name, before anything runs; an `InvalidInput` says why it can't."""
    try:
        from hascheduler.simulate.plot import FORMATS, draw
    except ModuleNotFoundError:
        raise InvalidInput(("--plot",), "matplotlib is not installed", "pip install 'hascheduler[plot]'") from None
    format = Path(out).suffix.removeprefix(".").lower()
    if format not in FORMATS:
        expected = " or ".join(f"NAME.{each}" for each in FORMATS)
        raise InvalidInput(("--plot",), f"{out[:64]!r} is no kind of picture", expected)
    return lambda outcomes: draw(outcomes, format)


def _write(out: str, picture: bytes) -> None:
    try:
        Path(out).write_bytes(picture)
    except OSError as error:
        raise InvalidInput(("--plot",), f"{out}: {error.strerror}", "a file that can be written") from None


def _replayed(text: str) -> Shown:
    """The status is 1 if the replay decides something else."""
    heading, steps = read_recording(text.splitlines())
    replayed = replay(heading, steps)
    counts = {"steps": replayed.steps, "decisions": replayed.decisions}
    recorded, again = replayed.difference or (None, None)
    sides = {} if recorded is None else {"recorded": recorded.decisions or (), "replayed": again or ()}
    rows = {side: encode_decisions(decisions) for side, decisions in sides.items()}
    at = "" if recorded is None else format_instant(recorded.now)
    difference = {"step": replayed.steps, "at": at, **rows} if rows else None
    document = {"replica": heading.replica, "term": heading.term, **counts, "end": replayed.end}
    since, policy = instant_text(format_instant(heading.at_ms)), policy_name(heading.config.policy.criteria)
    lines = [f"{heading.replica}, term {heading.term}, from {since} on; {policy}"]
    lines += [f"step {replayed.steps}, at {instant_text(at)}, is another"] if rows else []
    for side, decided in rows.items():
        few = "; ".join(" ".join(map(str, row[:4])) for row in decided[:_SHOWN_MAX]) or "nothing"
        lines.append(f"{side}  {few}{f'; and {len(decided) - _SHOWN_MAX} more' if decided[_SHOWN_MAX:] else ''}")
    same = f"in {replayed.steps} steps, and all are the same   ({replayed.end or 'it was cut off'})"
    lines.append(f"{replayed.decisions} decisions {'before it are the same' if rows else same}")
    answer = {**document, "identical": not rows, "difference": difference}
    return Shown(answer, Text("\n".join(lines)), int(bool(rows)))
