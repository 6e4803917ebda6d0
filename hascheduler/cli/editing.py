"""Editing a document in ``$EDITOR``, as YAML, until it is what one wants or one gives up."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from hascheduler.cli.client import Stale
from hascheduler.cli.diffs import as_yaml, coloured, diff
from hascheduler.cli.documents import read_document
from hascheduler.cli.printable import printable
from hascheduler.cli.questions import agreed, can_ask
from hascheduler.cli.tables import console
from hascheduler.errors import CallerError, InvalidInput, WorldError

Document = dict[str, Any]

_HEAD = "# Edit, save and close. Nothing is changed before you have seen the difference and agreed.\n"


def edit_document(
    title: str,
    stored: Document,
    normal: Callable[[Mapping[str, Any]], Document],
    write: Callable[[Document], Document],
    *,
    yes: bool,
) -> Document | None:
    """What ``write`` made of the edited document; None when nothing was changed.

    After a mistake the editor opens again with one's text, under a line that says what is wrong.
    """
    if not can_ask():
        problem = f"nothing is given to change in {title}, and there is no terminal for an editor"
        raise InvalidInput(("edit",), problem, "options that say what to change")
    text = _HEAD + as_yaml(stored)
    while True:
        edited = _edited(text)
        if edited is None:
            return None
        try:
            document = read_document(edited, title)
            difference = diff(stored, normal(document), title)
            if not difference:
                return None
            console().print(coloured(difference))
            if not agreed("Write this?", yes=yes):
                return None
            return write(document)
        except CallerError as error:
            line = " ".join(str(error).split())
            # What somebody else changed meanwhile has to be looked at first.
            if isinstance(error, Stale) or not _again(line):
                raise CallerError(_kept(line, edited)) from None
            text = f"# {line}\n" + "".join(row for row in edited.splitlines(True) if not row.startswith("#"))
        except WorldError as error:
            raise WorldError(_kept(str(error), edited)) from None


def _again(line: str) -> bool:
    typer.echo(printable(line), err=True)
    return typer.confirm("Edit again?", default=True)


def _kept(line: str, text: str) -> str:
    """``line``, with where the text is that would be lost."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".yaml", delete=False) as file:
        file.write(text)
    return f"{line}; what you wrote is in {file.name}"


def _edited(text: str) -> str | None:
    """What the editor made of ``text``; None when it was saved as it is, or not at all."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "edit.yaml")
        file.write_text(text, "utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603  # the user's own editor
            edited = file.read_text("utf-8", errors="replace")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            problem = f"{editor} failed ({error})"
            raise InvalidInput(("EDITOR",), problem, "an editor that waits until one has finished") from None
    return None if edited == text else edited
