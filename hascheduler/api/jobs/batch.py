"""``POST /v1/jobs:batch``: many jobs at once, each with its own result.

A refused job does not keep the others back, except those that depend on it; if the request is ``atomic``, all jobs
are submitted or none. Within a batch jobs depend on each other by ``ref:NAME``. They are inserted level by level:
first those that wait for nothing in the batch, so that in the database, and in every replica's stream, a job comes
after the jobs that it waits for.

A thousand jobs of two megabytes are long work: after each fifty of them other requests get their turn.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import APIRouter, Request, Response
from pydantic import Field, JsonValue, SkipValidation, ValidationError

from hascheduler.api.http.problems import (
    ERRORS_SHOWN_MAX,
    ProblemDetails,
    ProblemError,
    error_text,
    problem_body,
    problem_responses,
)
from hascheduler.api.http.server import BATCH_ID
from hascheduler.api.jobs import idempotency
from hascheduler.api.jobs.dependencies import (
    NOTHING_NAMED,
    Definitions,
    Found,
    Lookup,
    definitions_of,
    levels_of,
    look_up,
    require_any_of,
    with_dependencies,
    with_keys,
)
from hascheduler.api.jobs.idempotency import IdempotencyKey, checked_key
from hascheduler.api.jobs.submit import job_of, submit_span
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Caller, Submitter
from hascheduler.api.routing.route_rules import LargeJsonRoute
from hascheduler.api.routing.warnings import warn_of_names
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.documents.job import IDEMPOTENCY_MS
from hascheduler.model.job import BATCH_PREFIX, JobState, NewJob
from hascheduler.model.trace import TraceContext
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JobSelection, KnownJob, Submission, SubmitAnswer
from hascheduler.schema.forms import Name
from hascheduler.schema.job import SubmitJobBody
from hascheduler.schema.noun import AS_REQUEST, Part, parse_request
from hascheduler.schema.refusals import Path, refusal_of
from hascheduler.telemetry.tracing import JOBS

JOBS_MAX = 1_000


class BatchJobBody(SubmitJobBody):
    """A job of a batch."""

    ref: Name | None = Field(default=None, examples=["a"])
    """Its name in `depends_on` of other jobs of the batch, as `ref:NAME`"""
    idempotency_key: str | None = None
    """The idempotency key of this job; default: the header's key with the index in the batch"""


_BATCH = [
    {"ref": "a", "definition": "log", "payload": {"message": "first"}},
    {"definition": "log", "payload": {"message": "then"}, "depends_on": ["ref:a"]},
]


class BatchBody(Part):
    # Each job is validated on its own: an invalid one gets its problem in its place of the response.
    jobs: list[SkipValidation[BatchJobBody | JsonValue]] = Field(min_length=1, max_length=JOBS_MAX, examples=[_BATCH])
    """At most 1000 jobs; each is accepted or refused on its own"""
    atomic: bool = False
    """Submit all jobs or none: if one is refused, the request fails with the errors of all jobs at `jobs.0.…`. Only
    the header may have an idempotency key, and no definition may have `unique`"""


class BatchJobResponse(Part):
    status: int = Field(examples=[201])
    """201: submitted; 200: it existed already, or is a duplicate of `job` by `unique` of its definition; otherwise
    `problem` has the error"""
    job: str | None = Field(examples=["job:0194f3a1b2c3000002deadbeef01"])
    """The id of the job; null if it was refused"""
    problem: ProblemDetails | None = Field(examples=[None])
    """Why it was refused; null if it was accepted"""


class BatchResponse(Part):
    batch: str = Field(examples=["batch:0194f3a1b2c3000001deadbeef01"])
    """The id of the batch, to find its jobs and to depend on all of them"""
    results: list[BatchJobResponse]
    """The results of the jobs, in the same order"""


def require_all(refusals: Sequence[bytes | None]) -> None:
    """Raise a `ProblemError` if any of ``refusals``, the results of the jobs in order, as sent, is not None.

    The status and the type are those of the first. Each error has its job's place before its path.
    """
    refused: list[tuple[int, dict[str, Any]]] = [
        (place, orjson.loads(refusal)["problem"]) for place, refusal in enumerate(refusals) if refusal is not None
    ]
    if not refused:
        return
    errors: list[InvalidInput] = []
    for place, problem in refused:
        if len(errors) >= ERRORS_SHOWN_MAX:
            break
        own = problem["errors"] or [{"path": "", "problem": problem["detail"], "expected": ""}]
        errors += [_error(place, each) for each in own]
    first = refused[0][1]
    others = f"; {len(refused)} of {len(refusals)} jobs are refused, so none was submitted"
    raise ProblemError(
        HTTPStatus(first["status"]),
        first["type"].rpartition(":")[2],
        f"{error_text(errors[0])}{others}",
        errors=errors[:ERRORS_SHOWN_MAX],
    )


def _error(place: int, error: dict[str, Any]) -> InvalidInput:
    path = ("jobs", place, *error["path"].split(".")) if error["path"] else ("jobs", place)
    return InvalidInput(path, error["problem"], error.get("expected") or "")


REF_PREFIX = "ref:"
_AT_ONCE_MAX = 250
"""The most jobs that one command inserts: the driver encodes them in one go."""
_ERRORS_LENGTH_MAX = 2_000
_PAUSE_EVERY = 50
"""The number of jobs after which other tasks get their turn."""
_DEPENDENCIES_MAX = 100_000
"""The most dependencies of all jobs of a batch together."""

T = TypeVar("T")

router = APIRouter(tags=["jobs"], route_class=LargeJsonRoute)


@dataclass(slots=True)
class _BatchItem:
    """A job of the batch on its way: the request, the job to insert, the stored job, or why it is refused."""

    body: BatchJobBody | None = None
    job: NewJob | None = None
    submission: Submission | None = None
    refusal: bytes | None = None
    """A `BatchJobResponse` as sent: as objects, those of a thousand jobs would take some 30 MB."""

    def refuse(self, *errors: InvalidInput) -> None:
        self.refusal = _refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", error_text(errors[0]), errors)


@router.post(
    "/jobs:batch",
    response_model=BatchResponse,
    responses=problem_responses(409, 413, 422, 429),
    openapi_extra=idempotency.PARAMETER,
)
async def submit_batch(
    body: Annotated[BatchBody, AS_REQUEST],
    services: Services,
    caller: Submitter,
    key: IdempotencyKey,
    *,
    note: Noted,
    request: Request,
) -> Response:
    """Submit up to 1,000 jobs at once.

    A refused job does not hold back the others, except those that depend on it, unless the batch is `atomic`.
    """
    split_batch_id: str | None = request.scope["state"].get(BATCH_ID)  # set by the gateway that has split the batch
    id = note.target = split_batch_id or await _batch_id(key, caller, services)
    note.location = f"/v1/jobs?batch={id}"
    with submit_span(request, services, "batch", **{JOBS: len(body.jobs)}) as span:
        batch = _Batch(id, key, caller, services, span.context)
        await batch.submit(body)
    response = Response(await _answer(id, batch.items), media_type="application/json")
    accepted = (item.body for item in batch.items if item.body and item.refusal is None)
    warn_of_names(response, accepted, services.view)
    return response


@dataclass(slots=True)
class _Batch:
    """A batch in progress: reads its jobs, finds the dependencies of each, once, and submits them."""

    id: str
    key: str | None
    caller: Caller
    services: ApiServices
    trace: TraceContext | None
    items: list[_BatchItem] = field(default_factory=list)
    refs: dict[str, int] = field(default_factory=dict)
    """The index of each ref."""
    lookup: Lookup = NOTHING_NAMED
    room: int = _DEPENDENCIES_MAX
    """How many more dependencies the batch may have."""
    admitted: Counter[str] = field(default_factory=Counter)
    """How many jobs were admitted, by tenant."""
    dependencies: Counter[str] = field(default_factory=Counter)

    async def submit(self, body: BatchBody) -> None:
        async for _, value in _with_pauses(body.jobs):
            self._read(value)
        bodies = [item.body for item in self.items if item.body]
        definitions = await definitions_of((each.definition for each in bodies), self.services)
        now = self.services.clock.wall_ms()
        async for index, item in _with_pauses(self.items):
            if item.body is not None and item.refusal is None:
                self._make(index, item, item.body, definitions, now)
        names = [name for each in bodies for name in each.depends_on if not name.startswith(REF_PREFIX)]
        if names:
            self.lookup = await look_up(names, self.caller, self.services)
        levels, in_cycles = levels_of([self._needs(item) for item in self.items])
        for index in in_cycles:
            self.items[index].refuse(InvalidInput(("depends_on",), "depends on itself through other jobs", "no cycle"))
        if body.atomic:
            await self._submit_together([self.items[index] for level in levels for index in level])
            return
        await self._admit()
        for level in levels:
            await self._submit_level([self.items[index] for index in level])
        self._return_unused(self.items)

    def _read(self, value: BatchJobBody | JsonValue) -> None:
        index, item = len(self.items), _BatchItem()
        self.items.append(item)
        try:
            item.body = parse_request(BatchJobBody, value)
        except ValidationError as error:
            found = error.errors(include_url=False)[:ERRORS_SHOWN_MAX]
            # Suggest the meant name at most once a job: a batch may consist of unknown fields.
            item.refuse(*(refusal_of(one, value, None if place else BatchJobBody) for place, one in enumerate(found)))
            return
        ref = item.body.ref
        if ref is not None and self.refs.setdefault(ref, index) != index:
            item.refuse(InvalidInput(("ref",), f"{ref!r} is repeated", "each ref once"))

    def _make(self, index: int, item: _BatchItem, body: BatchJobBody, definitions: Definitions, now: WallMs) -> None:
        """Make the job to insert, but without its dependencies."""
        try:
            job = with_keys(job_of(body, self.caller, self.services, now), definitions)
            own_key = None if body.idempotency_key is None else checked_key(body.idempotency_key)
        except InvalidInput as error:
            item.refuse(error)
            return
        except ProblemError as error:
            item.refusal = _refusal(error.status_code, error.kind, str(error.detail), error.errors)
            return
        own_key = own_key or (None if self.key is None else f"{self.key}#{index}")
        if own_key is not None:
            job = replace(job, idempotency_key=own_key, request_hash=body.request_hash())
        item.job = replace(job, batch=self.id, trace=self.trace)

    def _needs(self, item: _BatchItem) -> list[int]:
        """Return the indexes of the jobs that the job waits for. `_resolve` refuses refs that do not exist."""
        names = item.body.depends_on if item.body else ()
        refs = (name.removeprefix(REF_PREFIX) for name in names if name.startswith(REF_PREFIX))
        return [self.refs[ref] for ref in refs if ref in self.refs]

    async def _submit_together(self, ordered: Sequence[_BatchItem]) -> None:
        """Submit all jobs, or raise a `ProblemError` with the errors of each that is refused."""
        for item in self.items:
            if item.body is None or item.refusal is not None:
                continue
            if item.body.idempotency_key is not None:
                problem = "not supported in an atomic batch"
                item.refuse(InvalidInput(("idempotency_key",), problem, "the header's key for the whole batch"))
            elif item.job is not None and item.job.unique is not None:
                # "All or none" excludes a job that another one blocks, or that replaces another one.
                problem = f"definition {item.job.definition!r} has unique, which is not supported in an atomic batch"
                expected = "a definition without unique, or a batch without atomic"
                item.refuse(InvalidInput(("definition",), problem, expected))
        await self._resolve_all(ordered, there_at_once=True)
        require_all([item.refusal for item in self.items])
        jobs = [item.job for item in ordered if item.job is not None]
        if any(job.idempotency_key for job in jobs):
            # Each job has the hash of its own request.
            asked = [(one.body.ref, one.job.request_hash, one.job.tenant) for one in self.items if one.body and one.job]
            together = idempotency.request_hash("atomic batch", asked)
            jobs = [replace(job, request_hash=together) for job in jobs]
        await self._admit()
        submissions = await self.services.jobs.submit_all(jobs)
        for place, item in enumerate(ordered):
            item.submission = None if submissions is None else submissions[place]
        self._return_unused(self.items)
        if submissions is None:
            raise Conflict(idempotency.other_body((jobs[0].idempotency_key or "").rpartition("#")[0]))

    async def _submit_level(self, level: Sequence[_BatchItem]) -> None:
        ready = await self._resolve_all(level)
        for begin in range(0, len(ready), _AT_ONCE_MAX):
            chunk = ready[begin : begin + _AT_ONCE_MAX]
            submissions = await self.services.jobs.submit_many([item.job for item in chunk if item.job is not None])
            for item, submission in zip(chunk, submissions, strict=True):
                item.submission = submission
                if submission.answer is SubmitAnswer.OTHER:
                    detail = idempotency.other_body((item.job.idempotency_key if item.job else None) or "")
                    item.refusal = _refusal(HTTPStatus.CONFLICT, "conflict", detail)

    async def _admit(self) -> None:
        """Admit the jobs of all tenants or none, with as many dependencies as they may have."""
        jobs: Counter[str] = Counter()
        dependencies: Counter[str] = Counter()
        for item in self.items:
            if item.body is not None and item.job is not None and item.refusal is None:
                jobs[item.job.tenant] += 1
                dependencies[item.job.tenant] += sum(map(self.lookup.most, dict.fromkeys(item.body.depends_on)))
        try:
            for tenant, count in sorted(jobs.items()):
                await self.services.admission.admit(tenant, count, dependencies=dependencies[tenant])
                self.admitted[tenant], self.dependencies[tenant] = count, dependencies[tenant]
        except BaseException:
            self._return_unused(())
            raise

    def _return_unused(self, submitted: Sequence[_BatchItem]) -> None:
        """Return the admissions that made no new job, or no dependency of one."""
        for item in submitted:
            if item.job is not None and item.submission is not None and item.submission.answer is SubmitAnswer.NEW:
                self.admitted[item.job.tenant] -= 1
                self.dependencies[item.job.tenant] -= len(item.job.waits_for)
        for tenant, count in self.admitted.items():
            if count or self.dependencies[tenant]:
                self.services.admission.not_new(tenant, count, dependencies=self.dependencies[tenant])

    async def _resolve_all(self, items: Sequence[_BatchItem], *, there_at_once: bool = False) -> list[_BatchItem]:
        """Return the jobs whose dependencies all exist, and refuse the others that are not refused yet.

        If ``there_at_once``, each job exists for those after it before it is submitted.
        """
        ready: list[_BatchItem] = []
        async for _, item in _with_pauses(items):
            if item.refusal is not None:
                continue
            assert item.body is not None
            assert item.job is not None
            try:
                item.job = self._resolve(item.job, item.body.depends_on)
            except InvalidInput as error:
                item.refuse(error)
                continue
            self.room -= len(item.job.depends_on)
            ready.append(item)
            if there_at_once:
                there = {"_id": item.job.id, "tenant": item.job.tenant, "state": JobState.PENDING.value}
                item.submission = Submission(SubmitAnswer.NEW, there)
        return ready

    def _resolve(self, job: NewJob, names: Sequence[str]) -> NewJob:
        """Return ``job`` with its dependencies; raise `InvalidInput` if one does not exist, or there are too many."""
        job = with_dependencies(job, names, self._found, self.services)
        if len(job.depends_on) > self.room:
            problem = "the jobs of this batch have too many dependencies in all"
            raise InvalidInput(("depends_on",), problem, f"at most {_DEPENDENCIES_MAX}")
        return job

    def _found(self, name: str, path: Path, within: str | None) -> Found:
        """Return the jobs that ``name`` stands for: the job of this batch with that ref, or earlier jobs."""
        if name == self.id:
            raise InvalidInput(path, "is the batch that contains the job", "ref:NAME of other jobs of this batch")
        if not name.startswith(REF_PREFIX):
            return self.lookup.found(name, path, within)
        ref = name.removeprefix(REF_PREFIX)
        other = self.items[self.refs[ref]] if ref in self.refs else None
        if other is None:
            raise InvalidInput(path, f"no job of this batch has the ref {ref!r}")
        if other.refusal is not None or other.submission is None:
            raise InvalidInput(path, f"{name!r} was refused")
        document = other.submission.document
        id = str(document["_id"])
        found = [KnownJob(id, str(document["tenant"]), JobState(document["state"]))]
        require_any_of(within, found, name, path)
        return {id: found}


async def _batch_id(key: str | None, caller: Caller, services: ApiServices) -> str:
    """Return the id that a repeated request gets again, but no id that has jobs of a request whose key has expired.

    It follows from the key, so that racing requests agree. 0.2.0 knows only the first of these ids, so that one is
    taken if no earlier batch has it.
    """
    if key is None:
        return BATCH_PREFIX + services.new_id()
    now = services.clock.wall_ms()
    asked, day = f"{caller.tenant}/{key}", now // IDEMPOTENCY_MS
    plain, yesterday, today = (
        BATCH_PREFIX + hashlib.sha256(text.encode()).hexdigest()[:32]
        for text in (asked, f"{asked}/{day - 1}", f"{asked}/{day}")
    )
    is_used = False
    for batch in (plain, yesterday, today):
        newest = (await services.jobs.list(JobSelection(tenant=caller.only, batch=batch), None, 1)).documents
        if newest and newest[0]["submitted_at_ms"] + IDEMPOTENCY_MS > now:
            return batch
        is_used = is_used or bool(newest)
    return today if is_used else plain


async def _with_pauses(items: Sequence[T]) -> AsyncIterator[tuple[int, T]]:
    """Yield each item with its index, and let other tasks run after each fifty."""
    for place, item in enumerate(items, 1):
        yield place - 1, item
        if place % _PAUSE_EVERY == 0:
            await asyncio.sleep(0)


def _refusal(status: int, kind: str, detail: str, errors: Sequence[InvalidInput] = ()) -> bytes:
    problem = problem_body(status, kind, detail, errors, errors_length_max=_ERRORS_LENGTH_MAX)
    return orjson.dumps({"status": int(status), "job": None, "problem": {"errors": [], **problem}})


async def _answer(batch: str, items: Sequence[_BatchItem]) -> bytes:
    """Return a `BatchResponse` as sent."""
    results = [_result(item) async for _, item in _with_pauses(items)]
    return b'{"batch":%b,"results":[%b]}' % (orjson.dumps(batch), b",".join(results))


def _result(item: _BatchItem) -> bytes:
    if item.refusal is not None:
        return item.refusal
    assert item.submission is not None
    is_new = item.submission.answer is SubmitAnswer.NEW
    status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
    return orjson.dumps({"status": int(status), "job": str(item.submission.document["_id"]), "problem": None})
