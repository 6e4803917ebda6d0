"""Parameters of several routes (the name or id in the path, ``?after=``, ``?limit=``, ``?label=``), and pages.

A page lists the unreadable documents next to the others: they are neither left out nor fail the whole page.

The work of one request may take longer than the loop may be blocked. Such work is a generator that yields every few
milliseconds, and `run_in_slices` runs one slice of one generator in each turn of the loop, round robin.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Annotated, Generic, TypeVar
from weakref import WeakKeyDictionary

import orjson
from fastapi import Path, Query, Response
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import LATEST_MS
from hascheduler.ports import ListPosition, StoredDocument
from hascheduler.schema.forms import LABELS_MAX, NAME, REQUEST, TEXT_LENGTH_MAX, Name, wrong
from hascheduler.schema.noun import Part

Found = TypeVar("Found")

_SLICE_LOCKS: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]" = WeakKeyDictionary()


async def run_in_slices(steps: Generator[None, None, Found]) -> Found:
    """Run ``steps`` to their end, let other tasks run after each of them, and return their result."""
    lock = _SLICE_LOCKS.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    while True:
        # The lock is first come, first served: a generator that has run a slice waits behind all others.
        async with lock:
            try:
                next(steps)
            except StopIteration as end:
                found: Found = end.value
                return found
        await asyncio.sleep(0)


PAGE_SIZE_MAX = 200
_PAGE_SIZE_DEFAULT = 100
_PAGE_BYTES_MAX = 4 * 1024 * 1024
_CURSOR_LENGTH_MAX = 512

Item = TypeVar("Item")
Model = TypeVar("Model", bound=BaseModel)

_PATH_NAME = Path(description="The name; upper and lower case differ")
PathName = Annotated[str, _PATH_NAME]
CheckedPathName = Annotated[
    Name, BeforeValidator(partial(TypeAdapter[str](Name).validate_python, context=REQUEST)), _PATH_NAME
]
"""The name of a resource that the request may create."""
JobId = Annotated[str, Path(description="The id of the job; its ':' needs no escape")]


class PageQuery(BaseModel):
    model_config = ConfigDict(frozen=True)

    after: str | None = Field(
        default=None,
        max_length=_CURSOR_LENGTH_MAX,
        description="`next` of the previous page; omit it for the first page",
    )
    limit: int = Field(default=_PAGE_SIZE_DEFAULT, ge=1, le=PAGE_SIZE_MAX, description="The most items of the page")


NextPage = Annotated[
    str | None,
    Field(description="Pass it as `after` for the next page; null on the last one", examples=["the-last-of-this-page"]),
]


class Unlisted(BaseModel):
    """A stored document that can't be read, with the reason."""

    id: str = Field(description="Its name or id")
    reason: str = Field(description="The wrong field, and the problem")


class Page(Part, Generic[Item]):
    items: list[Item]
    """The readable items, at most `limit`"""
    next: NextPage
    unreadable: list[Unlisted] = Field(default=[])
    """The stored documents of this page that can't be read"""


Paging = Annotated[PageQuery, Query()]


async def page(
    documents: Sequence[StoredDocument],
    limit: int,
    next: str | None,
    show: Callable[[StoredDocument], Model],
    cursors: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    """Return a `Page` of the first ``limit`` of ``documents``. There is a next one if the store found more.

    Documents may be large: each is shown and encoded in a slice of its own, and the page ends after `_PAGE_BYTES_MAX`.
    ``next`` is the cursor to continue from if there are no more ``documents`` than ``limit``. ``cursors`` has those
    after single documents that are not their ids.
    """
    if next is None and len(documents) > limit:
        next = str(documents[limit - 1]["_id"])
    body = await run_in_slices(_encoded(documents[:limit], next, show, cursors))
    return Response(body, media_type="application/json")


def _encoded(
    documents: Sequence[StoredDocument],
    next: str | None,
    show: Callable[[StoredDocument], Model],
    cursors: Mapping[str, str],
) -> Generator[None, None, bytes]:
    items: list[bytes] = []
    unreadable: list[dict[str, str]] = []
    size = 0
    for place, document in enumerate(documents):
        yield
        if size > _PAGE_BYTES_MAX:
            last = str(documents[place - 1]["_id"])
            next = cursors.get(last, last)
            break
        try:
            items.append(show(document).model_dump_json(by_alias=True).encode())
            size += len(items[-1])
        except InvalidInput as error:
            unreadable.append({"id": str(document["_id"]), "reason": str(error)})
    return b'{"items":[%b],%b' % (b",".join(items), orjson.dumps({"next": next, "unreadable": unreadable})[1:])


def _label(text: str) -> str:
    key, separator, value = text.partition("=")
    if not separator or not NAME.match(key) or len(value) > TEXT_LENGTH_MAX:
        raise wrong(f"{quoted(text)} is not a label", "key=value, as in team=a")
    return text


def _each_key_once(labels: list[str]) -> list[str]:
    keys = [label.partition("=")[0] for label in labels]
    if len(set(keys)) < len(keys):
        raise wrong("a key is repeated, but a label has only one value", "each key once")
    return labels


Label = Annotated[str, AfterValidator(_label)]


class LabelsQuery(BaseModel):
    model_config = ConfigDict(frozen=True)

    label: Annotated[list[Label], AfterValidator(_each_key_once)] = Field(
        default=[],
        max_length=LABELS_MAX,
        description="Only items with this label; repeat it to require several",
        examples=[["team=a"]],
    )

    def labels(self) -> dict[str, str]:
        return {key: value for key, _, value in (label.partition("=") for label in self.label)}


def position_ms(after: str, ms: str, *, is_whole: bool = True) -> int:
    """Return the number ``ms`` in the position ``after``; raise `InvalidInput` if it is none, or not ``is_whole``."""
    if is_whole and ms.isascii() and ms.isdecimal() and len(ms) <= len(str(LATEST_MS)):
        return int(ms)
    problem = f"{quoted(after)} is not a position in this list"
    raise InvalidInput(("after",), problem, "`next` of the previous page; omit it for the first page")


class NewestFirstQuery(PageQuery):
    """The query of a list that is sorted by time, newest first."""

    def position(self) -> ListPosition | None:
        """Return the position of `after`; raise `InvalidInput` if it is none, such as an id, which 0.2.0 had there."""
        if self.after is None:
            return None
        mark, _, place = self.after.partition("~")
        at, dot, id = place.partition(".")
        at_ms = position_ms(self.after, at, is_whole=not mark and bool(id or not dot))
        return ListPosition(at_ms, id or None)


def place_text(position: ListPosition | None) -> str | None:
    """Return ``next`` of a page.

    A replica of 0.2.0 compares it with ids: it sorts after all of them, so that such a replica answers with the
    beginning of its own list rather than with the end.
    """
    if position is None:
        return None
    return f"~{position.at_ms}" + ("" if position.id is None else f".{position.id}")
