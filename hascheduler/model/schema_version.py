"""Which forms of the stored documents this release reads and writes, and how two releases live side by side.

What has a version
------------------
Each document that another process decodes says in ``v`` which form it was written in; one that says nothing has form 1,
as everything had before there were versions. That is 7 bytes a document. The database has a version too, the newest
form that may be met in it: ``{_id: "schema", version, rev}`` in the collection ``meta``, which every replica mirrors.
Where there is none it is 1. Dispatch messages have a version of their own (`hascheduler.model.message`).

When a change needs a new one
-----------------------------
Most do not. A field may be added, as long as a release that does not know it does no harm by acting as if it were not
there: releases ask for fields by name, write fields by name, and leave the others as they are. The newer release reads
its absence as what held before. Collections may be added, and indexes under names of their own.

Whatever an older release would *misread* is a new form: a field that goes, or whose meaning, unit or type changes; a
new state of jobs, kind of decision or type of trigger; an index of another shape under the same name.

How a new form comes in
-----------------------
Release N reads N - 1 and N, so two adjacent releases always understand each other::

    database at N - 1    release N - 1 reads N - 2, N - 1    writes N - 1
                         release N     reads N - 1, N        writes N - 1, for its neighbours
       hascheduler migrate, when all processes that live read N
    database at N        release N     reads N - 1, N        writes N

1. Processes are replaced one by one, replicas first, and can be put back as long as the database is at N - 1.
2. ``hascheduler migrate`` makes what N needs (collections, indexes) and then raises the database's version, in one
   write, unless a process that does not read N was heard of within a minute. There is no way back from there.
3. Each running process hears of that through its stream, and writes N from then on. Documents of form N - 1 are read as
   they are, and get form N with their next write. What may still be of form N - 1 when the next release comes is
   rewritten by the `migrate` of N, as N + 1 does not read it.

Nothing rests on people keeping to that order:

* a release that does not read the database's version refuses to start (`DatabaseUnfit`), and where it runs already it
  is not ready and gives up its lease;
* a document of a form that is not known is set aside with that reason (`require_known_version`, which every decoder
  asks first): it is never taken for one of another form.

This release reads form 1, as 0.1.0 does, and writes it. So between these two there is a way back even after `migrate`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.fields import integer, is_integer

NEWEST_VERSION = 1
"""The newest form that this release reads."""
OLDEST_VERSION = max(1, NEWEST_VERSION - 1)
WRITTEN_VERSION = 1
"""The form that it writes."""
UNSTATED_VERSION = 1
"""The form of documents that say nothing, and the version of a database that says nothing."""

SCHEMA_ID = "schema"
SCHEMA_FIELDS = ("rev", "version")


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """What the database says of itself; ``rev`` counts how often that was changed."""

    version: int
    rev: int = 1


def require_known_version(fields: Mapping[str, Any]) -> None:
    """`InvalidInput` unless a document with these fields is of a form that this release reads."""
    form = fields.get("v", UNSTATED_VERSION)
    if type(form) is int and OLDEST_VERSION <= form <= NEWEST_VERSION:  # nearly always: there are many documents
        return
    if not is_integer(form):
        raise InvalidInput(("v",), f"{str(form)[:64]!r} ({type(form).__name__})", "an integer")
    if not OLDEST_VERSION <= form <= NEWEST_VERSION:
        raise InvalidInput(("v",), f"form {form} is not known to this release", readable_versions())


def why_unreadable(version: int) -> str:
    """Why this release can't work on a database of that version; "" where it can."""
    if OLDEST_VERSION <= version <= NEWEST_VERSION:
        return ""
    reads = readable_versions()
    return f"the database has schema version {version}, and this release reads {reads}: it takes another release"


def readable_versions() -> str:
    """The forms that this release reads, for people."""
    return f"{NEWEST_VERSION}" if OLDEST_VERSION == NEWEST_VERSION else f"{OLDEST_VERSION} and {NEWEST_VERSION}"


def encode_schema_version(schema: SchemaVersion) -> dict[str, Any]:
    # It has no form of its own: every release must be able to read it, for ever.
    return {"_id": SCHEMA_ID, "version": schema.version, "rev": schema.rev}


def decode_schema_version(id: object, fields: Mapping[str, Any]) -> SchemaVersion:
    if id != SCHEMA_ID:
        raise InvalidInput(("_id",), f"{str(id)[:64]!r} is unknown", SCHEMA_ID)
    return SchemaVersion(integer(fields, "version"), integer(fields, "rev", default=1))


class StepKind(StrEnum):
    COLLECTION = "collection"
    INDEX = "index"
    VERSION = "version"


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """``name``: of a collection, ``collection.index``, or the version's number."""

    kind: StepKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Migration:
    """``before``: the version that the database had, None where it said nothing; ``steps``: what was missing."""

    before: int | None
    after: int
    steps: Sequence[MigrationStep]
