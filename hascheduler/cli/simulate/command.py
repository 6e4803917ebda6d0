"""``hascheduler simulate``: a scenario on the real dispatch core, in virtual time."""

import json
from typing import Annotated

import typer

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import AsJson
from hascheduler.cli.output.console import console
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
from hascheduler.cli.simulate.replay import show_replay
from hascheduler.cli.simulate.tables import comparison, difference_lines, examples_table, summary
from hascheduler.simulate.examples import example_names, example_note
from hascheduler.simulate.outcome import RunOutcome, as_document
from hascheduler.simulate.report import report
from hascheduler.simulate.run import run
from hascheduler.simulate.scenario import Scenario

_POLICY = "a preset (affinity, fair, swimlanes, balanced) or criteria with commas"


@example(
    "hascheduler simulate --example mixed-day --plot day.png",
    "hascheduler simulate day.yaml --compare fair,affinity --compare lane,score",
    "hascheduler simulate afternoon.jsonl --policy swimlanes",
)
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
