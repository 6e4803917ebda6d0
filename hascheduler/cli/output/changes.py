"""What a command changed of a noun: created, unchanged, or each field with its old and its new value.

Two answers of a replica are compared, in which defaults are said. Fields of parts stand alone (``retry.attempts``);
what lies deeper, such as a payload, is one value.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

ANSWERED = frozenset(
    {
        "rev", "created_at", "paused_at", "paused_because", "last_nominal_at", "next_at", "next_due_at", "ahead_until",
        "counts",
        "failures_in_a_row", "warnings", "change", "changes",
    }
)  # fmt: skip
"""What only answers have, those of a replica and those of ``put --json``."""

Answer = Mapping[str, Any]

_VALUE_LENGTH_MAX = 100


@dataclass(frozen=True, slots=True)
class FieldChange:
    """``field`` is its path; None stands for what is not there."""

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.field}: {_shown(self.before)} → {_shown(self.after)}"


@dataclass(frozen=True, slots=True)
class NounChange:
    """What became of a noun; nothing is listed of one that is new."""

    word: str
    fields: Sequence[FieldChange] = ()

    def as_json(self) -> dict[str, Any]:
        """Beside what the answer of a replica has."""
        fields = [{"field": one.field, "before": one.before, "after": one.after} for one in self.fields]
        return {"change": self.word, "changes": fields}

    def as_text(self, noun: str, comment: str = "") -> "Text":
        """``comment`` begins each line, where a document follows that is to stay one."""
        from rich.text import Text

        lines = [f"{noun}: {self.word}", *(f"  {one}" for one in self.fields)]
        return Text("\n".join(comment + line for line in lines), style="dim")


def change(before: Answer | None, after: Answer) -> NounChange:
    """What a change of another caller between the two has changed is in it as well."""
    if before is None:
        return NounChange("created")
    if before.get("rev") == after.get("rev"):
        return NounChange("unchanged")
    fields = [
        one
        for one in _differences(before, after, "")
        if one.field.split(".", 1)[0] not in ANSWERED
    ]  # fmt: skip
    return NounChange("changed" if fields else "unchanged", fields)


def _differences(before: Answer, after: Answer, above: str) -> Iterator[FieldChange]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if not above and isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, f"{name}.")
        elif (type(old), old) != (type(new), new):
            yield FieldChange(above + name, old, new)


def _shown(value: Any) -> str:
    from hascheduler.cli.output.yaml_text import in_one_line

    text = "none" if value is None else in_one_line(value)
    return text if len(text) <= _VALUE_LENGTH_MAX else f"{text[:_VALUE_LENGTH_MAX]}…"
