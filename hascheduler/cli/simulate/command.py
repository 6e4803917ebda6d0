"""``hascheduler simulate``: a scenario on the real dispatch core in virtual time, or a recording, decided again."""

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import AsJson
from hascheduler.cli.output.console import console
from hascheduler.cli.output.instants import instant_text, with_utc
from hascheduler.cli.output.printable import printable_json
from hascheduler.cli.simulate.input import (
    complete_example,
    complete_policy,
    errors_located,
    read_source,
    scenario_from,
    scenarios_under,
)
from hascheduler.cli.simulate.output import ProgressBar, drawing, write_picture
from hascheduler.cli.simulate.tables import comparison, difference_lines, examples_table, summary
from hascheduler.dispatch.decisions import Decision, encode_decisions
from hascheduler.dispatch.recording import RecordingHeading, read_recording
from hascheduler.model.policy import policy_name
from hascheduler.model.values.instants import format_instant
from hascheduler.simulate.examples import example_names, example_note
from hascheduler.simulate.outcome import RunOutcome, as_document
from hascheduler.simulate.replay import Replayed, replay
from hascheduler.simulate.report import report
from hascheduler.simulate.run import run
from hascheduler.simulate.scenario import Scenario

_POLICY = "a preset (affinity, fair, swimlanes, balanced) or criteria with commas"
_SHOWN_MAX = 5


@example(
    "hascheduler simulate --example mixed-day --plot day.png",
    "hascheduler simulate day.yaml --compare fair,affinity --compare lane,score",
    "hascheduler simulate afternoon.jsonl --policy swimlanes",
)
@with_utc
def simulate(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="A scenario, YAML or JSON, or a recording; - reads it from here."),
    ] = None,
    *,
    example: Annotated[
        str | None,
        typer.Option("--example", metavar="NAME", help="One of ours instead.", autocompletion=complete_example),
    ] = None,
    list_examples: Annotated[bool, typer.Option("--list-examples", help="Show what examples there are.")] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help=f"Instead of the file's: {_POLICY}.",
            autocompletion=complete_policy,
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare",
            metavar="POLICY",
            help="Run it under this one too, side by side; several presets with commas, or again for more.",
            autocompletion=complete_policy,
        ),
    ] = None,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="OUT", help="Draw a picture, OUT.png or OUT.svg.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario on the real dispatch core in virtual time, and show what comes of it.

    A recording (`hascheduler record`) is replayed: the same must be decided again. With --policy or --compare its work
    is run under the policy that was recorded and under the others.
    """
    if list_examples:
        console().print(examples_table([(name, example_note(name)) for name in example_names()]))
        return
    source = read_source(file, example)
    if source.is_recording:
        if not (policy or compare or plot):
            with errors_located(source):
                show_replay(source.text, as_json=as_json)
            return
        # Another policy is worth nothing without the one that was recorded beside it.
        compare, policy = [*([policy] if policy else []), *(compare or [])], None
    scenarios = scenarios_under(scenario_from(source), policy, compare or [])
    draw = None if plot is None else drawing(plot)
    outcomes = _run_all(scenarios)
    if draw is not None and plot is not None:
        write_picture(plot, draw(outcomes))
    if as_json:
        documents = {outcome.scenario.policy.name: as_document(outcome) for outcome in outcomes}
        shown = documents if compare else next(iter(documents.values()))
        typer.echo(printable_json(json.dumps(shown, ensure_ascii=False)))
        return
    reports, note = [report(outcome) for outcome in outcomes], scenarios[0].note
    console().print(comparison(reports, note) if compare else summary(reports[0], note))
    for line in difference_lines(outcomes):
        console().print(line)


def _run_all(scenarios: list[Scenario]) -> list[RunOutcome]:
    with ProgressBar() as bar:
        return [run(scenario, bar.begin(scenario.policy.name)) for scenario in scenarios]


def show_replay(text: str, *, as_json: bool) -> None:
    """Exits with status 1 where the replay decides something else."""
    heading, steps = read_recording(text.splitlines())
    replayed = replay(heading, steps)
    if as_json:
        typer.echo(json.dumps(_document(heading, replayed)))
    else:
        console().print(_summary(heading, replayed))
    if replayed.difference is not None:
        raise typer.Exit(1)


def _summary(heading: RecordingHeading, replayed: Replayed) -> Text:
    policy = policy_name(heading.config.policy.criteria)
    text = Text(
        f"{heading.replica}, term {heading.term}, from {instant_text(format_instant(heading.at_ms))} on; {policy}\n",
        "dim",
    )
    difference = replayed.difference
    if difference is None:
        end = "it was cut off" if replayed.end is None else replayed.end
        summary = f"{replayed.decisions} decisions in {replayed.steps} steps, and all are the same   ({end})"
        return text.append(summary, "not dim green")
    text.append(
        f"step {difference.step}, at {instant_text(format_instant(difference.now))}, is another\n", "not dim red"
    )
    text.append(f"recorded  {_few(difference.recorded)}\nreplayed  {_few(difference.replayed)}\n", "not dim")
    return text.append(f"{replayed.decisions} decisions before it are the same", "not dim")


def _few(decisions: tuple[Decision, ...]) -> str:
    shown = [" ".join(str(value) for value in row[:4]) for row in encode_decisions(decisions[:_SHOWN_MAX])]
    more = [f"and {len(decisions) - _SHOWN_MAX} more"] if len(decisions) > _SHOWN_MAX else []
    return "; ".join([*shown, *more]) or "nothing"


def _document(heading: RecordingHeading, replayed: Replayed) -> dict[str, Any]:
    difference = replayed.difference
    return {
        "replica": heading.replica,
        "term": heading.term,
        "steps": replayed.steps,
        "decisions": replayed.decisions,
        "end": replayed.end,
        "identical": difference is None,
        "difference": None
        if difference is None
        else {
            "step": difference.step,
            "at": format_instant(difference.now),
            "recorded": encode_decisions(difference.recorded),
            "replayed": encode_decisions(difference.replayed),
        },
    }
