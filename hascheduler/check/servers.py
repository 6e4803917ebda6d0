"""What a deployment needs of its servers, one requirement at a time: what is there, what is missing, what to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class RequirementState(StrEnum):
    MET = "met"
    WARNING = "warning"
    """It works, but not as well as it should."""
    MISSING = "missing"
    """hascheduler does not work without it."""
    UNKNOWN = "unknown"
    """It can't be seen from here, or not with these rights."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What ``server`` has of what is needed; ``remedy`` says what to do, "" if nothing is."""

    server: str
    what: str
    state: RequirementState
    found: str
    remedy: str = ""


Privileges = Mapping[str, frozenset[str]]
"""Actions by collection; the empty name means every collection of the database, and the database itself."""


def missing_privileges(needed: Privileges, given: Privileges) -> list[str]:
    """Return the missing actions, each with its collection."""
    everywhere = given.get("", frozenset())
    return [
        f"{action} on {collection or 'all collections'}"
        for collection, actions in needed.items()
        for action in sorted(actions - everywhere - given.get(collection, frozenset()))
    ]
