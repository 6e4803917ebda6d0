"""Changes to what is stored, each one compare-and-set on the revision that it was made from."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from hascheduler.api.etags import Precondition
from hascheduler.api.refusals import Unreadable
from hascheduler.errors import Conflict, InvalidInput, NotFound
from hascheduler.model.repr_limits import quoted
from hascheduler.ports import StoredDocument

TRIES_MAX = 5
"""How often a change is made again because somebody else was first."""

Done = TypeVar("Done")


class Revised(Protocol):
    """What the stores of schedules and of all other nouns have in common."""

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
    """What ``write`` makes of the stored document; it is asked anew where it gives None, as somebody else was first.

    `RevisionMismatch` where another revision is demanded, `Conflict` where others are first all the time.
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
        # Without it there is no telling who was first.
        problem = InvalidInput(("rev",), f"{quoted(rev)} is no revision", "an integer; delete it and create it anew")
        raise Unreadable(kind, str(document["_id"]), problem)
    return rev
