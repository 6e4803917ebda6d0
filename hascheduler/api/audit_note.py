"""What a route says to the audit log about a request, where the request itself does not show it."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request


@dataclass(slots=True)
class AuditNote:
    """One a request. A route that changes nothing, although its method would, says ``unaudited``; one whose target
    stands neither in its path nor in ``Location`` says which it is."""

    unaudited: bool = False
    target: str | None = None


async def _note(request: Request) -> AuditNote:
    note = getattr(request.state, "audit_note", None)
    if note is None:
        note = request.state.audit_note = AuditNote()
    assert isinstance(note, AuditNote)
    return note


Noted = Annotated[AuditNote, Depends(_note)]
"""For a route that may be a dry run: ``note.unaudited = body.dry_run``."""


async def _changes_nothing(note: Noted) -> None:
    note.unaudited = True


CHANGES_NOTHING = Depends(_changes_nothing)
"""For ``dependencies=[…]`` of a route that only ever looks."""
