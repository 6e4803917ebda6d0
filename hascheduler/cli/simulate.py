"""``hascheduler simulate``: what would happen, without a server."""

import json
from typing import Annotated

import typer

from hascheduler.cli.on_demand import example
from hascheduler.cli.options import AsJson
from hascheduler.cli.simulate_input import complete_example, complete_policy, read_scenario, scenarios_under
from hascheduler.cli.simulate_output import ProgressBar, drawing, write_picture
from hascheduler.cli.simulate_tables import comparison, examples_table, summary
from hascheduler.cli.tables import console
from hascheduler.simulate.examples import example_names, example_note
from hascheduler.simulate.outcome import Outcome, as_document
from hascheduler.simulate.report import report
from hascheduler.simulate.run import run
from hascheduler.simulate.scenario import Scenario

_POLICY = "a preset (affinity, fair, swimlanes, balanced) or criteria with commas"


@example(
    "hascheduler simulate --example mixed-day --plot day.png",
    "hascheduler simulate day.yaml --compare fair,affinity --compare lane,score",
)
def simulate(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A scenario, YAML or JSON; - reads it from here.")
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
    """Run a scenario on the real dispatch core in virtual time, and show what comes of it."""
    if list_examples:
        console().print(examples_table([(name, example_note(name)) for name in example_names()]))
        return
    scenarios = scenarios_under(read_scenario(file, example), policy, compare or [])
    draw = None if plot is None else drawing(plot)
    outcomes = _run_all(scenarios)
    if draw is not None and plot is not None:
        write_picture(plot, draw(outcomes))
    if as_json:
        documents = {outcome.scenario.policy.name: as_document(outcome) for outcome in outcomes}
        typer.echo(json.dumps(documents if compare else next(iter(documents.values())), ensure_ascii=False))
        return
    reports, note = [report(outcome) for outcome in outcomes], scenarios[0].note
    console().print(comparison(reports, note) if compare else summary(reports[0], note))


def _run_all(scenarios: list[Scenario]) -> list[Outcome]:
    with ProgressBar() as bar:
        return [run(scenario, bar.begin(scenario.policy.name)) for scenario in scenarios]
