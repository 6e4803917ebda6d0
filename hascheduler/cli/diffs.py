"""Documents as YAML, and what differs between two of them."""

import difflib
from typing import Any

import yaml
from rich.text import Text

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def as_yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def as_text(document: Any) -> Text:
    """As YAML, whose long lines are not broken: it may be copied."""
    return Text(as_yaml(document).rstrip(), no_wrap=True, overflow="ignore")


def diff(before: Any, after: Any, title: str) -> str:
    """A unified diff of their YAML; empty when nothing differs. None stands for what is not there."""
    old, new = ([] if side is None else as_yaml(side).splitlines() for side in (before, after))
    old_name, new_name = ("/dev/null" if side is None else title for side in (before, after))
    return "\n".join(difflib.unified_diff(old, new, old_name, new_name, lineterm=""))


def coloured(text: str) -> Text:
    """A unified diff with its colours."""
    shown = Text()
    for line in text.splitlines():
        head = line.startswith(("+++ ", "--- "))
        shown.append(f"{line}\n", style="bold" if head else _STYLES.get(line[:1], ""))
    return shown
