"""The command ``hascheduler apply``: makes the stored resources match the files.

The plan is made from the stored revisions and carried out on exactly those: if a resource changed in between, that is a
conflict.

Every noun may have an owner: schedules as a label, the others as a field. ``--prune`` deletes what its owner applied
and the files no longer hold: schedules first, then the nouns that they name, but nothing that is still used. Another
owner's resources are neither changed nor deleted, unless they are taken over.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.text import Text

from hascheduler.cli.input import manifests
from hascheduler.cli.input.documents import NORMAL
from hascheduler.cli.input.values import confirmed
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DryRun, Yes, option
from hascheduler.cli.output.answers import OutputForm, Shown, asks
from hascheduler.cli.output.console import console
from hascheduler.cli.output.printable import one_printable_line
from hascheduler.cli.output.yaml_text import coloured_diff, yaml_diff
from hascheduler.cli.replica import Scheduler, as_cli_errors, named_api, unless_unreadable
from hascheduler.cli.resources.named import Noun, uses
from hascheduler.clock import SystemClock
from hascheduler.errors import CallerError, Conflict, HaschedulerError, InvalidInput, NotFound, WorldError
from hascheduler.model.values.instants import WallMs
from hascheduler.triggers import remarks
from hascheduler.triggers.requests import read_trigger


class PlannedChange(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    REPAIRED = "repaired"
    """The stored document can't be read, and is replaced unseen."""
    UNCHANGED = "unchanged"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One change: ``after`` replaces ``before`` at revision ``rev``; None for a missing noun.

    ``used_by`` names what still uses a noun that would be pruned and therefore stays.
    """

    kind: str
    name: str
    change: PlannedChange
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    rev: int | None = None
    used_by: str | None = None

    @property
    def noun(self) -> Noun:
        return self.kind, self.name

    @property
    def difference(self) -> str:
        return yaml_diff(self.before, self.after, f"{self.kind} {self.name}")

    @property
    def warnings(self) -> Sequence[str]:
        """Return warnings about what its author may not have meant."""
        if self.kind != "schedule" or self.after is None:
            return ()
        return remarks(read_trigger(self.after["trigger"], WallMs(0)))


Failures = dict[Noun, HaschedulerError]
_SIGNS = {
    PlannedChange.CREATED: ("green", "is new"),
    PlannedChange.CHANGED: ("yellow", "changes"),
    PlannedChange.REPAIRED: ("yellow", "is unreadable and is written again"),
    PlannedChange.PRUNED: ("red", "goes"),
    PlannedChange.UNCHANGED: ("dim", "is unchanged"),
}
"""The colour of each change, and its text in the plan."""


@example(
    "hascheduler apply -f schedules/",
    "hascheduler apply -f schedules/ --owner team-a --prune --dry-run",
    "hascheduler apply -f schedules/ --owner team-a --prune --yes    (where nobody can answer)",
    "cat tick.yaml | hascheduler apply -f - --dry-run",
)
@asks()
def apply(
    scheduler: Scheduler,
    files: Annotated[list[str], option("-f,--file FILE|DIR|-", "File or directory of documents, or -; repeatable")],
    *,
    prune: Annotated[bool, option("--prune", "Delete what this owner has and no file contains")] = False,
    owner: Annotated[
        str | None, option("--owner NAME", "Owner of the documents; default: the one in a document `kind: Apply`")
    ] = None,
    take_over: Annotated[
        bool, option("--take-over", "Also change what another owner applied, and make this owner its owner")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    output: OutputForm,
) -> Shown:
    """Create or update schedules, definitions, lanes, calendars and tenants from files.

    Documents have `kind: Schedule`, `Definition`, `Lane`, `Calendar` or `Tenant`, `name: …`, and the fields of a
    request. Nothing is sent if any document is invalid. The changes are shown before you confirm; a document that
    another request changes in between fails. An unreadable stored document is written again from the file.
    Documents belong to their owner; those of another owner are refused (status 2), unless with --take-over.
    --prune deletes only this owner's, schedules first, and nothing that a schedule, a job that has not ended or a
    token still uses. Without a terminal, --yes is required (status 2). Status 1: some documents failed.
    """
    files_want = manifests.read_manifests(files, SystemClock().wall_ms(), owner)
    if prune and files_want.owner is None:
        expected = "--owner NAME, or a document with kind: Apply and owner: NAME"
        raise InvalidInput(("--prune",), "no owner is given", expected)
    steps = make_plan(scheduler, files_want, prune=prune)
    if not take_over:
        _require_own(steps)
    wanted = [step for step in steps if step.change is not PlannedChange.UNCHANGED]
    possible = [step for step in wanted if step.used_by is None]
    if not output.is_for_programs:
        _show(wanted)
    elif possible and not (yes or dry_run):
        raise InvalidInput((f"-o {output}",), "leaves no terminal to confirm", "--yes or --dry-run with it")
    failures: Failures = {step.noun: Conflict(step.used_by) for step in wanted if step.used_by is not None}
    question = f"Apply {len(possible)} change{'s' if len(possible) > 1 else ''}?"
    doing = bool(possible) and not dry_run and confirmed(question, yes=yes)
    if doing:
        _carry_out_all(scheduler, possible, failures)
    for (kind, name), error in failures.items():
        typer.echo(f"hascheduler: {kind} {name}: {one_printable_line(str(error))}", err=True)
    how = "" if doing or not possible else "would be: " if dry_run else "not done: "
    refused = any(isinstance(error, CallerError) and not isinstance(error, Conflict) for error in failures.values())
    answer = {"dry_run": dry_run, "documents": [_as_json(step, failures) for step in steps]}
    return Shown(answer, _outcome(steps, failures, how), 2 if refused else int(bool(failures)))


def _require_own(steps: Sequence[PlanStep]) -> None:
    """Raise a `CallerError`, on one line, if a step would change a noun that another owner applied."""
    others = []
    for step in steps:
        if step.before is not None and step.after is not None:
            owner, wanted = manifests.owner_of(step.kind, step.before), manifests.owner_of(step.kind, step.after)
            if owner not in (None, wanted):
                others.append(f"{step.kind} {step.name} belongs to {owner}, not {wanted}")
    if others:
        raise CallerError(f"{manifests.first_of(others)}; --take-over changes the owner")


def _carry_out_all(scheduler: Scheduler, steps: Sequence[PlanStep], failures: Failures) -> None:
    """Carry out all steps that can be, and add the errors of the others to ``failures``.

    After all else is done, the use of nouns is checked once more: schedules may have stayed, or come.
    """
    still_used: dict[Noun, str] | None = None
    nouns = _pruned_nouns(steps)
    for step in steps:
        try:
            with as_cli_errors():
                if step.noun in nouns:
                    still_used = uses(scheduler, nouns, {}) if still_used is None else still_used
                    if step.noun in still_used:
                        raise Conflict(still_used[step.noun])
                carry_out(scheduler, step)
        except (CallerError, WorldError) as error:
            failures[step.noun] = error


def _pruned_nouns(steps: Sequence[PlanStep]) -> list[Noun]:
    """Return the nouns to delete that schedules and jobs may still name."""
    return [step.noun for step in steps if step.change is PlannedChange.PRUNED and step.kind != "schedule"]


def _show(steps: Sequence[PlanStep]) -> None:
    for step in steps:
        style, will = _SIGNS[step.change]
        head = f"{step.kind} {step.name} {will if step.used_by is None else f'is kept: {step.used_by}'}"
        console().print(Text(head, style=f"bold {style}"), soft_wrap=True)
        if step.used_by is None:
            console().print(coloured_diff(step.difference), soft_wrap=True)
            for warning in step.warnings:
                console().print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def _outcome(steps: Sequence[PlanStep], failures: Failures, how: str) -> Text:
    """Return the counts of changed and failed documents."""
    counts = Counter(step.change for step in steps if step.noun not in failures)
    parts = [Text(f"{counts[change]} {change}", style=_SIGNS[change][0]) for change in PlannedChange if counts[change]]
    if failures:
        parts.append(Text(f"{len(failures)} failed", style="bold red"))
    return Text.assemble(how, Text(", ").join(parts))


def _as_json(step: PlanStep, failures: Failures) -> dict[str, Any]:
    planned = {"kind": step.kind, "name": step.name, "change": step.change.value, "difference": step.difference}
    problem = str(failures[step.noun]) if step.noun in failures else None
    return {**planned, "warnings": list(step.warnings), "problem": problem}


def make_plan(scheduler: Scheduler, files_want: manifests.Wanted, *, prune: bool) -> list[PlanStep]:
    """Return the steps: schedules after the nouns that they name, pruned nouns last, and of those schedules first."""
    ordered = sorted(files_want.manifests, key=lambda manifest: manifest.kind == "schedule")
    steps = [_step(scheduler, manifest) for manifest in ordered]
    if not prune:
        return steps
    steps += _pruned(scheduler, files_want)
    used = uses(scheduler, _pruned_nouns(steps), {step.name: step.after for step in steps if step.kind == "schedule"})
    return [replace(step, used_by=used[step.noun]) if step.noun in used else step for step in steps]


def carry_out(scheduler: Scheduler, step: PlanStep) -> None:
    """Carry out a step; raise `Refused`, 409 or 412, if the stored noun is not the one in the plan."""
    api = named_api(scheduler, step.kind)
    if step.change is PlannedChange.PRUNED:
        if not api.delete(step.name, if_match=step.rev):
            raise NotFound(step.kind, step.name)
        return
    assert step.after is not None
    if step.kind != "schedule":
        body = {part: value for part, value in step.after.items() if part != "name"}
        is_new = step.change is PlannedChange.CREATED
        api.put_document(step.name, body, if_match=step.rev, if_none_match="*" if is_new else None)
    elif step.change is PlannedChange.CREATED:
        scheduler.schedules.create_document(step.after)
    else:
        _change_schedule(scheduler, step)


def _change_schedule(scheduler: Scheduler, step: PlanStep) -> None:
    """Replace the schedule, and change its pause by separate requests, because a replacement does not include it."""
    assert step.after is not None
    after, schedules, rev = dict(step.after), scheduler.schedules, step.rev
    is_paused = after.pop("paused", False)
    if step.before is None:
        written = schedules.put_document(step.name, after)
        was_paused, rev = written["paused"], written["rev"]
        is_paused = is_paused or was_paused
    else:
        before = dict(step.before)
        was_paused = before.pop("paused", False)
        if before != after:
            rev = schedules.put_document(step.name, after, if_match=rev)["rev"]
    if was_paused != is_paused:
        change = schedules.pause if is_paused else schedules.resume
        change(step.name, if_match=rev)


def _step(scheduler: Scheduler, manifest: manifests.Manifest) -> PlanStep:
    kind, name, after = manifest.kind, manifest.name, dict(manifest.body)
    if manifest.paused:
        after["paused"] = True
    stored: Any = unless_unreadable(lambda: named_api(scheduler, kind).find(name), False)
    if not stored:
        return PlanStep(kind, name, PlannedChange.CREATED if stored is None else PlannedChange.REPAIRED, None, after)
    before = NORMAL[kind](stored)
    if kind == "schedule":
        if manifest.paused is None and before.get("paused"):
            after["paused"] = True
        after["trigger"] = _with_stored_anchor(after["trigger"], before["trigger"])
    owner = manifests.owner_of(kind, before)
    if owner is not None and manifests.owner_of(kind, after) is None:
        # Files that name no owner leave the stored owner in place.
        after = manifests.owned_by(kind, after, owner)
    if "conflict_group" in after and "conflict_scope" in before:
        # A replacement keeps the scope unless it sets another.
        after = NORMAL[kind]({"conflict_scope": before["conflict_scope"], **after})
    change = PlannedChange.UNCHANGED if before == after else PlannedChange.CHANGED
    return PlanStep(kind, name, change, before, after, stored["rev"])


def _with_stored_anchor(trigger: Mapping[str, Any], stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep the phase of an interval unless the replacement sets another; likewise for each interval of several."""
    if trigger["type"] == stored.get("type") == "any":
        known = [*stored["of"], *({} for _ in trigger["of"])]
        parts = [
            _with_stored_anchor(part, before) if part.get("every") == before.get("every") else part
            for part, before in zip(trigger["of"], known, strict=False)
        ]
        return {**trigger, "of": parts}
    if trigger["type"] == stored.get("type") == "interval" and "anchor" in stored:
        # In the order of the normal form: the anchor comes after the span.
        return {"type": "interval", "every": trigger["every"], "anchor": stored["anchor"], **trigger}
    return trigger


_PRUNED = ("schedule", "definition", "lane", "calendar", "tenant")
"""The order of deletion: no noun goes before those that name it."""


def _pruned(scheduler: Scheduler, files_want: manifests.Wanted) -> Iterator[PlanStep]:
    assert files_want.owner is not None
    labels = dict([manifests.MANAGED, (manifests.OWNER, files_want.owner)])
    kept = {(manifest.kind, manifest.name) for manifest in files_want.manifests}
    for kind in _PRUNED:
        listed = scheduler.schedules.list(labels) if kind == "schedule" else named_api(scheduler, kind).list()
        for stored in listed:
            # Checked one by one: a noun that is not marked as this owner's must not go, whatever the answer holds.
            is_own = manifests.owner_of(kind, stored) == files_want.owner
            if kind == "schedule":
                is_own = stored.get("labels", {}).items() >= labels.items()
            if is_own and (kind, stored["name"]) not in kept:
                yield PlanStep(kind, stored["name"], PlannedChange.PRUNED, NORMAL[kind](stored), None, stored["rev"])
