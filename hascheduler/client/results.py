"""What the SDK returns besides the answers of `hascheduler.client.answers`. Instants are aware datetimes in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

from hascheduler.client import answers
from hascheduler.model.job import TERMINAL

T = TypeVar("T")

JsonObject = Mapping[str, Any]


class Problem(answers.Problem):
    """What is wrong with a request: ``type`` is a URN to compare, ``detail`` for people, ``errors`` the fields.

    If the outcome is unknown, ``id`` names the subject of the request, to ask by.
    """

    def __init__(self, given: object = None) -> None:
        # A missing field is empty: the answer of a proxy may not be a problem document.
        fields = given if isinstance(given, dict) else {}
        errors = fields["errors"] if isinstance(fields.get("errors"), list) else []
        texts = {name: str(fields.get(name, "")) for name in ("type", "detail")}
        of_fields = [
            {name: str(one.get(name, "")) for name in ("path", "problem", "expected")}
            for one in errors
            if isinstance(one, dict)
        ]
        super().__init__({**fields, **texts, "errors": of_fields, "id": str(fields.get("id") or "") or None})

    def __str__(self) -> str:
        return self.detail or self.type


class Job(answers.JobResponse):
    """A job as the replica answered it; ``payload``, ``result`` and ``attempts`` are empty if it is from a list.

    ``attempt`` is the fencing token; ``tries`` counts attempts, as each of the ``revivals`` has taken a number too.
    ``replayed`` is True if the submit found the job under its idempotency key. ``is_duplicate`` is True if the submit
    made no job because it was a duplicate of this one (``unique`` of the definition).
    """

    replayed: bool
    is_duplicate: bool

    def __init__(self, fields: JsonObject, *, replayed: bool = False, is_duplicate: bool = False) -> None:
        # A replica of 0.2.0 does not count tries.
        super().__init__({"tries": fields["attempt"], **fields})
        vars(self).update(replayed=replayed, is_duplicate=is_duplicate)
        # An answer that is not a job fails here.
        _ = self["id"], self["definition"], self.state, self.submitted_at

    @property
    def has_ended(self) -> bool:
        return self.state in TERMINAL


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """A part of a list; the next page follows ``next``, which is None on the last. ``fields`` is the whole answer."""

    items: tuple[T, ...]
    next: str | None
    fields: JsonObject = field(default_factory=dict, repr=False)


class BatchResult(answers.BatchResult):
    """The result of one job of many: ``job`` is its id, or ``problem`` says why there is none."""

    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The results of many jobs, in their order; ``batches`` are the ids that they share."""

    batches: tuple[str, ...]
    results: tuple[BatchResult, ...]

    @property
    def refused(self) -> tuple[BatchResult, ...]:
        return tuple(one for one in self.results if one.problem is not None)


@dataclass(frozen=True, slots=True)
class Changed:
    """The result of a change of all that match.

    ``matched`` is how many there were at first, or at least that many if not ``exact``. ``refused`` counts schedules
    that could not be changed, and ``error`` is one of the reasons. If not ``complete``, more are left after ``next``.
    """

    matched: int
    exact: bool
    changed: int
    asked_to_stop: int
    complete: bool
    refused: int = 0
    error: str | None = None
    next: str | None = None

    @classmethod
    def read(cls, given: JsonObject) -> "Changed":
        # A replica of 0.2.0 sends the first five.
        return cls(**{one.name: given[one.name] for one in fields(cls) if one.name in given})


@dataclass(frozen=True, slots=True)
class JobEvent:
    """An event of a job: ``type`` is ``submitted``, ``started``, ``failed``, …, and ``fields`` name the job.

    For ``schedule.missed``, ``fields`` have the ``schedule`` and how often. ``id`` is the position to go on after, at
    any replica. Other types: ``reset`` (some were missed: list the jobs again), ``lagging`` (read too slowly) and, from
    `stream` alone, ``caught_up`` (there are no more at present).
    """

    id: str | None
    type: str
    fields: JsonObject
