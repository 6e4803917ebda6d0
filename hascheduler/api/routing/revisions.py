"""Optimistic concurrency: ``ETag``, ``If-Match``, ``If-None-Match``, and changes as compare-and-set on the revision.

The tag is the revision, which grows with every edit. Fields that the leader writes (the last nominal time, the counts)
are no edit: responses with the same tag may differ in them, but in nothing that a request could replace.

A JSON merge patch (RFC 7396) is merged into the resource as GET shows it, and the result is validated like a
replacement: there is one validation, and a field that a null removes gets its default.
"""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Header, Request

from hascheduler.api.routing.route_rules import UnreadableDocument
from hascheduler.errors import Conflict, InvalidInput, NotFound, RevisionMismatch
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import is_integer
from hascheduler.ports import StoredDocument

TAGGED: dict[str, Any] = {
    "headers": {"ETag": {"description": "The revision, for If-Match", "schema": {"type": "string"}}}
}
"""The OpenAPI description of the ETag header."""
TRIES_MAX = 5
"""How often a change is tried, as a concurrent change may win each time."""
_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of such a header, each with True if it is a strong one; None is ``*``, any revision."""

    named: frozenset[tuple[str, bool]] | None

    def have(self, document: StoredDocument | None, *, weakly: bool = False) -> bool:
        """Return True if the revision of ``document`` is one of them. Weak ones count only if ``weakly``."""
        if self.named is None or document is None:
            return document is not None
        rev = str(document.get("rev"))
        return (rev, True) in self.named or (weakly and (rev, False) in self.named)


@dataclass(frozen=True, slots=True)
class Precondition:
    """The condition that ``If-Match`` and ``If-None-Match`` put on a change; without the headers, none."""

    tags: Tags | None = None
    unless: Tags | None = None

    def demand(self, kind: str, name: str, document: StoredDocument | None) -> None:
        """Raise `RevisionMismatch` if the revision of ``document`` does not meet the condition."""
        is_wanted = self.tags is None or self.tags.have(document)
        if not is_wanted or is_known(self.unless, document):
            raise RevisionMismatch(kind, name, None if document is None else document.get("rev"))


def etag(document: StoredDocument) -> str:
    return f'"{document.get("rev")}"'


def is_known(tags: Tags | None, document: StoredDocument | None) -> bool:
    """Return True if, by ``If-None-Match``, the caller has this revision already."""
    return tags is not None and tags.have(document, weakly=True)


def _tags(request: Request, header: str) -> Tags | None:
    values = request.headers.getlist(header)
    if not values:
        return None
    text = ",".join(values)
    if text.strip() == "*":
        return Tags(None)
    matches = [_TAG.fullmatch(part.strip()) for part in text.split(",") if part.strip()]
    if not matches or not all(matches):
        raise InvalidInput((header,), f"{text[:64]!r} is not a revision", 'an ETag such as "7", several, or *')
    return Tags(frozenset((match[2], match[1] is None) for match in matches if match))


_Match = Annotated[
    str | None,
    Header(alias="If-Match", description="Apply the change only if this is the stored revision", examples=['"7"']),
]
_NoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", description="Return 304 if this is the stored revision", examples=['"7"'])
]
_Unless = Annotated[
    str | None,
    Header(alias="If-None-Match", description="`*`: only create; a revision: only if it is not the stored one"),
]


async def _if_match(request: Request, _: _Match = None) -> Precondition:
    return Precondition(_tags(request, "If-Match"))


async def _if_none_match(request: Request, _: _NoneMatch = None) -> Tags | None:
    return _tags(request, "If-None-Match")


async def _if_both(request: Request, _: _Match = None, __: _Unless = None) -> Precondition:
    return Precondition(_tags(request, "If-Match"), _tags(request, "If-None-Match"))


IfMatch = Annotated[Precondition, Depends(_if_match)]
"""For a route that changes a resource."""
IfNoneMatch = Annotated[Tags | None, Depends(_if_none_match)]
"""For a route that shows a resource."""
IfBoth = Annotated[Precondition, Depends(_if_both)]
"""For a route that creates or replaces a resource."""


class Revised(Protocol):
    """The interface that the stores of schedules and of all other resources share."""

    async def get(self, name: str) -> StoredDocument | None: ...

    async def delete(self, name: str, rev: int | None = None) -> bool: ...


async def stored(kind: str, name: str, store: Revised) -> StoredDocument:
    document = await store.get(name)
    if document is None:
        raise NotFound(kind, name)
    return document


async def until_done(kind: str, name: str, attempt: Callable[[], Awaitable[Done | None]]) -> Done:
    """Return the result of ``attempt``, retried after None, which means that a concurrent change has won.

    Raise `Conflict` after `TRIES_MAX` lost races.
    """
    for _ in range(TRIES_MAX):
        done = await attempt()
        if done is not None:
            return done
    raise Conflict(f"{kind} {name!r} is being changed by other requests; retry")


async def at_revision(
    kind: str,
    name: str,
    store: Revised,
    precondition: Precondition,
    write: Callable[[StoredDocument], Awaitable[Done | None]],
) -> Done:
    """Return the result of ``write`` for the stored document, retried as in `until_done`.

    Raise `NotFound` if there is none, `RevisionMismatch` if the request requires another revision.
    """

    async def attempt() -> Done | None:
        document = await stored(kind, name, store)
        precondition.demand(kind, name, document)
        return await write(document)

    return await until_done(kind, name, attempt)


async def delete(kind: str, name: str, store: Revised, precondition: Precondition) -> None:
    if precondition.tags is None:
        if not await store.delete(name):
            raise NotFound(kind, name)
        return

    async def write(document: StoredDocument) -> bool | None:
        return await store.delete(name, document.get("rev")) or None

    await at_revision(kind, name, store, precondition, write)


def revision(kind: str, document: StoredDocument) -> int:
    """Return the stored revision; raise `UnreadableDocument` if there is none, as changes could not be detected."""
    rev = document.get("rev")
    if not is_integer(rev):
        problem = InvalidInput(("rev",), f"{quoted(rev)} is not a revision", "an integer")
        raise UnreadableDocument(kind, str(document["_id"]), problem)
    return rev


def merge_patch(target: Any, patch: Any) -> Any:
    """Return ``target`` after ``patch``; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def is_same_json(one: Any, other: Any) -> bool:
    """Return True if they are equal, whatever the order of members."""
    return bool(one == other) and _text(one) == _text(other)


def _text(value: Any) -> str:
    # Stored values may be more than JSON; values without a JSON form are compared by their text.
    return json.dumps(value, sort_keys=True, default=str)
