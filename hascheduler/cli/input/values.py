"""Option values as parts of a request, and questions to the user.

Option values are numbers, rates, resources, payloads, and ``none`` for the default. Questions are a confirmation, a
deletion after one, and a document edited in ``$EDITOR``. Without a terminal no question is asked, and ``--yes`` has to
answer.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from math import isfinite, nan
from pathlib import Path
from typing import Any

import typer

from hascheduler.cli.input.documents import NORMAL, read_document
from hascheduler.cli.output.answers import Shown
from hascheduler.cli.output.console import console
from hascheduler.cli.output.instants import reader_zone
from hascheduler.cli.output.printable import printable
from hascheduler.cli.output.yaml_text import as_yaml, coloured_diff, yaml_diff
from hascheduler.cli.replica import NamedApi, RevisionChanged, Scheduler, as_cli_errors, named_api, unless_unreadable
from hascheduler.clock import SystemClock
from hascheduler.errors import CallerError, InvalidInput, NotFound, WorldError
from hascheduler.model.resources import parse_resources
from hascheduler.model.values.instants import format_instant, parse_duration, parse_instant

NONE = "none"
"""The value of an edit's option that restores the default."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:~-]{0,319}")


def check_name(name: str, path: tuple[str, ...] = ("NAME",)) -> str:
    """Return ``name``; raise an `InvalidInput` at ``path`` if it is not a valid name."""
    if not _NAME.fullmatch(name):
        expected = "1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit"
        raise InvalidInput(path, f"{name[:64]!r} is not a name", expected)
    return name


def check_job_id(id: str) -> str:
    """Return ``id``; raise an `InvalidInput` if it is not a valid job id."""
    if not _JOB_ID.fullmatch(id):
        raise InvalidInput(
            ("JOB",), f"{id[:64]!r} is not a job id", "such as job:0194f3… or fire:nightly:1893456000000"
        )
    return id


def read_source(source: str, expected: str, path: tuple[str, ...] = ("FILE",)) -> str:
    """Return the text of a file, or of standard input for ``-``; raise an `InvalidInput` at ``path``."""
    try:
        return sys.stdin.read() if source == "-" else Path(source).read_text("utf-8")
    except OSError as error:
        raise InvalidInput(path, f"{source}: {error.strerror}", "a readable file, or -") from None
    except UnicodeDecodeError:
        raise InvalidInput(path, f"{source} is not UTF-8", expected) from None


def nullable(read: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Return a reader that takes the option's flag and its text, like ``read``, and returns null for ``none``."""
    return lambda flag, given: None if given in (NONE, [NONE]) else read(flag, given)


def as_given(_flag: str, given: Any) -> Any:
    return given


def whole(flag: str, text: str) -> int:
    """Return the whole number in ``text``; raise an `InvalidInput` at ``flag``."""
    try:
        return int(text)
    except ValueError:
        raise InvalidInput((flag,), f"{text[:64]!r} is not a whole number", "digits") from None


def number(flag: str, text: str) -> int | float:
    """Return any JSON number in ``text``; raise an `InvalidInput` at ``flag``."""
    try:
        found = float(text)
    except ValueError:
        found = nan
    if not isfinite(found):
        raise InvalidInput((flag,), f"{text[:64]!r} is not a number", "such as 2 or 1.5")
    return int(found) if found.is_integer() else found


def past_instant(flag: str, text: str) -> str:
    """Return an instant as RFC 3339: as given, a local day or time of day, or a span ago, such as ``1h``."""
    return _instant(flag, text, -1)


def coming_instant(flag: str, text: str) -> str:
    """Return an instant as RFC 3339: as given, a local day or time of day, or a span from now, such as ``10m``."""
    return _instant(flag, text, 1)


def _instant(flag: str, text: str, direction: int) -> str:
    with suppress(InvalidInput):
        parse_instant(text)
        return text
    with suppress(InvalidInput, ValueError):
        return format_instant(_local_instant(text))
    with suppress(InvalidInput, ValueError, OverflowError):
        return format_instant(max(0, SystemClock().wall_ms() + direction * parse_duration(text)))
    span = "a span ago, such as 1h" if direction < 0 else "a span from now, such as 10m"
    expected = f"such as 2030-01-31T09:30:00Z, a day or time of this time zone such as 2030-01-31T09:30, or {span}"
    raise InvalidInput((flag,), f"{text[:64]!r} is not an instant", expected)


def _local_instant(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError
    return parse_instant(moment.replace(tzinfo=reader_zone()).isoformat())


def rate(flag: str, text: str) -> dict[str, Any]:
    """Return ``N/SPAN`` as a part of a request; raise an `InvalidInput` at ``flag``."""
    count, slash, per = text.partition("/")
    if not slash:
        raise InvalidInput((flag,), f"{text[:64]!r} is not N/SPAN", "such as 100/1s")
    return {"count": whole(flag, count), "per": per}


def key_limit(flag: str, text: str) -> dict[str, Any]:
    """Return ``KEY=N``, ``KEY=N/SPAN`` or ``KEY=N,N/SPAN`` as part of a request, or raise an `InvalidInput`."""
    key, given, limits = text.partition("=")
    numbers = [part for part in limits.split(",") if "/" not in part]
    rates = [part for part in limits.split(",") if "/" in part]
    if not given or not limits or len(numbers) > 1 or len(rates) > 1:
        raise InvalidInput((flag,), f"{text[:64]!r} is not KEY=LIMIT", "such as payload.customer=2,10/1m")
    limit: dict[str, Any] = {"key": key}
    if numbers:
        limit["max_concurrency"] = whole(flag, numbers[0])
    if rates:
        limit["rate_limit"] = rate(flag, rates[0])
    return limit


def resources(flag: str, text: str) -> dict[str, int]:
    """Return the amounts in ``cpu=2,gpu=1`` by name; raise an `InvalidInput` at ``flag``."""
    return dict(parse_resources(text, (flag,)))


def several(_flag: str, text: str) -> list[str]:
    """Return the texts between commas."""
    return [part.strip() for part in text.split(",")]


def one_or_several(flag: str, text: str) -> str | list[str]:
    """Return one text, or the list of texts between commas."""
    return several(flag, text) if "," in text else text


def labels(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of ``KEY=VALUE`` texts by their keys."""
    read: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(("--label",), f"{text[:64]!r} is not KEY=VALUE", "KEY=VALUE")
        if key in read:
            raise InvalidInput(("--label",), f"{key!r} is given twice", "each label at most once")
        read[key] = value
    return read


def labels_to_change(texts: Sequence[str]) -> dict[str, str | None]:
    """Return the values by their keys as `labels` does, and None for each ``KEY-``, which removes a label."""
    gone = [text for text in texts if text.endswith("-") and "=" not in text]
    return {**labels([text for text in texts if text not in gone]), **dict.fromkeys(text[:-1] for text in gone)}


def read_payload(_flag: str, text: str) -> Any:
    """Return the JSON value of the text, or of the file after ``@`` (``@-``: standard input)."""
    path = ("--payload",)
    if text.startswith("@"):
        text = read_source(text[1:], "JSON in UTF-8", path)
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(path, f"is not JSON: {error}", """such as '{"n": 1}', '"text"' or @FILE""") from None


def parse_json(text: str) -> Any:
    """Return a JSON value; raise a `ValueError` or `RecursionError` for others, such as ``NaN`` and ``Infinity``."""
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def sendable_key(key: str | None) -> str | None:
    """Return the idempotency key; raise an `InvalidInput` if no header can hold it."""
    if key is not None and not (1 <= len(key) <= 255 and all("!" <= character <= "~" for character in key)):
        expected = "1 to 255 printable ASCII characters without spaces"
        raise InvalidInput(("--idempotency-key",), f"{key[:64]!r} is not a valid key", expected)
    return key


_HEAD = "# Edit, save and close. You see the difference and confirm it before anything changes.\n"


def edit_stored(api: NamedApi, kind: str, stored: Mapping[str, Any], *, yes: bool) -> Mapping[str, Any]:
    """Edit a stored noun and return it as it is afterwards, the same if nothing was changed.

    After a mistake the editor opens again with the user's text, under a line with the error.
    """
    title, normal = stored["name"], NORMAL[kind]
    if not has_terminal():
        problem = f"no change to {title} is given, and there is no terminal for an editor"
        raise InvalidInput(("edit",), problem, "options with the changes")
    # Pausing and resuming change `paused`, an edit does not.
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
                raise InvalidInput(("name",), "is another", f"{title}: an edit cannot change the name")
            with as_cli_errors():
                return dict(api.put_document(title, document, if_match=stored["rev"]))
        except CallerError as error:
            line = " ".join(str(error).split())
            # After a concurrent change the user has to see the new revision first.
            if isinstance(error, RevisionChanged) or not _again(line):
                raise CallerError(_kept(line, edited)) from None
            text = f"# {line}\n" + "".join(row for row in edited.splitlines(True) if not row.startswith("#"))
        except WorldError as error:
            raise WorldError(_kept(str(error), edited)) from None


def _again(line: str) -> bool:
    typer.echo(printable(line), err=True)
    return typer.confirm("Edit again?", default=True)


def _kept(line: str, text: str) -> str:
    """Save the user's text, which would be lost; return ``line`` with the name of the file."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".yaml", delete=False) as file:
        file.write(text)
    return f"{line}; your text is in {file.name}"


def _edited(text: str) -> str | None:
    """Return the edited text; None if it was saved unchanged, or not at all."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "edit.yaml")
        file.write_text(text, "utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603  # the user's own editor
            edited = file.read_text("utf-8", errors="replace")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            problem = f"{editor} failed ({error})"
            raise InvalidInput(("EDITOR",), problem, "an editor that waits until the file is closed") from None
    return None if edited == text else edited


def has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirmed(question: str, *, yes: bool) -> bool:
    """Return True if the user agrees; raise an `InvalidInput` if there is no terminal to ask on."""
    if yes:
        return True
    if not has_terminal():
        raise InvalidInput(("--yes",), f"no terminal to confirm: {question}", "--yes")
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
    what, rev = (", which is unreadable", None) if stored is None else (described(stored), stored["rev"])
    deleted = confirmed(f"Delete the {kind} {name}{what}?", yes=yes)
    if deleted and not api.delete(name, if_match=rev):
        raise NotFound(kind, name)
    return Shown({"name": name, "deleted": deleted}, f"deleted {name}" if deleted else "left as it is")
