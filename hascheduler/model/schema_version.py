"""Versions of the stored documents: the forms that this release reads and writes, and how two releases coexist.

What has a version
------------------
Each document that another process decodes has a form number in ``v``; one without ``v`` has form 1, as every document
had before there were versions. That is 7 bytes a document. The database has a version too, the newest form that it may
hold: ``{_id: "schema", version, rev}`` in the collection ``meta``, which every replica mirrors. Without that document
it is 1. Dispatch messages have a version of their own (`hascheduler.model.message`).

When a change needs a new version
---------------------------------
Most do not. A field may be added if a release that does not know it does no harm by ignoring it: releases read fields
by name, write fields by name, and leave all others as they are. The newer release reads the absence of the field as the
behaviour before. Collections may be added, and indexes under names of their own.

A change that an older release would *misread* is a new form: a field that is removed, or whose meaning, unit or type
changes; a new state of jobs, kind of decision or type of trigger; an index of another shape under the same name.

How a new form is introduced
----------------------------
Release N reads N - 1 and N, so two adjacent releases always understand each other::

    database at N - 1    release N - 1 reads N - 2, N - 1    writes N - 1
                         release N     reads N - 1, N        writes N - 1, for its neighbours
       hascheduler migrate, when all processes that live read N
    database at N        release N     reads N - 1, N        writes N

1. Processes are replaced one by one, replicas first, and can be put back as long as the database is at N - 1.
2. ``hascheduler migrate`` makes the collections and indexes that N needs and then raises the database's version, in one
   write, unless a process that does not read N sent a heartbeat within a minute. There is no way back from there.
3. Each running process learns of that through its stream, and writes N from then on. Documents of form N - 1 are read
   as they are, and get form N with their next write. The `migrate` of N rewrites documents that may still be of form
   N - 1 when the next release comes, as N + 1 does not read them.

Safety does not depend on people keeping to that order:

* a release that does not read the database's version refuses to start (`DatabaseUnfit`); if it is already running, it
  becomes unready and gives up its lease;
* a document of an unknown form is quarantined with that reason (`require_known_version`, which every decoder calls
  first): it is never taken for one of another form.

This release reads form 1, as 0.2.0 does, and writes it. So between these two there is a way back even after `migrate`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.values.fields import integer, is_integer

NEWEST_VERSION = 1
"""The newest form that this release reads."""
OLDEST_VERSION = max(1, NEWEST_VERSION - 1)
WRITTEN_VERSION = 1
"""The form that this release writes."""
UNSTATED_VERSION = 1
"""The form of documents without ``v``, and the version of a database without one."""

INDEX_GENERATION = 2
"""The generation of indexes that the queries of this release use, which replicas send in their heartbeats.

0.2.0 does not send it, and uses those of generation 1.
"""

SCHEMA_ID = "schema"
SCHEMA_FIELDS = ("rev", "version")


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The version of the database; ``rev`` counts its changes."""

    version: int
    rev: int = 1


def require_known_version(fields: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` unless this release reads the form of the document."""
    form = fields.get("v", UNSTATED_VERSION)
    if type(form) is int and OLDEST_VERSION <= form <= NEWEST_VERSION:  # the usual case: there are many documents
        return
    if not is_integer(form):
        raise InvalidInput(("v",), f"{str(form)[:64]!r} ({type(form).__name__})", "an integer")
    if not OLDEST_VERSION <= form <= NEWEST_VERSION:
        raise InvalidInput(("v",), f"form {form} is unknown to this release", readable_versions())


def why_unreadable(version: int) -> str:
    """Return why this release can't work on a database of that version; "" if it can."""
    if OLDEST_VERSION <= version <= NEWEST_VERSION:
        return ""
    reads = readable_versions()
    return f"the database has schema version {version}, but this release reads {reads}; run another release"


def readable_versions() -> str:
    """Return the forms that this release reads, as a text for people."""
    return f"{NEWEST_VERSION}" if OLDEST_VERSION == NEWEST_VERSION else f"{OLDEST_VERSION} and {NEWEST_VERSION}"


def encode_schema_version(schema: SchemaVersion) -> dict[str, Any]:
    # Without a form number: every release must be able to read this document, for ever.
    return {"_id": SCHEMA_ID, "version": schema.version, "rev": schema.rev}


def decode_schema_version(id: object, fields: Mapping[str, Any]) -> SchemaVersion:
    if id != SCHEMA_ID:
        raise InvalidInput(("_id",), f"{str(id)[:64]!r} is unknown", SCHEMA_ID)
    return SchemaVersion(integer(fields, "version"), integer(fields, "rev", default=1))


class StepKind(StrEnum):
    COLLECTION = "collection"
    INDEX = "index"
    SUPERSEDED = "superseded"
    """An index that only an older release uses, to be dropped."""
    VERSION = "version"


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """One step; ``name`` is a collection, ``collection.index``, or the version's number."""

    kind: StepKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Migration:
    """The result of a migration; ``before`` is the version of the database before it, None if it had none."""

    before: int | None
    after: int
    steps: Sequence[MigrationStep]
    kept: Sequence[MigrationStep] = ()
    """Superseded indexes that could not be dropped."""
    kept_because: str = ""
    is_complete: bool = True
    """False if another migration can drop them, once no replica of the older release lives."""
