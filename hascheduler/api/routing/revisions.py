"""Optimistic concurrency: ``ETag``, ``If-Match``, ``If-None-Match``, and changes as compare-and-set on the revision.

The tag is the revision, which grows with every edit. What the leader writes (the last nominal time, the counts) is no
edit: answers with the same tag may differ in it, but in nothing that a request could replace.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Header, Request

from hascheduler.api.routing.error_handlers import UnreadableDocument
from hascheduler.errors import Conflict, InvalidInput, NotFound, RevisionMismatch
from hascheduler.model.values.error_texts import quoted
from hascheduler.ports import StoredDocument

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of such a header, each with whether it is a strong one; None is ``*``, any revision."""

    named: frozenset[tuple[str, bool]] | None


@dataclass(frozen=True, slots=True)
class Precondition:
    """What ``If-Match`` and ``If-None-Match`` require of a change; without the header, nothing."""

    tags: Tags | None = None
    unless: Tags | None = None

    def demand(self, kind: str, name: str, document: StoredDocument | None) -> None:
        """`RevisionMismatch` where ``document`` does not have a revision that the request names."""
        if document is not None and is_known(self.unless, document):
            raise RevisionMismatch(kind, name, document.get("rev"))
        if self.tags is None:
            return
        rev = None if document is None else document.get("rev")
        named = self.tags.named
        if document is None or (named is not None and (str(rev), True) not in named):
            raise RevisionMismatch(kind, name, rev)


def etag(document: StoredDocument) -> str:
    return f'"{document.get("rev")}"'


def is_known(tags: Tags | None, document: StoredDocument) -> bool:
    """Whether ``If-None-Match`` says that the caller has this revision already."""
    if tags is None:
        return False
    return tags.named is None or any(tag == str(document.get("rev")) for tag, _ in tags.named)


async def _if_match(
    request: Request,
    _: Annotated[
        str | None,
        Header(alias="If-Match", description="Do it only if this is the stored revision", examples=['"7"']),
    ] = None,
) -> Precondition:
    return Precondition(_tags("If-Match", request.headers.getlist("if-match")))


async def _if_none_match(
    request: Request,
    _: Annotated[
        str | None,
        Header(alias="If-None-Match", description="304 if this is the stored revision", examples=['"7"']),
    ] = None,
) -> Tags | None:
    return _tags("If-None-Match", request.headers.getlist("if-none-match"))


_Unless = Annotated[
    str | None,
    Header(alias="If-None-Match", description="`*`: only create it; or not if this is the stored revision"),
]


async def _if_both(
    match: Annotated[Precondition, Depends(_if_match)], request: Request, _: _Unless = None
) -> Precondition:
    return Precondition(match.tags, _tags("If-None-Match", request.headers.getlist("if-none-match")))


def _tags(header: str, values: Sequence[str]) -> Tags | None:
    if not values:
        return None
    text = ",".join(values)
    if text.strip() == "*":
        return Tags(None)
    matches = [_TAG.fullmatch(part.strip()) for part in text.split(",") if part.strip()]
    if not matches or not all(matches):
        raise InvalidInput((header,), f"{text[:64]!r} names no revision", 'an ETag such as "7", several, or *')
    return Tags(frozenset((match[2], match[1] is None) for match in matches if match))


IfMatch = Annotated[Precondition, Depends(_if_match)]
IfNoneMatch = Annotated[Tags | None, Depends(_if_none_match)]
IfBoth = Annotated[Precondition, Depends(_if_both)]
"""For a route that makes or replaces."""

TAGGED: dict[str, Any] = {
    "headers": {"ETag": {"description": "The revision, as If-Match wants it", "schema": {"type": "string"}}}
}
"""How OpenAPI describes the header of an answer."""


TRIES_MAX = 5
"""How often a change is tried, as a concurrent change may win each time."""

Done = TypeVar("Done")


class Revised(Protocol):
    """What the stores of schedules and of all other resources have in common."""

    async def get(self, name: str) -> StoredDocument | None: ...

    async def delete(self, name: str, rev: int | None = None) -> bool: ...


async def stored(kind: str, name: str, store: Revised) -> StoredDocument:
    document = await store.get(name)
    if document is None:
        raise NotFound(kind, name)
    return document


async def at_revision(
    kind: str,
    name: str,
    store: Revised,
    precondition: Precondition,
    write: Callable[[StoredDocument], Awaitable[Done | None]],
) -> Done:
    """What ``write`` makes of the stored document; where it gives None, a concurrent change has won, and it is called
    again with the newer document.

    `RevisionMismatch` where the request names another revision, `Conflict` after `TRIES_MAX` lost races.
    """
    for _ in range(TRIES_MAX):
        document = await stored(kind, name, store)
        precondition.demand(kind, name, document)
        done = await write(document)
        if done is not None:
            return done
    raise Conflict(f"{kind} {name!r} is being changed by others; try again")


async def delete(kind: str, name: str, store: Revised, precondition: Precondition) -> None:
    if precondition.tags is None:
        if not await store.delete(name):
            raise NotFound(kind, name)
        return

    async def write(document: StoredDocument) -> bool | None:
        return await store.delete(name, document.get("rev")) or None

    await at_revision(kind, name, store, precondition, write)


def revision(kind: str, document: StoredDocument) -> int:
    rev = document.get("rev")
    if isinstance(rev, bool) or not isinstance(rev, int):
        raise UnreadableDocument(
            kind, str(document["_id"]), InvalidInput(("rev",), f"{quoted(rev)} is no revision", "an integer")
        )
    return rev
