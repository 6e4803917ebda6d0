"""Reads the files of `hascheduler apply`: YAML documents of schedules, definitions, lanes, calendars and tenants.

Each is ``{kind: Schedule, name: …, the rest as in a request}``, or of another kind. All documents are checked before
anything is sent, and all mistakes are reported at once, by file, number of the document and field.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hascheduler.cli.input.documents import NORMAL, TEXT_LENGTH_MAX, located, normal_schedule, read_documents, requested
from hascheduler.cli.input.values import check_name
from hascheduler.errors import CallerError, InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.forms import Name
from hascheduler.schema.noun import Part, read_request
from hascheduler.schema.schedule_bodies import CreateScheduleBody
from hascheduler.triggers.requests import checked_trigger

MANAGED = ("managed-by", "hascheduler-apply")
"""The label of every schedule that `apply` wrote."""
OWNER = "apply-owner"
"""The label that names the owner for whom `apply` wrote a schedule; other kinds have a field.

`--prune` deletes for that owner alone.
"""

_ENDINGS = (".yaml", ".yml", ".json")
_SHOWN_MAX = 10

_KINDS = {kind.capitalize(): kind for kind in NORMAL}
_KINDS_EXPECTED = "Schedule, Definition, Lane, Calendar or Tenant, or Apply with an owner"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document's desired state; ``body`` is a request in its normal form, ``kind`` one of `NORMAL`.

    ``paused`` is None if the document does not manage the pause.
    """

    kind: str
    name: str
    body: Mapping[str, Any]
    paused: bool | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """All manifests and their owner; ``owner`` is None if neither an option nor a document names one."""

    manifests: Sequence[Manifest]
    owner: str | None


class _ApplyDocument(Part):
    kind: str
    owner: Name


def read_manifests(sources: Sequence[str], now_ms: WallMs, owner: str | None = None) -> Wanted:
    """Return the documents of files, folders (at any depth) and ``-`` (standard input), in that order.

    ``owner`` takes precedence over a document ``{kind: Apply, owner: …}``. A `CallerError` lists everything that is
    wrong.
    """
    if owner is not None:
        check_name(owner, ("--owner",))
    owners: set[str] = set()
    found: dict[tuple[str, str], tuple[Manifest, str]] = {}
    faults: list[InvalidInput] = []
    for source, text in _texts(sources):
        try:
            for number, document in enumerate(read_documents(text, source), 1):
                if document is None:
                    continue  # nothing but a comment
                try:
                    if isinstance(document, Mapping) and document.get("kind") == "Apply":
                        owners.add(read_request(_ApplyDocument, document).owner)
                        if len(owners) > 1 and owner is None:
                            raise InvalidInput(("owner",), f"{' and '.join(sorted(owners))}", "one owner, or --owner")
                        continue
                    manifest = _manifest(document, now_ms)
                    where = f"{source}, document {number}"
                    _, earlier = found.setdefault((manifest.kind, manifest.name), (manifest, where))
                    if earlier != where:
                        raise InvalidInput(
                            ("name",), f"{manifest.name!r} is also in {earlier}", "each name at most once"
                        )
                except InvalidInput as error:
                    faults.append(InvalidInput(located(source, number, error.path), error.problem, error.expected))
        except InvalidInput as error:
            faults.append(error)  # not even a document
    if faults:
        raise CallerError(first_of(list(map(str, faults))))
    if not found and not owners:
        raise InvalidInput(("-f",), "contains no documents", "documents with a kind and a name")
    owner = owner or next(iter(owners), None)
    manifests = [manifest for manifest, _ in found.values()]
    if owner is not None:
        manifests = [replace(one, body=owned_by(one.kind, one.body, owner)) for one in manifests]
    return Wanted(manifests, owner)


def first_of(lines: Sequence[str]) -> str:
    """Return the first lines joined into one, and how many more there are."""
    more = [f"and {len(lines) - _SHOWN_MAX} more"] if len(lines) > _SHOWN_MAX else []
    return " | ".join([*lines[:_SHOWN_MAX], *more])


def owner_of(kind: str, document: Mapping[str, Any]) -> str | None:
    """Return the owner for whom `apply` wrote that document, stored or wanted."""
    owner = document.get("labels", {}).get(OWNER) if kind == "schedule" else document.get("owner")
    return owner if isinstance(owner, str) else None


def owned_by(kind: str, document: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Return the document, in its normal form, with that owner."""
    if kind == "schedule":
        return normal_schedule({**document, "labels": {**document.get("labels", {}), OWNER: owner}})
    return NORMAL[kind]({**document, "owner": owner})


def _texts(sources: Sequence[str]) -> Iterator[tuple[str, str]]:
    for source in sources:
        try:
            if source == "-":
                yield "standard input", sys.stdin.read(TEXT_LENGTH_MAX + 1)
                continue
            for file in _files(Path(source)):
                with file.open(encoding="utf-8") as opened:
                    text = opened.read(TEXT_LENGTH_MAX + 1)
                yield str(file), text
        except OSError as error:
            raise InvalidInput(("-f",), f"{source}: {error.strerror}", "a file, a directory, or -") from None
        except UnicodeDecodeError:
            raise InvalidInput(("-f",), f"{source} is not UTF-8", "YAML in UTF-8") from None


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    inside = (file for file in path.rglob("*") if file.suffix in _ENDINGS and file.is_file())
    return sorted(file for file in inside if not any(part.startswith(".") for part in file.relative_to(path).parts))


def _manifest(document: object, now_ms: WallMs) -> Manifest:
    if not isinstance(document, dict):
        raise InvalidInput((), f"{quoted(document)} is not an object", "a mapping")
    fields = dict(document)
    given = fields.pop("kind", None)
    name = fields.get("name")
    kind = _KINDS.get(given) if isinstance(given, str) else None
    if kind is None:
        raise InvalidInput(("kind",), "missing" if given is None else f"{str(given)[:64]!r}", _KINDS_EXPECTED)
    if not isinstance(name, str):
        raise InvalidInput(("name",), "missing" if name is None else f"{quoted(name)} is not text", "a text")
    check_name(name, ("name",))
    if kind != "schedule":
        return Manifest(kind, name, requested(kind, fields))
    read_request(CreateScheduleBody, fields)
    checked_trigger(fields["trigger"], now_ms)
    paused = fields.pop("paused", None)
    managed = {**(fields.get("labels") or {}), MANAGED[0]: MANAGED[1]}
    return Manifest(kind, name, normal_schedule({**fields, "labels": managed}), paused)
