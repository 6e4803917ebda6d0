"""Pieces of Markdown."""

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`+)(.+?)\1")


def head(title: str, source: str, intro: str) -> str:
    """Return the beginning of a generated page; ``source`` is the code that it comes from."""
    note = f"<!-- Written by `python -m docs.generate` from {source}; edit that instead. -->"
    return f"{note}\n\n# {title}\n\n{intro.rstrip()}\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(text) for text in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Return ``text`` on one line, with nothing that ends a cell."""
    return prose(" ".join(text.split())).replace("|", "\\|")


def prose(text: str) -> str:
    """Return ``text`` with nothing outside of code that HTML would take for a tag."""
    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(text):
        parts += [_escaped(text[end : code.start()]), code.group()]
        end = code.end()
    return "".join([*parts, _escaped(text[end:])])


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def plain_docstring(text: str | None) -> str:
    """Return a docstring as Markdown: its literals in single backquotes."""
    return re.sub(r"``(.+?)``", r"`\1`", (text or "").strip())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
