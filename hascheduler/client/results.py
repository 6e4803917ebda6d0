"""What the SDK gives besides the answers of `hascheduler.client.answers`. Instants are aware datetimes in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

from hascheduler.client import answers
from hascheduler.model.job import TERMINAL

T = TypeVar("T")

JsonObject = Mapping[str, Any]


class Problem(answers.Problem):
    """What is wrong with a request: ``type`` is a URN to compare, ``detail`` for people, ``errors`` the fields.

    ``id``, if its outcome is unknown: of what it was about, to ask by."""

    def __init__(self, said: object = None) -> None:
        # Whatever is missing is empty: a proxy's answer may be no problem at all.
        fields = said if isinstance(said, dict) else {}
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
    """One job as it stood. ``payload``, ``result`` and ``attempts`` are empty if it comes from a list.

    ``attempt`` is the fencing token; ``tries`` counts attempts, as each of the ``revivals`` has taken a number too.
    ``replayed``: this submit found it there, under its idempotency key. ``is_duplicate``: the submit made no job, as it
    was a duplicate of this one (``unique`` of the definition)."""

    replayed: bool
    is_duplicate: bool

    def __init__(self, fields: JsonObject, *, replayed: bool = False, is_duplicate: bool = False) -> None:
        # A replica of 0.2.0 does not count tries.
        super().__init__({"tries": fields["attempt"], **fields})
        vars(self).update(replayed=replayed, is_duplicate=is_duplicate)
        # What is no job fails here.
        _ = self["id"], self["definition"], self.state, self.submitted_at

    @property
    def has_ended(self) -> bool:
        return self.state in TERMINAL


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """A part of a list; the page after ``next`` goes on with it, None on the last. ``fields`` is the whole answer."""

    items: tuple[T, ...]
    next: str | None
    fields: JsonObject = field(default_factory=dict, repr=False)


class BatchResult(answers.BatchResult):
    """What became of one job of many: ``job`` is its id, or ``problem`` says why there is none."""

    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Submitted:
    """``results`` are in the order of the jobs; ``batches`` are the ids that they have in common."""

    batches: tuple[str, ...]
    results: tuple[BatchResult, ...]

    @property
    def refused(self) -> tuple[BatchResult, ...]:
        return tuple(one for one in self.results if one.problem is not None)


@dataclass(frozen=True, slots=True)
class Changed:
    """``matched`` is how many there were at first, at least that many if not ``exact``; ``refused`` are schedules that
    could not be changed, ``error`` is one of the reasons. Not ``complete``: more are left, after ``next``."""

    matched: int
    exact: bool
    changed: int
    asked_to_stop: int
    complete: bool
    refused: int = 0
    error: str | None = None
    next: str | None = None

    @classmethod
    def read(cls, said: JsonObject) -> "Changed":
        # A replica of 0.2.0 says the first five.
        return cls(**{one.name: said[one.name] for one in fields(cls) if one.name in said})


@dataclass(frozen=True, slots=True)
class JobEvent:
    """What happened to a job: ``type`` is ``submitted``, ``started``, ``failed``, … and ``fields`` say to which; of a
    ``schedule.missed`` how often, of which ``schedule``. ``id`` is where to go on after it, at any replica.

    Other types: ``reset`` (some were missed: list the jobs again), ``lagging`` (read too slowly) and, from `stream`
    alone, ``caught_up`` (there is no more at present)."""

    id: str | None
    type: str
    fields: JsonObject
