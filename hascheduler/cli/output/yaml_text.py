"""Documents as YAML, and differences between two of them: line by line, or field by field after a command.

Both documents are answers of a replica, with their defaults. Fields of parts are listed singly (``retry.attempts``);
anything deeper, such as a payload, is one value.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from rich.text import Text

from hascheduler.cli.output.printable import is_printable, printable

ANSWERED = frozenset(
    {
        "rev", "created_at", "paused_at", "paused_because", "last_nominal_at", "next_at", "next_due_at", "ahead_until",
        "counts",
        "failures_in_a_row", "late", "warnings", "change", "changes",
    }
)  # fmt: skip
"""The fields that only answers have, from a replica or from ``put --json``."""

Answer = Mapping[str, Any]

_VALUE_LENGTH_MAX = 100
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class _Dumper(yaml.SafeDumper):
    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Quote the text if it holds what a terminal must not get, because YAML has escapes only in quotes."""
        style = None if all(map(is_printable, text)) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_multi_representer(str, _Dumper.represent_text)
_Dumper.add_multi_representer(dict, _Dumper.represent_dict)  # answers of the SDK


def as_yaml(document: Any) -> str:
    """Return ``document`` as YAML that is safe for a terminal."""
    return printable(yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))


def in_one_line(value: Any) -> str:
    """Return a value as YAML on one line."""
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=2**31)
    return printable(text.strip().removesuffix("\n..."))


def as_text(document: Any) -> Text:
    """Return YAML whose long lines are not broken, so that it can be copied."""
    return Text(as_yaml(document).rstrip(), no_wrap=True, overflow="ignore")


def defaults_text(given: Answer, answer: Answer) -> Text:
    """Return the fields of ``answer`` that ``given`` leaves out, as comments: a document before them stays valid."""
    return Text("\n".join(_defaults(given, answer)), style="dim")


def _defaults(given: Answer, answer: Answer, above: str = "") -> Iterator[str]:
    for name, value in answer.items():
        if name not in given and (above or name not in ANSWERED):
            yield f"# {above}{name}: {_shown(value)} (default)"
        elif not above and isinstance(value, Mapping) and isinstance(given.get(name), Mapping):
            yield from _defaults(given[name], value, f"{name}.")


def yaml_diff(before: Any, after: Any, title: str) -> str:
    """Return a unified diff of their YAML, empty if nothing differs. None stands for a missing document."""
    old, new = ([] if side is None else as_yaml(side).splitlines() for side in (before, after))
    old_name, new_name = ("/dev/null" if side is None else title for side in (before, after))
    return "\n".join(difflib.unified_diff(old, new, old_name, new_name, lineterm=""))


def coloured_diff(text: str) -> Text:
    """Return a unified diff in colour."""
    shown = Text()
    for line in text.splitlines():
        head = line.startswith(("+++ ", "--- "))
        shown.append(f"{line}\n", style="bold" if head else _STYLES.get(line[:1], ""))
    return shown


@dataclass(frozen=True, slots=True)
class NounChange:
    """The change that a command made to a noun.

    ``fields`` are paths with the values before and after, None for a missing value; a new noun has none.
    """

    word: str
    fields: Sequence[tuple[str, Any, Any]] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the fields that extend the replica's answer."""
        fields = [{"field": field, "before": before, "after": after} for field, before, after in self.fields]
        return {"change": self.word, "changes": fields}

    def as_text(self, noun: str, comment: str = "") -> Text:
        """Return the change as lines that begin with ``comment``, so that a document printed after them stays valid."""
        fields = (f"  {field}: {_shown(before)} → {_shown(after)}" for field, before, after in self.fields)
        return Text("\n".join(comment + line for line in (f"{noun}: {self.word}", *fields)), style="dim")


def change(before: Answer | None, after: Answer) -> NounChange:
    """Return the difference, including any change that another caller made in between."""
    if before is None:
        return NounChange("created")
    is_same = before.get("rev") == after.get("rev")
    fields = [] if is_same else [*_differences(before, after)]
    return NounChange("changed" if fields else "unchanged", fields)


def _differences(before: Answer, after: Answer, above: str = "") -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if not above and name in ANSWERED:
            continue
        if not above and isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, f"{name}.")
        elif (type(old), old) != (type(new), new):
            yield above + name, old, new


def _shown(value: Any) -> str:
    text = "none" if value is None else in_one_line(value)
    return text if len(text) <= _VALUE_LENGTH_MAX else f"{text[:_VALUE_LENGTH_MAX]}…"
