"""``hascheduler apply``: makes what is stored what files say."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.client import Client
from hascheduler.cli.diffs import coloured
from hascheduler.cli.manifests import read_manifests
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, DryRun, Url, Yes
from hascheduler.cli.plans import Change, Step, carry_out, plan
from hascheduler.cli.printable import one_printable_line
from hascheduler.cli.questions import agreed
from hascheduler.cli.tables import console, print_json
from hascheduler.clock import SystemClock
from hascheduler.errors import CallerError, Conflict, HaschedulerError, InvalidInput, WorldError

_SIGNS = {Change.CREATED: "green", Change.CHANGED: "yellow", Change.PRUNED: "red", Change.UNCHANGED: "dim"}


@example(
    "hascheduler apply -f schedules/",
    "hascheduler apply -f schedules/ --prune --yes    (where nobody can answer)",
    "cat tick.yaml | hascheduler apply -f - --dry-run",
)
def apply(
    files: Annotated[
        list[str], typer.Option("-f", "--file", metavar="FILE|DIR|-", help="What is wanted; again for more.")
    ],
    *,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete schedules that apply once wrote and that are in no file any more.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make schedules, definitions, lanes and tenants as files say.

    Documents are `kind: Schedule`, `Definition`, `Lane` or `Tenant`, `name: …`, and the rest as in a request. Nothing
    is sent while any of them is wrong. What is changed is what was shown: if somebody was faster, that document fails.
    Asks first; without a terminal it does nothing but say so (status 2), unless with --yes. Status 1: some documents
    failed.
    """
    manifests = read_manifests(files, SystemClock().wall_ms())
    with Client(url) as client:
        steps = plan(client, manifests, prune=prune)
        wanted = [step for step in steps if step.change is not Change.UNCHANGED]
        if as_json and wanted and not (yes or dry_run):
            raise InvalidInput(("--json",), "leaves nobody to ask", "--yes or --dry-run beside it")
        if not as_json:
            _show(wanted)
        failures: dict[tuple[str, str], HaschedulerError] = {}
        doing = bool(wanted) and not dry_run and agreed(_question(len(wanted)), yes=yes)
        for step in wanted if doing else ():
            try:
                carry_out(client, step)
            except (CallerError, WorldError) as error:
                failures[step.kind, step.name] = error
    _tell(steps, failures, done=doing or not wanted, dry_run=dry_run, as_json=as_json)
    if failures:
        refused = any(isinstance(error, CallerError) and not isinstance(error, Conflict) for error in failures.values())
        raise typer.Exit(2 if refused else 1)


def _question(count: int) -> str:
    return f"Apply {count} change{'s' if count > 1 else ''}?"


def _show(steps: Sequence[Step]) -> None:
    for step in steps:
        console().print(Text(f"{step.kind} {step.name} {_will(step.change)}", style=f"bold {_SIGNS[step.change]}"))
        console().print(coloured(step.difference), soft_wrap=True)


def _will(change: Change) -> str:
    return {Change.CREATED: "is new", Change.CHANGED: "changes", Change.PRUNED: "goes"}.get(change, str(change))


def _tell(
    steps: Sequence[Step],
    failures: dict[tuple[str, str], HaschedulerError],
    *,
    done: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """What was done, for programs or for people; what failed also on standard error."""
    for (kind, name), error in failures.items():
        typer.echo(f"hascheduler: {kind} {name}: {one_printable_line(str(error))}", err=True)
    if as_json:
        print_json({"dry_run": dry_run, "documents": [_told(step, failures) for step in steps]})
        return
    counts = Counter(step.change for step in steps if (step.kind, step.name) not in failures)
    parts = [Text(f"{counts[change]} {change}", style=_SIGNS[change]) for change in Change if counts[change]]
    if failures:
        parts.append(Text(f"{len(failures)} failed", style="bold red"))
    how = "" if done else "would be: " if dry_run else "not done: "
    console().print(Text.assemble(how, Text(", ").join(parts)))


def _told(step: Step, failures: dict[tuple[str, str], HaschedulerError]) -> dict[str, Any]:
    failure = failures.get((step.kind, step.name))
    return {
        "kind": step.kind,
        "name": step.name,
        "change": step.change.value,
        "difference": step.difference,
        "problem": None if failure is None else str(failure),
    }
