"""What answers say, as values. Instants are aware datetimes in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Generic, TypeVar

from hascheduler.model.job import TERMINAL, JobState

T = TypeVar("T")

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FieldProblem:
    path: str
    problem: str
    expected: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a request: ``type`` is a URN to compare, ``detail`` for people, ``errors`` the fields.

    ``id``, where its outcome is unknown: of what it was about, to ask by."""

    type: str
    detail: str
    errors: tuple[FieldProblem, ...] = ()
    id: str | None = None

    def __str__(self) -> str:
        return self.detail or self.type


@dataclass(frozen=True, slots=True)
class Progress:
    percent: float | None
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    outcome: str
    processor: str | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    traceback: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One job as it stood. ``payload``, ``result`` and ``attempts`` are empty where it comes from a list.

    ``attempt`` is the fencing token; ``tries`` counts attempts, as each of the ``revivals`` has taken a number too.
    ``replayed``: this submit found it there, under its idempotency key. ``is_duplicate``: the submit made no job, as it
    was a duplicate of this one (``unique`` of the definition). ``fields`` is the whole answer.
    """

    id: str
    state: JobState
    definition: str
    target: str
    tenant: str
    lane: str
    priority: int
    attempt: int
    failures: int
    losses: int
    labels: Mapping[str, str]
    submitted_at: datetime
    not_before: datetime | None
    expires_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    retry_at: datetime | None
    schedule: str | None
    nominal_at: datetime | None
    batch: str | None
    depends_on: tuple[str, ...]
    progress: Progress | None
    error: str | None
    payload: Any = None
    result: Any = None
    attempts: tuple[Attempt, ...] = ()
    tries: int = 0
    revivals: int = 0
    replayed: bool = False
    is_duplicate: bool = False
    fields: Json = field(default_factory=dict, repr=False)

    @property
    def has_ended(self) -> bool:
        return self.state in TERMINAL


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """A part of a list; the page after ``next`` goes on with it, None on the last. ``fields`` is the whole answer."""

    items: tuple[T, ...]
    next: str | None
    fields: Json = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of one job of many: ``job`` is its id, or ``problem`` says why there is none."""

    status: int
    job: str | None
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


@dataclass(frozen=True, slots=True)
class Revived:
    """``answer`` is the job's own: ``ok``, ``not_ended`` or ``not_failed``.

    ``dependents`` has that of each job that depends on it, by id: ``ok``, ``not_ended``, ``kept``,
    ``dependency_failed`` or ``changed``. Not ``complete``: it has more of them than a replica looks at.
    """

    answer: str
    dependents: Mapping[str, str]
    complete: bool
    fields: Json = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class JobEvent:
    """What happened to a job: ``type`` is ``submitted``, ``started``, ``failed``, … and ``fields`` say to which.

    ``schedule.missed`` has no ``job``, but ``count`` times of ``schedule`` from ``nominal_at`` through ``through_at``.

    ``id`` is where to go on after it, at any replica. Other types: ``reset`` (some were missed), ``lagging`` (read too
    slowly) and, from `stream` alone, ``caught_up`` (there is no more at present).
    """

    id: str | None
    type: str
    fields: Json


def read_job(fields: Json, *, replayed: bool = False, is_duplicate: bool = False) -> Job:
    """Raises `ValueError`, `KeyError` or `TypeError` where that is no job."""
    progress = fields["progress"]
    return Job(
        id=fields["id"],
        state=JobState(fields["state"]),
        definition=fields["definition"],
        target=fields["target"],
        tenant=fields["tenant"],
        lane=fields["lane"],
        priority=fields["priority"],
        attempt=fields["attempt"],
        failures=fields["failures"],
        losses=fields.get("losses", 0),  # a replica of 0.2.0 counts them as failures
        labels=fields["labels"],
        submitted_at=datetime.fromisoformat(fields["submitted_at"]),
        not_before=_instant(fields["not_before"]),
        expires_at=_instant(fields["expires_at"]),
        started_at=_instant(fields["started_at"]),
        finished_at=_instant(fields["finished_at"]),
        retry_at=_instant(fields["retry_at"]),
        schedule=fields["schedule"],
        nominal_at=_instant(fields["nominal_at"]),
        batch=fields["batch"],
        depends_on=tuple(fields["depends_on"]),
        progress=None
        if progress is None
        else Progress(progress["percent"], progress["text"], datetime.fromisoformat(progress["at"])),
        error=fields["error"],
        payload=fields.get("payload"),
        result=fields.get("result"),
        attempts=tuple(_attempt(one) for one in fields.get("attempts", ())),
        tries=fields.get("tries", fields["attempt"]),  # a replica of 0.2.0 does not count them
        revivals=fields.get("revivals", 0),
        replayed=replayed,
        is_duplicate=is_duplicate,
        fields=fields,
    )


def read_batch_result(fields: Json) -> BatchResult:
    problem = fields["problem"]
    return BatchResult(fields["status"], fields["job"], None if problem is None else read_problem(problem))


def read_changed(said: Json) -> Changed:
    # A replica of 0.2.0 says the first five.
    return Changed(**{one.name: said[one.name] for one in fields(Changed) if one.name in said})


def read_revived(fields: Json) -> Revived:
    # A replica of 0.2.0 says the answer alone.
    dependents = {one["job"]: one["answer"] for one in fields.get("dependents", ())}
    return Revived(fields["answer"], dependents, fields.get("complete", True), fields)


def read_problem(fields: Json) -> Problem:
    """Whatever is missing is empty: a proxy's answer may be no problem at all."""
    errors = fields.get("errors")
    return Problem(
        str(fields.get("type", "")),
        str(fields.get("detail", "")),
        tuple(
            FieldProblem(str(one.get("path", "")), str(one.get("problem", "")), str(one.get("expected", "")))
            for one in (errors if isinstance(errors, list) else ())
            if isinstance(one, dict)
        ),
        str(fields["id"]) if fields.get("id") else None,
    )


def _attempt(fields: Json) -> Attempt:
    return Attempt(
        fields["number"],
        fields["outcome"],
        fields["processor"],
        _instant(fields["started_at"]),
        _instant(fields["finished_at"]),
        fields["error"],
        fields.get("traceback"),  # not from a replica of 0.2.0
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
