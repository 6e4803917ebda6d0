"""What `hascheduler apply` would do, decided from what is stored, and then done to exactly that."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hascheduler.cli.client import Client, path_of
from hascheduler.cli.diffs import diff
from hascheduler.cli.manifests import MANAGED, Manifest
from hascheduler.cli.normal_forms import NORMAL, normal_schedule


class Change(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: ``after`` in place of ``before`` at revision ``rev``; None for what is not there."""

    kind: str
    name: str
    change: Change
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    rev: int | None = None

    @property
    def difference(self) -> str:
        return diff(self.before, self.after, f"{self.kind} {self.name}")


def plan(client: Client, manifests: Sequence[Manifest], *, prune: bool) -> list[Step]:
    """Schedules after what they name; what is pruned last."""
    ordered = sorted(manifests, key=lambda manifest: manifest.kind == "schedule")
    steps = [_step(client, manifest) for manifest in ordered]
    return [*steps, *(_pruned(client, manifests) if prune else ())]


def carry_out(client: Client, step: Step) -> None:
    """Does it; `Stale` or `Conflict` when what is stored is not what the plan saw."""
    path = path_of(step.kind, step.name)
    if step.change is Change.PRUNED:
        client.ask("DELETE", path, rev=step.rev)
    elif step.kind != "schedule":
        assert step.after is not None
        body = {part: value for part, value in step.after.items() if part != "name"}
        client.ask("PUT", path, body, rev=step.rev, new=step.rev is None)
    elif step.change is Change.CREATED:
        client.ask("POST", "/v1/schedules", step.after)
    else:
        _change_schedule(client, step, path)


def _change_schedule(client: Client, step: Step, path: str) -> None:
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


def _step(client: Client, manifest: Manifest) -> Step:
    stored = client.find(path_of(manifest.kind, manifest.name))
    after = dict(manifest.body)
    if manifest.paused:
        after = normal_schedule({**after, "paused": True})
    if stored is None:
        return Step(manifest.kind, manifest.name, Change.CREATED, None, after)
    before = NORMAL[manifest.kind](stored)
    if manifest.kind == "schedule":
        if manifest.paused is None and before.get("paused"):
            after = normal_schedule({**after, "paused": True})
        after["trigger"] = _with_stored_anchor(after["trigger"], before["trigger"])
    if manifest.kind == "definition" and "conflict_group" in after and "conflict_scope" in before:
        # A replacement keeps the scope unless it brings another.
        after = NORMAL["definition"]({"conflict_scope": before["conflict_scope"], **after})
    change = Change.UNCHANGED if before == after else Change.CHANGED
    return Step(manifest.kind, manifest.name, change, before, after, stored["rev"])


def _with_stored_anchor(trigger: Mapping[str, Any], stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """A replacement keeps the phase of an interval unless it brings another."""
    if trigger["type"] == stored["type"] == "interval" and "anchor" not in trigger and "anchor" in stored:
        # In the order of the normal form: the anchor comes after the span.
        head = {"type": "interval", "every": trigger["every"], "anchor": stored["anchor"]}
        return {**head, **trigger}
    return trigger


def _pruned(client: Client, manifests: Sequence[Manifest]) -> Iterator[Step]:
    kept = {manifest.name for manifest in manifests if manifest.kind == "schedule"}
    key, value = MANAGED
    for stored in client.items("/v1/schedules", [("label", f"{key}={value}")]):
        # Looked at again: what lacks the label must not go, whatever the answer holds.
        if stored["name"] not in kept and stored.get("labels", {}).get(key) == value:
            yield Step("schedule", stored["name"], Change.PRUNED, normal_schedule(stored), None, stored["rev"])
