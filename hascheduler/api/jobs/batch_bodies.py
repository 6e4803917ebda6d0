"""What a batch of jobs looks like in a request, and its answer."""

from pydantic import BaseModel, ConfigDict, Field, JsonValue, SkipValidation

from hascheduler.api.http.problems import ProblemDetails
from hascheduler.wire.fields import Name, StrictModel
from hascheduler.wire.job import SubmitJobBody

JOBS_MAX = 1_000


class BatchJobBody(SubmitJobBody):
    """One job of a batch."""

    ref: Name | None = Field(default=None, description="What the others of this batch call it, as `ref:NAME`")
    idempotency_key: str | None = Field(
        default=None, description="As the header, for this job; default: the header's key and the place in the batch"
    )


class BatchBody(StrictModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "jobs": [
                        {"ref": "a", "definition": "log", "payload": {"message": "first"}},
                        {"definition": "log", "payload": {"message": "then"}, "depends_on": ["ref:a"]},
                    ]
                }
            ]
        }
    )

    # Each job is validated on its own: an invalid one gets its problem in its place of the answer.
    jobs: list[SkipValidation[BatchJobBody | JsonValue]] = Field(
        description="Up to a thousand; each is accepted or refused by itself", min_length=1, max_length=JOBS_MAX
    )
    atomic: bool = Field(
        default=False,
        description="All or none: where one is refused, so is the request, with the errors of all at `jobs.0.…`, and "
        "nothing is submitted. The only key is that of the header, and no definition may be `unique`",
    )


class BatchJobResponse(BaseModel):
    status: int = Field(
        description="201: submitted; 200: it was there already, or it is a duplicate of `job`, as `unique` of its "
        "definition says; else `problem` says what is wrong"
    )
    job: str | None = Field(description="Its id; null where it was refused")
    problem: ProblemDetails | None = Field(description="Why it was refused; null where it was not")


class BatchResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "batch": "batch:0194f3a1b2c3000001deadbeef01",
                    "results": [{"status": 201, "job": "job:0194f3a1b2c3000002deadbeef01", "problem": None}],
                }
            ]
        }
    )

    batch: str = Field(description="Its jobs are found by it; others may depend on it")
    results: list[BatchJobResponse] = Field(description="One for each job, in their order")
