"""Jobs as the API reads and changes them."""

from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Collection as SomeOf
from dataclasses import replace

from hascheduler import ports
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import (
    IDEMPOTENCY_MS,
    HolderFate,
    decode_job_state,
    fate_of,
    maker_of,
    new_job_document,
    replacing,
    stored_waits_for,
)
from hascheduler.model.job import TERMINAL, JobState, Move, NewJob, is_batch, is_dependency_error, replaced_error
from hascheduler.model.values.error_patterns import ERROR_BEGINNING_MAX, error_regex
from hascheduler.model.values.fields import is_integer
from hascheduler.model.values.instants import LATEST_MS, WallMs, to_datetime
from hascheduler.ports.jobs import keyed_retry, stored_retry_key
from hascheduler.testing.memory.database import (
    Document,
    MemoryDatabase,
    RetainingStore,
    copied,
    is_after,
    stored_form,
)
from hascheduler.testing.memory.state_updates import cancelled, may, may_be_cancelled, revived

_NOT_LISTED = frozenset({"payload", "result", "attempts", "late_results"})
_SELECTED_BY = ("definition", "schedule", "tenant", "batch", "target")


class MemoryJobStore(RetainingStore):
    """`hascheduler.ports.JobStore`; a job that is cancelled here is deleted ``retention_ms`` later."""

    async def submit(self, job: NewJob) -> ports.Submission:
        async with self._connection.exchange("jobs.submit") as database:
            return self._submitted(database, job)

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[ports.Submission]:
        async with self._connection.exchange("jobs.submit_many") as database:
            return [self._submitted(database, job) for job in jobs]

    async def submit_all(self, jobs: Sequence[NewJob]) -> Sequence[ports.Submission] | None:
        async with self._connection.exchange("jobs.submit_all") as database:
            for job in jobs:
                stored_form(new_job_document(job))  # raises if one can't be stored, before any is
            held = [_held(database, job) for job in jobs]
            if not any(held):
                return [self._submitted(database, job) for job in jobs]
            is_replay = all(
                met is not None and job.idempotency_key is not None and met.get("request_hash") == job.request_hash
                for met, job in zip(held, jobs, strict=True)
            )
            return (
                [ports.Submission(ports.SubmitAnswer.KNOWN, copied(met or {})) for met in held] if is_replay else None
            )

    async def get(self, job_id: str) -> ports.StoredDocument | None:
        async with self._connection.exchange("jobs.get") as database:
            return copied(database.find(Collection.JOBS, job_id))

    async def list(self, which: ports.JobSelection, after: ports.ListPosition | None, limit: int) -> ports.JobPage:
        async with self._connection.exchange("jobs.list") as database:
            found = (job for job in database.documents(Collection.JOBS) if _matches(which, job))
            jobs = sorted((job for job in found if is_after(after, _place(job))), key=_place, reverse=True)
            page = [copied({name: job[name] for name in job if name not in _NOT_LISTED}) for job in jobs[:limit]]
            return ports.JobPage(page, ports.ListPosition(*_place(page[-1])) if len(jobs) > limit else None)

    async def known(self, ids: Sequence[str]) -> Sequence[ports.KnownJob]:
        async with self._connection.exchange("jobs.known") as database:
            found = (database.find(Collection.JOBS, id) for id in dict.fromkeys(ids))
            batches = {id for id in ids if is_batch(id)}
            members = [job for job in database.documents(Collection.JOBS) if job.get("batch") in batches]
            rows = dict.fromkeys(replace(_known(job), id=str(job["batch"]), made_by=None) for job in members)
            return [*(_known(job) for job in found if job is not None), *rows]

    async def batch(self, batch: str, limit: int) -> Sequence[ports.KnownJob]:
        async with self._connection.exchange("jobs.batch") as database:
            jobs = database.page(Collection.JOBS, None, limit, which=lambda job: job.get("batch") == batch)
            return [_known(job) for job in jobs]

    async def count(self, which: ports.JobSelection, states: Sequence[JobState], limit: int) -> int:
        async with self._connection.exchange("jobs.count") as database:
            return len(_some(database, which, lambda job: job.get("state") in states, limit))

    async def counts(self, which: ports.JobSelection, limit: int) -> ports.JobCounts:
        async with self._connection.exchange("jobs.counts") as database:
            found = Counter(job.get("state") for job in database.documents(Collection.JOBS) if _matches(which, job))
            counted = {state: found[state.value] for state in which.states or JobState}
            at_least = frozenset(state for state, count in counted.items() if count > limit)
            return ports.JobCounts({state: min(count, limit) for state, count in counted.items()}, at_least)

    async def failed(self, which: ports.JobSelection, limit: int) -> ports.FailedJobs:
        which = which.model_copy(update={"states": (JobState.FAILED,)})
        async with self._connection.exchange("jobs.failed") as database:
            jobs = [job for job in database.documents(Collection.JOBS) if _matches(which, job)]
            jobs.sort(key=_place, reverse=True)
            shown = [ports.failed_job_of(job, _error_beginning(job)) for job in jobs[:limit]]
            return ports.FailedJobs(shown, complete=len(jobs) <= limit)

    async def cancel(self, job_id: str, at_ms: WallMs) -> ports.CancelAnswer | None:
        async with self._connection.exchange("jobs.cancel") as database:
            job = database.find(Collection.JOBS, job_id)
            return None if job is None else self._cancelled(database, job, at_ms)

    async def reprioritize(self, job_id: str, priority: int) -> ports.ReprioritizeAnswer | None:
        async with self._connection.exchange("jobs.reprioritize") as database:
            job = database.find(Collection.JOBS, job_id)
            if job is None:
                return None
            if job.get("state") != JobState.PENDING:
                ended = job.get("state") in TERMINAL
                return ports.ReprioritizeAnswer.ALREADY_DONE if ended else ports.ReprioritizeAnswer.ALREADY_RUNNING
            database.update(Collection.JOBS, job, {"priority": priority, "rev": job["rev"] + 1})
            return ports.ReprioritizeAnswer.OK

    async def retry(self, job_id: str, at_ms: WallMs, key: ports.RetryKey | None = None) -> ports.KeyedRetry | None:
        async with self._connection.exchange("jobs.retry") as database:
            job = database.find(Collection.JOBS, job_id)
            if job is None:
                return None
            retry = keyed_retry(job, key, at_ms)
            if retry == ports.KeyedRetry(ports.RetryAnswer.OK):
                database.update(Collection.JOBS, job, revived(job, key=stored_retry_key(key, at_ms)))
            return retry

    async def of_key(self, tenant: str, key: str, at_ms: WallMs) -> ports.StoredDocument | None:
        async with self._connection.exchange("jobs.of_key") as database:
            met = _of_key(database, tenant, key)
            is_held = met is not None and met["submitted_at_ms"] + IDEMPOTENCY_MS > at_ms
            return copied(met) if is_held else None

    async def dependents(
        self, ids: Sequence[str], tenant: str | None, known: Sequence[str], limit: int
    ) -> Sequence[ports.Dependent]:
        wanted, others = set(ids), set(known)

        def depends(job: Document) -> bool:
            is_ours = tenant is None or job.get("tenant") == tenant
            return is_ours and job["_id"] not in others and not wanted.isdisjoint(job.get("depends_on") or ())

        async with self._connection.exchange("jobs.dependents") as database:
            return [ports.dependent_of(job) for job in database.page(Collection.JOBS, None, limit, which=depends)]

    async def retry_dependent(
        self, job: ports.Dependent, waits_for: Sequence[str], at_ms: WallMs, key: ports.RetryKey | None = None
    ) -> bool:
        async with self._connection.exchange("jobs.retry_dependent") as database:
            stored = database.find(Collection.JOBS, job.id)
            if stored is None or stored["rev"] != job.rev or not may(Move.REVIVE, stored):
                return False
            waits_for = stored_waits_for(job.id, waits_for)
            database.update(Collection.JOBS, stored, revived(stored, waits_for, stored_retry_key(key, at_ms)))
            return True

    async def unreported(
        self,
        definitions: SomeOf[str],
        since_ms: WallMs,
        limit: int,
        ids: SomeOf[str] | None = None,
        *,
        not_of: SomeOf[str] = (),
    ) -> Sequence[ports.StoredDocument]:
        def is_wanted(job: Document) -> bool:
            by_definition = job.get("definition") in definitions and not is_dependency_error(job.get("error"))
            name = job.get("on_failure")
            return (
                job.get("state") == JobState.FAILED
                and job.get("tenant") not in not_of
                and (job.get("finished_at_ms") or 0) >= since_ms
                and job.get("failed_job") is None
                and job.get("on_failure_job") is None
                and (by_definition if name is None else name > "")
            )

        async with self._connection.exchange("jobs.unreported") as database:
            found = [job for job in database.documents(Collection.JOBS) if ids is None or job["_id"] in ids]
            jobs = sorted(filter(is_wanted, found), key=_place, reverse=True)[:limit]
            return [copied({name: job[name] for name in job if name not in _NOT_LISTED}) for job in jobs]

    async def reported(self, job_id: str, attempt: int, report: str) -> None:
        async with self._connection.exchange("jobs.reported") as database:
            job = database.find(Collection.JOBS, job_id)
            if job is not None and job.get("state") == JobState.FAILED and job.get("attempt") == attempt:
                database.update(Collection.JOBS, job, {"on_failure_job": report})

    async def cancel_some(self, which: ports.JobSelection, at_ms: WallMs, limit: int) -> ports.CancelledSome:
        async with self._connection.exchange("jobs.cancel_some") as database:
            found = _some(database, which, may_be_cancelled, limit)
            answers = [self._cancelled(database, job, at_ms) for job in found]
            return ports.CancelledSome(
                answers.count(ports.CancelAnswer.CANCELLED), answers.count(ports.CancelAnswer.ALREADY_RUNNING)
            )

    async def reprioritize_some(self, which: ports.JobSelection, priority: int, limit: int) -> int:
        def differs(job: Document) -> bool:
            return job.get("state") == JobState.PENDING and job.get("priority") != priority

        async with self._connection.exchange("jobs.reprioritize_some") as database:
            found = _some(database, which, differs, limit)
            for job in found:
                database.update(Collection.JOBS, job, {"priority": priority, "rev": job["rev"] + 1})
            return len(found)

    async def retry_some(self, which: ports.JobSelection, at_ms: WallMs, limit: int) -> int:
        states = ports.revived_states(which)

        def has_ended(job: Document) -> bool:
            return job.get("state") in states and (job.get("finished_at_ms") or 0) <= at_ms

        async with self._connection.exchange("jobs.retry_some") as database:
            found = _some(database, which, has_ended, limit)
            for job in found:
                database.update(Collection.JOBS, job, revived(job))
            return len(found)

    async def schedules_of(self, which: ports.JobSelection) -> frozenset[str]:
        async with self._connection.exchange("jobs.schedules_of") as database:
            found = (job.get("schedule") for job in database.documents(Collection.JOBS) if _matches(which, job))
            return frozenset(name for name in found if isinstance(name, str))

    async def delete_some(self, which: ports.JobSelection, at_ms: WallMs, limit: int) -> int:
        async with self._connection.exchange("jobs.delete_some") as database:
            found = _some(database, which.to_delete(at_ms), lambda job: job.get("state") in TERMINAL, limit)
            for job in found:
                expire_at = to_datetime(at_ms + ports.DELETED_IN_MS)
                database.update(Collection.JOBS, job, {"expire_at": expire_at, "deleted_at_ms": at_ms})
            return len(found)

    def _submitted(self, database: MemoryDatabase, job: NewJob) -> ports.Submission:
        met = None if job.idempotency_key is None else _of_key(database, job.tenant, job.idempotency_key)
        if met is not None and met["submitted_at_ms"] + IDEMPOTENCY_MS <= job.submitted_at_ms:
            database.update(Collection.JOBS, met, {"idempotency_key": None, "request_hash": None})
            met = None
        met = met or database.find(Collection.JOBS, job.id)
        if met is not None:
            is_other = job.idempotency_key is not None and met.get("request_hash") != job.request_hash
            return ports.Submission(ports.SubmitAnswer.OTHER if is_other else ports.SubmitAnswer.KNOWN, copied(met))
        stored_form(new_job_document(job))  # raises if it can't be stored, before it takes a key
        holder = None if job.unique is None else _of_unique_key(database, job.unique.digest)
        if holder is not None:
            fate = fate_of(holder, job)
            if fate is HolderFate.KEEPS:
                return ports.Submission(ports.SubmitAnswer.DUPLICATE, copied(holder))
            holder = database.update(Collection.JOBS, holder, {"unique_key": None})
            if fate is HolderFate.REPLACED:
                job = replacing(job, holder)
                self._cancelled(database, holder, job.submitted_at_ms, replaced_error(job.id))
        database.insert(Collection.JOBS, new_job_document(job))
        return ports.Submission(ports.SubmitAnswer.NEW, copied(database.find(Collection.JOBS, job.id) or {}))

    def _cancelled(
        self, database: MemoryDatabase, job: Document, at_ms: WallMs, error: str | None = None
    ) -> ports.CancelAnswer:
        database.update(Collection.JOBS, job, cancelled(job, at_ms, error, kept_ms=self._retention_ms))
        if may(Move.CANCEL, job):
            return ports.CancelAnswer.CANCELLED
        return ports.CancelAnswer.ALREADY_RUNNING if may(Move.STOP, job) else ports.CancelAnswer.ALREADY_DONE


def _held(database: MemoryDatabase, job: NewJob) -> Document | None:
    """Return the job with that id, or the one that holds its key."""
    met = None if job.idempotency_key is None else _of_key(database, job.tenant, job.idempotency_key)
    is_held = met is not None and met["submitted_at_ms"] + IDEMPOTENCY_MS > job.submitted_at_ms
    return met if is_held else database.find(Collection.JOBS, job.id)


def _of_unique_key(database: MemoryDatabase, digest: str) -> Document | None:
    return next((each for each in database.documents(Collection.JOBS) if each.get("unique_key") == digest), None)


def _of_key(database: MemoryDatabase, tenant: str, key: str) -> Document | None:
    documents = database.documents(Collection.JOBS)
    return next(
        (each for each in documents if (each.get("tenant"), each.get("idempotency_key")) == (tenant, key)), None
    )


def _known(job: Document) -> ports.KnownJob:
    return ports.KnownJob(str(job["_id"]), str(job.get("tenant")), decode_job_state(job), maker_of(job))


def _some(
    database: MemoryDatabase, which: ports.JobSelection, among: Callable[[Document], bool], limit: int
) -> list[Document]:
    return database.page(Collection.JOBS, None, limit, which=lambda job: _matches(which, job) and among(job))


def _place(job: Document) -> tuple[int, str]:
    submitted_at_ms = job.get("submitted_at_ms")
    return submitted_at_ms if is_integer(submitted_at_ms) else -1, str(job["_id"])


def _error_beginning(job: Document) -> str:
    error = job.get("error")
    return error[:ERROR_BEGINNING_MAX] if isinstance(error, str) else ""


def _has_error(error: object, text: str) -> bool:
    return (error is None or isinstance(error, str)) and error_regex(text).search(error or "") is not None


def _is_between(at_ms: object, least_ms: int | None, before_ms: int | None) -> bool:
    if least_ms is None and before_ms is None:
        return True
    return is_integer(at_ms) and (least_ms or 0) <= at_ms < (LATEST_MS if before_ms is None else before_ms)


def _matches(which: ports.JobSelection, job: Document) -> bool:
    at_ms, id = _place(job)
    maker = None if which.made_by is None else maker_of(job)
    labels = job.get("labels") or {}
    expire_at = job.get("expire_at")
    kept_after = None if which.kept_after_ms is None else to_datetime(which.kept_after_ms)
    return (
        (not which.states or job.get("state") in which.states)
        and (which.ids is None or id in which.ids)
        and (which.id_prefix is None or id.startswith(which.id_prefix))
        and (which.since_ms is None or at_ms >= which.since_ms)
        and (which.until_ms is None or at_ms < which.until_ms)
        and _is_between(job.get("finished_at_ms"), which.failed_since_ms, which.ended_before_ms)
        and (which.error is None or _has_error(job.get("error"), which.error))
        and (kept_after is None or expire_at is None or expire_at > kept_after)
        and job.get("schedule") not in which.not_made_by
        and (which.made_by is None or (maker is not None and maker.is_same(which.made_by)))
        and all(getattr(which, name) in (None, job.get(name)) for name in _SELECTED_BY)
        and (which.tenant is not None or job.get("tenant") not in which.not_of)
        and all(labels.get(name) == value for name, value in which.labels.items())
    )
