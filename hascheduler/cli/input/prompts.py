"""Questions to the user: a confirmation, a deletion after one, and a document edited in ``$EDITOR``.

Without a terminal nothing is asked: ``--yes`` has to answer.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from hascheduler.cli.input.documents import read_document
from hascheduler.cli.input.normal_forms import NORMAL
from hascheduler.cli.input.values import check_name
from hascheduler.cli.output.answers import Shown
from hascheduler.cli.output.console import console
from hascheduler.cli.output.printable import printable
from hascheduler.cli.output.yaml_text import as_yaml, coloured_diff, yaml_diff
from hascheduler.cli.replica import NamedApi, RevisionChanged, Scheduler, as_cli_errors, named_api, unless_unreadable
from hascheduler.errors import CallerError, InvalidInput, NotFound, WorldError

_HEAD = "# Edit, save and close. Nothing is changed before you have seen the difference and agreed.\n"


def edit_stored(api: NamedApi, kind: str, stored: Mapping[str, Any], *, yes: bool) -> Mapping[str, Any]:
    """Edit what is stored, and return it as it is afterwards: the same if nothing was changed.

    After a mistake the editor opens again with the user's text, under a line with the error.
    """
    title, normal = stored["name"], NORMAL[kind]
    if not has_terminal():
        problem = f"nothing is given to change in {title}, and there is no terminal for an editor"
        raise InvalidInput(("edit",), problem, "options that say what to change")
    # Being paused is not edited, but changed by pausing and resuming.
    before = {part: value for part, value in normal(stored).items() if part != "paused"}
    text = _HEAD + as_yaml(before)
    while True:
        edited = _edited(text)
        if edited is None:
            return stored
        try:
            document = read_document(edited, title)
            difference = yaml_diff(before, normal(document), title)
            if not difference:
                return stored
            console().print(coloured_diff(difference))
            if not confirmed("Write this?", yes=yes):
                return stored
            if document.pop("name", title) != title:
                raise InvalidInput(("name",), "is another", f"{title}: nothing is called otherwise by an edit")
            with as_cli_errors():
                return dict(api.put_document(title, document, if_match=stored["rev"]))
        except CallerError as error:
            line = " ".join(str(error).split())
            # After a concurrent change the user has to look at the new revision first.
            if isinstance(error, RevisionChanged) or not _again(line):
                raise CallerError(_kept(line, edited)) from None
            text = f"# {line}\n" + "".join(row for row in edited.splitlines(True) if not row.startswith("#"))
        except WorldError as error:
            raise WorldError(_kept(str(error), edited)) from None


def _again(line: str) -> bool:
    typer.echo(printable(line), err=True)
    return typer.confirm("Edit again?", default=True)


def _kept(line: str, text: str) -> str:
    """Saves the text, which would be lost; ``line`` with the name of the file."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".yaml", delete=False) as file:
        file.write(text)
    return f"{line}; what you wrote is in {file.name}"


def _edited(text: str) -> str | None:
    """The text after the editor; None when it was saved unchanged, or not at all."""
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


def has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirmed(question: str, *, yes: bool) -> bool:
    """Whether the user agrees; `InvalidInput` when there is no terminal to ask on."""
    if yes:
        return True
    if not has_terminal():
        raise InvalidInput(("--yes",), f"nobody is here to ask: {question}", "--yes where there is no terminal")
    return typer.confirm(printable(question))


def delete_stored(
    scheduler: Scheduler,
    kind: str,
    name: str,
    *,
    yes: bool,
    described: Callable[[Mapping[str, Any]], str] = lambda _: "",
) -> Shown:
    """Show, ask and delete exactly the revision that was shown; ``described`` is a part of the question."""
    api = named_api(scheduler, kind)
    stored = unless_unreadable(lambda: api.get(check_name(name)), None)
    what, rev = (", which can't be read", None) if stored is None else (described(stored), stored["rev"])
    deleted = confirmed(f"Delete the {kind} {name}{what}?", yes=yes)
    if deleted and not api.delete(name, if_match=rev):
        raise NotFound(kind, name)
    return Shown({"name": name, "deleted": deleted}, f"deleted {name}" if deleted else "left as it is")
