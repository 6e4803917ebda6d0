"""``POST /v1/jobs:batch``: many jobs at once, each with its own answer.

A job that is refused does not keep the others back, except those that depend on it; where the request says ``atomic``,
all jobs are submitted or none. Within a batch jobs depend on each other by ``ref:NAME``. They are inserted level by
level: first those that wait for nothing in the batch, so that in the database, and in every replica's stream, a job
comes after what it waits for.

A thousand jobs of two megabytes are long work: after each fifty of them other requests get their turn.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import islice
from typing import TypeVar

import orjson
from fastapi import APIRouter, Request, Response
from pydantic import JsonValue, ValidationError

from hascheduler.api.http.peer import BATCH_ID
from hascheduler.api.http.problems import (
    ERRORS_SHOWN_MAX,
    FieldError,
    ProblemError,
    problem_body,
    problem_responses,
)
from hascheduler.api.jobs import idempotency
from hascheduler.api.jobs.batch_bodies import BatchBody, BatchJobBody, BatchResponse, require_all
from hascheduler.api.jobs.dependencies import (
    NOTHING_NAMED,
    Found,
    Lookup,
    levels_of,
    look_up,
    require_any_of,
    require_few,
    waits_for,
)
from hascheduler.api.jobs.idempotency import IdempotencyKey, checked_key
from hascheduler.api.jobs.keys import Definitions, definitions_of, with_keys
from hascheduler.api.jobs.submit import submit_span
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Caller, Submitter
from hascheduler.api.routing.route_rules import LargeJsonRoute, field_error
from hascheduler.api.routing.warnings import require_lane, warn_of_lane
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.documents.job import IDEMPOTENCY_MS
from hascheduler.model.job import BATCH_PREFIX, JobState, NewJob
from hascheduler.model.trace import TraceContext
from hascheduler.ports import JobSelection, KnownJob, Submission, SubmitAnswer
from hascheduler.schema.noun import parse_request
from hascheduler.telemetry.tracing import JOBS

REF_PREFIX = "ref:"
_AT_ONCE_MAX = 250
"""Jobs that one command inserts: the driver encodes them in one go."""
_ERRORS_LENGTH_MAX = 2_000
_PAUSE_EVERY = 50
"""Jobs, after which other tasks get their turn."""
_WARNINGS_MAX = 10
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
    """A `BatchJobResponse` as it is sent."""

    def refuse(self, errors: Sequence[FieldError]) -> None:
        self.refusal = _refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", str(errors[0]), errors)


@router.post(
    "/jobs:batch",
    response_model=BatchResponse,
    responses=problem_responses(409, 413, 422, 429),
    openapi_extra=idempotency.PARAMETER,
)
async def submit_batch(
    body: BatchBody, services: Services, caller: Submitter, key: IdempotencyKey, *, note: Noted, request: Request
) -> Response:
    """Submit up to 1,000 jobs; one that is refused keeps none of the others back that do not depend on it, unless
    they are `atomic`."""
    told: str | None = request.scope["state"].get(BATCH_ID)  # by the gateway that has parted the batch
    batch = note.target = told or await _batch_id(key, caller, services)
    note.location = f"/v1/jobs?batch={batch}"
    with submit_span(request, services, "batch", **{JOBS: len(body.jobs)}) as span:
        items = await _submit_all(body, key, caller, services, batch=batch, trace=span.context)
    response = Response(await _answer(batch, items), media_type="application/json")
    for lane in islice({item.body.lane: None for item in items if item.body and item.refusal is None}, _WARNINGS_MAX):
        warn_of_lane(response, lane, services.view)
    return response


async def _submit_all(
    body: BatchBody, key: str | None, caller: Caller, services: ApiServices, *, batch: str, trace: TraceContext | None
) -> Sequence[_BatchItem]:
    items = [_parse(each) async for _, each in _with_pauses(body.jobs)]
    refs = _refs(items)
    definitions = await definitions_of((item.body.definition for item in items if item.body), services)
    await _make_jobs(items, key, caller, services, batch=batch, trace=trace, definitions=definitions)
    names = [name for item in items if item.body for name in item.body.depends_on if not name.startswith(REF_PREFIX)]
    lookup = await look_up(names, caller, services) if names else NOTHING_NAMED
    levels, in_cycles = levels_of([_needs(item, refs) for item in items])
    for index in in_cycles:
        items[index].refuse([FieldError(("depends_on",), "waits for itself, round about", "no circle")])
    resolver = _Resolver(items, refs, lookup, within_tenant=services.is_one_of_several)
    if body.atomic:
        await _submit_together(resolver, [each for level in levels for each in level], services)
        return items
    admitted = await _admit(items, lookup, services)
    for level in levels:
        await _submit_level([index for index in level if items[index].refusal is None], resolver, services)
    _return_unused(admitted, items, services)
    return items


async def _submit_together(resolver: "_Resolver", order: Sequence[int], services: ApiServices) -> None:
    """All of them, or a `ProblemError` with the errors of each that is refused."""
    items = resolver.items
    for item in items:
        if item.body is not None and item.body.idempotency_key is not None and item.refusal is None:
            problem = "can't be had in an atomic batch"
            item.refuse([FieldError(("idempotency_key",), problem, "the header's key, for all of them")])
        if item.job is not None and item.job.unique is not None and item.refusal is None:
            # All or none, and one that another job keeps out, or that takes another's place, do not go together.
            problem = f"jobs of {item.job.definition!r} are unique, which can't be had in an atomic batch"
            item.refuse(
                [FieldError(("definition",), problem, "a definition without unique, or a batch without atomic")]
            )
    await resolver.resolve(order, there_at_once=True)
    require_all([item.refusal for item in items])
    jobs = _jobs_of(items, order)
    if any(job.idempotency_key for job in jobs):
        # Each has the hash of its own request.
        asked = [(item.body.ref, item.job.request_hash, item.job.tenant) for item in items if item.body and item.job]
        together = idempotency.request_hash("atomic batch", asked)
        jobs = [replace(job, request_hash=together) for job in jobs]
    admitted = await _admit(items, resolver.lookup, services)
    submissions = await services.jobs.submit_all(jobs)
    for place, index in enumerate(order):
        items[index].submission = None if submissions is None else submissions[place]
    _return_unused(admitted, items, services)
    if submissions is None:
        detail = idempotency.other_body((jobs[0].idempotency_key or "").rpartition("#")[0])
        raise Conflict(detail)


def _jobs_of(items: Sequence[_BatchItem], order: Sequence[int]) -> list[NewJob]:
    return [job for index in order if (job := items[index].job) is not None]


async def _batch_id(key: str | None, caller: Caller, services: ApiServices) -> str:
    """The id that a repeated request gets again, and none that has jobs of a request whose key has run out.

    It follows from the key, so that requests that race agree. 0.2.0 knows the first of these ids alone, so that one is
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
    """Yield each item with its place; other tasks get their turn after each fifty."""
    for place, item in enumerate(items, 1):
        yield place - 1, item
        if place % _PAUSE_EVERY == 0:
            await asyncio.sleep(0)


def _parse(value: BatchJobBody | JsonValue) -> _BatchItem:
    item = _BatchItem()
    try:
        item.body = parse_request(BatchJobBody, value)
    except ValidationError as error:
        found = error.errors(include_url=False)[:ERRORS_SHOWN_MAX]
        # What was meant is looked for once a job: a batch may be nothing but unknown fields.
        models = (BatchJobBody, *(None for _ in found))
        item.refuse(
            [
                field_error({**one, "loc": ("body", *one["loc"])}, value, model)
                for one, model in zip(found, models, strict=False)
            ]
        )
    return item


def _refs(items: Sequence[_BatchItem]) -> dict[str, int]:
    """The index of each ref; a job that repeats an earlier one's ref is refused."""
    refs: dict[str, int] = {}
    for index, item in enumerate(items):
        if item.body is None or item.body.ref is None:
            continue
        if refs.setdefault(item.body.ref, index) != index:
            item.refuse([FieldError(("ref",), f"{item.body.ref!r} is there twice", "each ref once")])
    return refs


async def _make_jobs(
    items: Sequence[_BatchItem],
    key: str | None,
    caller: Caller,
    services: ApiServices,
    *,
    batch: str,
    trace: TraceContext | None,
    definitions: Definitions,
) -> None:
    now = services.clock.wall_ms()
    async for index, item in _with_pauses(items):
        body = item.body
        if body is None or item.refusal is not None:
            continue
        try:
            body.require_time_to_start(now)
            require_lane(body.lane, caller, services.view)
            tenant = caller.tenant_of(body.tenant)
            job = with_keys(body.job(services.new_job_id(tenant), tenant, now), definitions)
            own_key = None if body.idempotency_key is None else checked_key(body.idempotency_key)
        except InvalidInput as error:
            item.refuse([FieldError(error.path, error.problem, error.expected)])
            continue
        except ProblemError as error:
            item.refusal = _refusal(error.status_code, error.kind, str(error.detail), error.errors)
            continue
        own_key = own_key or (None if key is None else f"{key}#{index}")
        if own_key is not None:
            job = replace(job, idempotency_key=own_key, request_hash=body.request_hash())
        item.job = replace(job, batch=batch, trace=trace)


def _needs(item: _BatchItem, refs: Mapping[str, int]) -> list[int]:
    """Return the indexes of the jobs that the job waits for; `_Resolver` refuses refs that do not exist."""
    names = item.body.depends_on if item.body else ()
    own_refs = (name.removeprefix(REF_PREFIX) for name in names if name.startswith(REF_PREFIX))
    return [refs[ref] for ref in own_refs if ref in refs]


@dataclass(slots=True)
class _Admitted:
    """By tenant: how many jobs were admitted, and how many dependencies."""

    jobs: Counter[str] = field(default_factory=Counter)
    dependencies: Counter[str] = field(default_factory=Counter)


async def _admit(items: Sequence[_BatchItem], lookup: Lookup, services: ApiServices) -> _Admitted:
    """Admit the jobs of each tenant, with as many dependencies as they may turn out to have; either all are admitted,
    or it raises and none is."""
    wanted, admitted = _Admitted(), _Admitted()
    for item in items:
        if item.body is not None and item.job is not None and item.refusal is None:
            wanted.jobs[item.job.tenant] += 1
            wanted.dependencies[item.job.tenant] += sum(map(lookup.most, dict.fromkeys(item.body.depends_on)))
    try:
        for tenant, count in sorted(wanted.jobs.items()):
            await services.admission.admit(tenant, count, dependencies=wanted.dependencies[tenant])
            admitted.jobs[tenant], admitted.dependencies[tenant] = count, wanted.dependencies[tenant]
    except BaseException:
        _return_unused(admitted, (), services)
        raise
    return admitted


def _return_unused(admitted: _Admitted, items: Sequence[_BatchItem], services: ApiServices) -> None:
    """Give back the admissions that made no new job, or no dependency of one."""
    jobs, dependencies = admitted.jobs, admitted.dependencies
    for item in items:
        if item.job is not None and item.submission is not None and item.submission.answer is SubmitAnswer.NEW:
            jobs[item.job.tenant] -= 1
            dependencies[item.job.tenant] -= len(item.job.waits_for)
    for tenant, count in jobs.items():
        if count or dependencies[tenant]:
            services.admission.not_new(tenant, count, dependencies=dependencies[tenant])


async def _submit_level(indexes: Sequence[int], resolver: "_Resolver", services: ApiServices) -> None:
    ready = await resolver.resolve(indexes)
    for begin in range(0, len(ready), _AT_ONCE_MAX):
        chunk = ready[begin : begin + _AT_ONCE_MAX]
        submissions = await services.jobs.submit_many([item.job for item in chunk if item.job is not None])
        for item, submission in zip(chunk, submissions, strict=True):
            item.submission = submission
            if submission.answer is SubmitAnswer.OTHER:
                detail = idempotency.other_body((item.job.idempotency_key if item.job else None) or "")
                item.refusal = _refusal(HTTPStatus.CONFLICT, "conflict", detail)


@dataclass(slots=True)
class _Resolver:
    """Finds what the jobs of a batch wait for, each once; ``room`` is for that many more dependencies."""

    items: Sequence[_BatchItem]
    refs: Mapping[str, int]
    lookup: Lookup
    within_tenant: bool
    room: int = _DEPENDENCIES_MAX

    async def resolve(self, indexes: Sequence[int], *, there_at_once: bool = False) -> list[_BatchItem]:
        """The jobs at ``indexes`` whose dependencies all exist; the others are refused, unless they are already.

        ``there_at_once``: each counts as there for those after it, before it is submitted.
        """
        ready: list[_BatchItem] = []
        async for _, index in _with_pauses(indexes):
            item = self.items[index]
            if item.refusal is not None:
                continue
            assert item.body is not None
            assert item.job is not None
            try:
                self._resolve(item)
                self.room -= len(item.job.depends_on)
                if self.room < 0:
                    self.room += len(item.job.depends_on)
                    item.job = replace(item.job, depends_on=(), waits_for=())
                    expected = f"at most {_DEPENDENCIES_MAX}"
                    raise InvalidInput(("depends_on",), "the jobs of this batch wait for too many in all", expected)
                ready.append(item)
                if there_at_once:
                    there = {"_id": item.job.id, "tenant": item.job.tenant, "state": JobState.PENDING.value}
                    item.submission = Submission(SubmitAnswer.NEW, there)
            except InvalidInput as error:
                item.refuse([FieldError(error.path, error.problem, error.expected)])
        return ready

    def _resolve(self, item: _BatchItem) -> None:
        assert item.body is not None
        assert item.job is not None
        within = item.job.tenant if self.within_tenant else None
        found: Found = {}
        for name, index in _first_indexes(item.body.depends_on):
            path = ("depends_on", index)
            if not name.startswith(REF_PREFIX):
                if name == item.job.batch:
                    raise InvalidInput(path, "is the batch of the job itself", "ref:NAME of other jobs of this batch")
                found |= self.lookup.found(name, path, within)
                require_few(found, ("depends_on",))
                continue
            ref = name.removeprefix(REF_PREFIX)
            other = self.items[self.refs[ref]] if ref in self.refs else None
            if other is None:
                raise InvalidInput(path, f"no job of this batch has the ref {ref!r}")
            if other.refusal is not None or other.submission is None:
                raise InvalidInput(path, f"{name!r} was refused itself")
            document = other.submission.document
            id = str(document["_id"])
            found[id] = [KnownJob(id, str(document["tenant"]), JobState(document["state"]))]
            require_any_of(within, found[id], name, path)
        require_few(found, ("depends_on",))
        waiting = waits_for(found, ignores_failures=item.job.ignores_failures)
        item.job = replace(item.job, depends_on=tuple(found), waits_for=waiting)


def _first_indexes(names: Sequence[str]) -> Sequence[tuple[str, int]]:
    """Each name once, with its first index."""
    indexes: dict[str, int] = {}
    for index, name in enumerate(names):
        indexes.setdefault(name, index)
    return list(indexes.items())


def _refusal(status: int, kind: str, detail: str, errors: Sequence[FieldError] = ()) -> bytes:
    problem = problem_body(status, kind, detail, errors, errors_length_max=_ERRORS_LENGTH_MAX)
    return orjson.dumps({"status": int(status), "job": None, "problem": {"errors": [], **problem}})


async def _answer(batch: str, items: Sequence[_BatchItem]) -> bytes:
    """Return a `BatchResponse` as it is sent."""
    results = [_result(item) async for _, item in _with_pauses(items)]
    return b'{"batch":%b,"results":[%b]}' % (orjson.dumps(batch), b",".join(results))


def _result(item: _BatchItem) -> bytes:
    if item.refusal is not None:
        return item.refusal
    assert item.submission is not None
    is_new = item.submission.answer is SubmitAnswer.NEW
    status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
    return orjson.dumps({"status": int(status), "job": str(item.submission.document["_id"]), "problem": None})
