"""``hascheduler apply``: makes the stored resources as files describe them.

The plan is decided from what is stored and carried out on exactly that: a resource that changed in between is a
conflict.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.client import Client, path_of
from hascheduler.cli.input.manifests import MANAGED, Manifest, read_manifests
from hascheduler.cli.input.normal_forms import NORMAL, normal_schedule
from hascheduler.cli.input.prompts import confirmed
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, DryRun, Url, Yes
from hascheduler.cli.output.console import console, print_json
from hascheduler.cli.output.printable import one_printable_line
from hascheduler.cli.output.yaml_text import coloured_diff, yaml_diff
from hascheduler.clock import SystemClock
from hascheduler.errors import CallerError, Conflict, HaschedulerError, InvalidInput, WorldError


class PlannedChange(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One thing to do: ``after`` in place of ``before`` at revision ``rev``; None for what is not there."""

    kind: str
    name: str
    change: PlannedChange
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    rev: int | None = None

    @property
    def difference(self) -> str:
        return yaml_diff(self.before, self.after, f"{self.kind} {self.name}")


_SIGNS = {
    PlannedChange.CREATED: "green",
    PlannedChange.CHANGED: "yellow",
    PlannedChange.PRUNED: "red",
    PlannedChange.UNCHANGED: "dim",
}


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
        steps = make_plan(client, manifests, prune=prune)
        wanted = [step for step in steps if step.change is not PlannedChange.UNCHANGED]
        if as_json and wanted and not (yes or dry_run):
            raise InvalidInput(("--json",), "leaves nobody to ask", "--yes or --dry-run beside it")
        if not as_json:
            _show(wanted)
        failures: dict[tuple[str, str], HaschedulerError] = {}
        doing = bool(wanted) and not dry_run and confirmed(_question(len(wanted)), yes=yes)
        for step in wanted if doing else ():
            try:
                carry_out(client, step)
            except (CallerError, WorldError) as error:
                failures[step.kind, step.name] = error
    _print_outcome(steps, failures, done=doing or not wanted, dry_run=dry_run, as_json=as_json)
    if failures:
        refused = any(isinstance(error, CallerError) and not isinstance(error, Conflict) for error in failures.values())
        raise typer.Exit(2 if refused else 1)


def _question(count: int) -> str:
    return f"Apply {count} change{'s' if count > 1 else ''}?"


def _show(steps: Sequence[PlanStep]) -> None:
    for step in steps:
        console().print(Text(f"{step.kind} {step.name} {_will(step.change)}", style=f"bold {_SIGNS[step.change]}"))
        console().print(coloured_diff(step.difference), soft_wrap=True)


def _will(change: PlannedChange) -> str:
    return {PlannedChange.CREATED: "is new", PlannedChange.CHANGED: "changes", PlannedChange.PRUNED: "goes"}.get(
        change, str(change)
    )


def _print_outcome(
    steps: Sequence[PlanStep],
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
        print_json({"dry_run": dry_run, "documents": [_as_json(step, failures) for step in steps]})
        return
    counts = Counter(step.change for step in steps if (step.kind, step.name) not in failures)
    parts = [Text(f"{counts[change]} {change}", style=_SIGNS[change]) for change in PlannedChange if counts[change]]
    if failures:
        parts.append(Text(f"{len(failures)} failed", style="bold red"))
    how = "" if done else "would be: " if dry_run else "not done: "
    console().print(Text.assemble(how, Text(", ").join(parts)))


def _as_json(step: PlanStep, failures: dict[tuple[str, str], HaschedulerError]) -> dict[str, Any]:
    failure = failures.get((step.kind, step.name))
    return {
        "kind": step.kind,
        "name": step.name,
        "change": step.change.value,
        "difference": step.difference,
        "problem": None if failure is None else str(failure),
    }


def make_plan(client: Client, manifests: Sequence[Manifest], *, prune: bool) -> list[PlanStep]:
    """Schedules after what they name; what is pruned last."""
    ordered = sorted(manifests, key=lambda manifest: manifest.kind == "schedule")
    steps = [_step(client, manifest) for manifest in ordered]
    return [*steps, *(_pruned(client, manifests) if prune else ())]


def carry_out(client: Client, step: PlanStep) -> None:
    """Does it; `RevisionChanged` or `Conflict` when what is stored is not what the plan saw."""
    path = path_of(step.kind, step.name)
    if step.change is PlannedChange.PRUNED:
        client.ask("DELETE", path, rev=step.rev)
    elif step.kind != "schedule":
        assert step.after is not None
        body = {part: value for part, value in step.after.items() if part != "name"}
        client.ask("PUT", path, body, rev=step.rev, new=step.rev is None)
    elif step.change is PlannedChange.CREATED:
        client.ask("POST", "/v1/schedules", step.after)
    else:
        _change_schedule(client, step, path)


def _change_schedule(client: Client, step: PlanStep, path: str) -> None:
    """Being paused is no part of a replacement: it is changed by its own requests."""
    assert step.before is not None
    assert step.after is not None
    before, after = dict(step.before), dict(step.after)
    was_paused, is_paused = before.pop("paused", False), after.pop("paused", False)
    rev = step.rev
    if before != after:
        rev = client.ask("PUT", path, after, rev=rev)["rev"]
    if was_paused != is_paused:
        action = "pause" if is_paused else "resume"
        client.ask("POST", f"{path}/{action}", {}, rev=rev)


def _step(client: Client, manifest: Manifest) -> PlanStep:
    stored = client.find(path_of(manifest.kind, manifest.name))
    after = dict(manifest.body)
    if manifest.paused:
        after = normal_schedule({**after, "paused": True})
    if stored is None:
        return PlanStep(manifest.kind, manifest.name, PlannedChange.CREATED, None, after)
    before = NORMAL[manifest.kind](stored)
    if manifest.kind == "schedule":
        if manifest.paused is None and before.get("paused"):
            after = normal_schedule({**after, "paused": True})
        after["trigger"] = _with_stored_anchor(after["trigger"], before["trigger"])
    if manifest.kind == "definition" and "conflict_group" in after and "conflict_scope" in before:
        # A replacement keeps the scope unless it brings another.
        after = NORMAL["definition"]({"conflict_scope": before["conflict_scope"], **after})
    change = PlannedChange.UNCHANGED if before == after else PlannedChange.CHANGED
    return PlanStep(manifest.kind, manifest.name, change, before, after, stored["rev"])


def _with_stored_anchor(trigger: Mapping[str, Any], stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """A replacement keeps the phase of an interval unless it brings another."""
    if trigger["type"] == stored["type"] == "interval" and "anchor" not in trigger and "anchor" in stored:
        # In the order of the normal form: the anchor comes after the span.
        head = {"type": "interval", "every": trigger["every"], "anchor": stored["anchor"]}
        return {**head, **trigger}
    return trigger


def _pruned(client: Client, manifests: Sequence[Manifest]) -> Iterator[PlanStep]:
    kept = {manifest.name for manifest in manifests if manifest.kind == "schedule"}
    key, value = MANAGED
    for stored in client.items("/v1/schedules", [("label", f"{key}={value}")]):
        # Looked at again: what lacks the label must not go, whatever the answer holds.
        if stored["name"] not in kept and stored.get("labels", {}).get(key) == value:
            yield PlanStep(
                "schedule", stored["name"], PlannedChange.PRUNED, normal_schedule(stored), None, stored["rev"]
            )
