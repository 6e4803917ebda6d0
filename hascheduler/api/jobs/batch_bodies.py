"""What a batch of jobs looks like in a request, its answer, and the refusal of a whole batch."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import orjson
from pydantic import Field, JsonValue, SkipValidation

from hascheduler.api.http.problems import ERRORS_SHOWN_MAX, FieldError, ProblemDetails, ProblemError
from hascheduler.schema.forms import Name
from hascheduler.schema.job import SubmitJobBody
from hascheduler.schema.noun import Part

JOBS_MAX = 1_000


class BatchJobBody(SubmitJobBody):
    """One job of a batch."""

    ref: Name | None = Field(default=None, examples=["a"])
    """What the others of this batch call it, as `ref:NAME`"""
    idempotency_key: str | None = None
    """As the header, for this job; default: the header's key and the place in the batch"""


_BATCH = [
    {"ref": "a", "definition": "log", "payload": {"message": "first"}},
    {"definition": "log", "payload": {"message": "then"}, "depends_on": ["ref:a"]},
]


class BatchBody(Part):
    # Each job is validated on its own: an invalid one gets its problem in its place of the answer.
    jobs: list[SkipValidation[BatchJobBody | JsonValue]] = Field(min_length=1, max_length=JOBS_MAX, examples=[_BATCH])
    """Up to a thousand; each is accepted or refused by itself"""
    atomic: bool = False
    """All or none: where one is refused, so is the request, with the errors of all at `jobs.0.…`, and nothing is
    submitted. The only key is that of the header, and no definition may be `unique`"""


class BatchJobResponse(Part):
    status: int = Field(examples=[201])
    """201: submitted; 200: it was there already, or it is a duplicate of `job`, as `unique` of its definition says;
    else `problem` says what is wrong"""
    job: str | None = Field(examples=["job:0194f3a1b2c3000002deadbeef01"])
    """Its id; null where it was refused"""
    problem: ProblemDetails | None = Field(examples=[None])
    """Why it was refused; null where it was not"""


class BatchResponse(Part):
    batch: str = Field(examples=["batch:0194f3a1b2c3000001deadbeef01"])
    """Its jobs are found by it; others may depend on it"""
    results: list[BatchJobResponse]
    """One for each job, in their order"""


def require_all(refusals: Sequence[bytes | None]) -> None:
    """Raise a `ProblemError` if there is one. ``refusals`` are the answers of the jobs, in order, as they are sent.

    The status and the type are those of the first; each error has its job's place before its path.
    """
    refused: list[tuple[int, dict[str, Any]]] = [
        (place, orjson.loads(refusal)["problem"]) for place, refusal in enumerate(refusals) if refusal is not None
    ]
    if not refused:
        return
    errors: list[FieldError] = []
    for place, problem in refused:
        if len(errors) >= ERRORS_SHOWN_MAX:
            break
        own = problem["errors"] or [{"path": "", "problem": problem["detail"], "expected": ""}]
        errors += [_error(place, each) for each in own]
    first = refused[0][1]
    others = f"; {len(refused)} of {len(refusals)} jobs are refused, so none is submitted"
    raise ProblemError(
        HTTPStatus(first["status"]),
        first["type"].rpartition(":")[2],
        f"{errors[0]}{others}",
        errors=errors[:ERRORS_SHOWN_MAX],
    )


def _error(place: int, error: dict[str, Any]) -> FieldError:
    path = ("jobs", place, *error["path"].split(".")) if error["path"] else ("jobs", place)
    return FieldError(path, error["problem"], error.get("expected") or "")
