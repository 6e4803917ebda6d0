"""Documents as YAML, and what differs between two of them."""

import difflib
from typing import Any

import yaml
from rich.text import Text

from hascheduler.cli.output.printable import is_printable, printable

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class _Dumper(yaml.SafeDumper):
    def represent_text(self, text: str) -> yaml.ScalarNode:
        """In quotes where it holds what a terminal must not get, as YAML has escapes in quotes alone."""
        style = None if all(map(is_printable, text)) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _Dumper.represent_text)


def as_yaml(document: Any) -> str:
    """It means ``document``, and a terminal may be given it."""
    return printable(yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))


def in_one_line(value: Any) -> str:
    """A value as YAML in a line of its own."""
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=2**31)
    return printable(text.strip().removesuffix("\n..."))


def as_text(document: Any) -> Text:
    """As YAML, whose long lines are not broken: it may be copied."""
    return Text(as_yaml(document).rstrip(), no_wrap=True, overflow="ignore")


def yaml_diff(before: Any, after: Any, title: str) -> str:
    """A unified diff of their YAML; empty when nothing differs. None stands for what is not there."""
    old, new = ([] if side is None else as_yaml(side).splitlines() for side in (before, after))
    old_name, new_name = ("/dev/null" if side is None else title for side in (before, after))
    return "\n".join(difflib.unified_diff(old, new, old_name, new_name, lineterm=""))


def coloured_diff(text: str) -> Text:
    """A unified diff with its colours."""
    shown = Text()
    for line in text.splitlines():
        head = line.startswith(("+++ ", "--- "))
        shown.append(f"{line}\n", style="bold" if head else _STYLES.get(line[:1], ""))
    return shown
