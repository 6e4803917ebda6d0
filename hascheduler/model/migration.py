"""What a migration of the database found missing, and did; see `hascheduler.model.schema_version`."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class StepKind(StrEnum):
    COLLECTION = "collection"
    INDEX = "index"
    VERSION = "version"


@dataclass(frozen=True, slots=True)
class Step:
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
    steps: Sequence[Step]
