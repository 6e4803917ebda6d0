"""Reads the files of `hascheduler apply`: YAML documents of schedules, definitions, lanes and tenants.

Each is ``{kind: Schedule, name: …, the rest as in a request}``, or of another kind. All documents are checked before
anything is sent, and all mistakes are reported at once: by file, number of the document, and field.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from hascheduler.cli.client import check_name
from hascheduler.cli.input.documents import TEXT_LENGTH_MAX, located, read_documents
from hascheduler.cli.input.normal_forms import (
    DEFINITION,
    JOB,
    LANE,
    MISFIRE,
    NORMAL,
    RATE_LIMIT,
    RETRY,
    TENANT,
    normal_schedule,
)
from hascheduler.cli.input.trigger_bodies import json_type, read_trigger
from hascheduler.errors import CallerError, InvalidInput
from hascheduler.model.instants import WallMs
from hascheduler.triggers import check_trigger

MANAGED = ("managed-by", "hascheduler-apply")
"""The label of every schedule that was written by `apply`."""

_ENDINGS = (".yaml", ".yml", ".json")
_ERRORS_SHOWN_MAX = 10

FIELDS: Mapping[str, Sequence[str]] = {
    "schedule": ("name", "trigger", "misfire", "overlap", "pause_after_failures", "paused", "job", "labels"),
    "definition": ("name", *DEFINITION),
    "lane": ("name", *LANE),
    "tenant": ("name", *TENANT),
}
"""What a document of each kind may say."""

_KINDS = {kind.capitalize(): kind for kind in FIELDS}
_KINDS_EXPECTED = "Schedule, Definition, Lane or Tenant"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one document wants; ``body`` is a request in its normal form, ``kind`` one of `FIELDS`.

    ``paused`` None: whether the schedule is paused is not the document's business.
    """

    kind: str
    name: str
    body: Mapping[str, Any]
    paused: bool | None = None


def read_manifests(sources: Sequence[str], now_ms: WallMs) -> list[Manifest]:
    """Those of files, folders (at any depth) and ``-`` (standard input), in that order.

    A `CallerError` tells everything that is wrong.
    """
    found: dict[tuple[str, str], tuple[Manifest, str]] = {}
    faults: list[InvalidInput] = []
    for source, text in _texts(sources):
        try:
            for number, document in enumerate(read_documents(text, source), 1):
                if document is None:
                    continue  # nothing but a comment
                try:
                    manifest = _manifest(document, now_ms)
                    where = f"{source}, document {number}"
                    _, earlier = found.setdefault((manifest.kind, manifest.name), (manifest, where))
                    if earlier != where:
                        raise InvalidInput(("name",), f"{manifest.name!r} is also in {earlier}", "each name once")
                except InvalidInput as error:
                    faults.append(InvalidInput(located(source, number, error.path), error.problem, error.expected))
        except InvalidInput as error:
            faults.append(error)  # not even a document
    if faults:
        shown = [str(fault) for fault in faults[:_ERRORS_SHOWN_MAX]]
        more = [f"and {len(faults) - _ERRORS_SHOWN_MAX} more"] if len(faults) > _ERRORS_SHOWN_MAX else []
        raise CallerError(" | ".join([*shown, *more]))
    if not found:
        raise InvalidInput(("-f",), "there is no document in it", "documents with a kind and a name")
    return [manifest for manifest, _ in found.values()]


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
            raise InvalidInput(("-f",), f"{source}: {error.strerror}", "a file, a folder, or -") from None
        except UnicodeDecodeError:
            raise InvalidInput(("-f",), f"{source} is not UTF-8", "YAML in UTF-8") from None


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    inside = (file for file in path.rglob("*") if file.suffix in _ENDINGS and file.is_file())
    return sorted(file for file in inside if not any(part.startswith(".") for part in file.relative_to(path).parts))


def _manifest(document: object, now_ms: WallMs) -> Manifest:
    fields = dict(_object(document, ()))
    said = fields.pop("kind", None)
    name = fields.get("name")
    kind = _KINDS.get(said) if isinstance(said, str) else None
    if kind is None:
        raise InvalidInput(("kind",), "missing" if said is None else f"{str(said)[:64]!r}", _KINDS_EXPECTED)
    if not isinstance(name, str):
        raise InvalidInput(("name",), "missing" if name is None else json_type(name), "a text")
    check_name(name, ("name",))
    _only(fields, FIELDS[kind], ())
    if kind == "schedule":
        return _schedule(name, fields, now_ms)
    for part, known in _PARTS.items():
        _only(_object(fields.get(part) or {}, (part,)), known, (part,))
    return Manifest(kind, name, NORMAL[kind](fields))


_PARTS: Mapping[str, Sequence[str]] = {
    "retry": tuple(RETRY),
    "rate_limit": RATE_LIMIT,
    "submit_rate": RATE_LIMIT,
    "fire_rate": RATE_LIMIT,
}


def _schedule(name: str, fields: dict[str, Any], now_ms: WallMs) -> Manifest:
    check_trigger(read_trigger(fields.get("trigger"), now_ms), ("trigger",))
    job = _object(fields.get("job"), ("job",))
    _only(job, JOB, ("job",))
    if not isinstance(job.get("definition"), str):
        raise InvalidInput(("job", "definition"), f"{json_type(job.get('definition'))}", "the name of a definition")
    _only(_object(fields.get("misfire") or {}, ("misfire",)), MISFIRE, ("misfire",))
    labels = _object(fields.get("labels") or {}, ("labels",))
    for key, value in labels.items():
        if not isinstance(value, str):
            raise InvalidInput(("labels", key), f"{json_type(value)}", f'a text: "{value}" in quotes')
    paused = fields.pop("paused", None)
    if not (paused is None or isinstance(paused, bool)):
        raise InvalidInput(("paused",), f"{json_type(paused)}", "true or false")
    managed = {**labels, MANAGED[0]: MANAGED[1]}
    return Manifest("schedule", name, normal_schedule({**fields, "labels": managed}), paused)


def _object(value: object, path: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(path, "missing" if value is None else json_type(value), "an object of names and values")
    return value


def _only(fields: Mapping[str, Any], known: Sequence[str] | Mapping[str, Any], path: tuple[str, ...]) -> None:
    for name in fields:
        if name not in known:
            close = get_close_matches(name, known, 1)
            raise InvalidInput((*path, name), "no such field", close[0] if close else f"one of {', '.join(known)}")
