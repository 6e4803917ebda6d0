"""Insert jobs, each once: by its id, and by its idempotency key and its unique key, if it has them.

The keys are a unique index over (tenant, key) of the jobs themselves. So the winning insert and the reservation of its
key are one write, however many equal submits race. A losing submit reads the winner, after a write that changes nothing
but waits for the winner's majority. A key is free again `IDEMPOTENCY_MS` after its job was submitted: the next submit
takes it from that job.

Unique keys are a unique index likewise. If the holder keeps its key, the submit is answered with that job. If it gives
the key up (`hascheduler.model.documents.job.fate_of`), the submit takes it by a compare-and-set on the state and
attempt that it has seen, and inserts again. A submit that may replace the holder cancels it last, and only while it is
not dispatched. At one replica such submits of one key go one after another, apart from all others: they would only
race, and no other submit should wait for them.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from bson import encode
from pymongo import UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import IDEMPOTENCY_MS, HolderFate, fate_of, new_job_document, replacing
from hascheduler.model.job import JobState, NewJob, replaced_error
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database, awaited
from hascheduler.mongo.faults import DUPLICATE_KEY, faults, refuses_document, translated
from hascheduler.mongo.request_batcher import RequestBatcher
from hascheduler.mongo.state_updates import BY_ID, to_terminal
from hascheduler.ports import AttemptOutcome, Submission, SubmitAnswer

_TRIES = 5
_REPLACE_TRIES = 20
"""Each failed try means that another replica has inserted a job of that key."""
_KEYS_AT_ONCE = 16
"""How many submits of one batch that may replace others run at once."""
_ENCODED_AT_ONCE = 100
_TOGETHER_LIMIT_S = 15.0
"""Enough for a thousand jobs of two megabytes in one transaction."""
_UNCHANGED = {"$max": {"rev": 0}}
_Request = tuple[NewJob, dict[str, Any]]
"""A job and its document."""


class Submissions:
    """The part of the job store that inserts."""

    def __init__(self, database: Database, job_retention_ms: int) -> None:
        self._database = database
        self._job_retention_ms = job_retention_ms
        self._jobs = database[Collection.JOBS.value].with_options(write_concern=MAJORITY)
        self._batcher = RequestBatcher(self._submit_batch, "submit jobs")
        self._turns = _Turns()

    async def submit(self, job: NewJob) -> Submission:
        """Insert the job. Concurrent submits share an exchange."""
        document = new_job_document(job)
        with translated("submit the job"):
            encode(document)  # a document that can't be stored must fail alone, before it is batched with others
        if job.unique is not None and job.unique.replaces:
            async with self._turns.of(job.unique.digest):
                return await self._submit(job, document, _REPLACE_TRIES)
        return await self._batcher.send((job, document))

    async def _submit_batch(self, requests: Sequence[_Request]) -> Sequence[Submission | Exception]:
        return await self._insert(requests) if len(requests) > 1 else [await self._submit(*requests[0])]

    async def _submit(self, job: NewJob, document: dict[str, Any], tries: int = _TRIES) -> Submission:
        """Insert the job. If it may replace others, take its unique key before that, and cancel them after it."""
        replaced: dict[str, None] = {}
        with faults("submit the job"):
            for _ in range(tries):
                try:
                    await self._jobs.insert_one(document)
                except DuplicateKeyError:
                    [met] = await self._collisions([job])
                else:
                    # Of equal submits, only the one that made the job replaces.
                    await self._cancel(replaced, job.id, job.submitted_at_ms)
                    return Submission(SubmitAnswer.NEW, document)
                if met is not None:
                    return met
                if job.unique is not None and job.unique.replaces:
                    job = await self._take_unique_key(job, replaced)
                    document = new_job_document(job)
        raise _unsettled()

    async def of_key(self, tenant: str, key: str, at_ms: WallMs) -> Mapping[str, Any] | None:
        query = {"tenant": tenant, "idempotency_key": key, "submitted_at_ms": {"$gt": at_ms - IDEMPOTENCY_MS}}
        with faults("find the idempotency key"):
            if await self._jobs.find_one(query, ["_id"]) is None:
                return None
            await self._jobs.update_one(query, _UNCHANGED)
            return await self._jobs.find_one(query)

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[Submission]:
        answers: dict[int, Submission | Exception] = {}
        by_key: dict[str, list[int]] = {}
        plain: list[int] = []
        for place, job in enumerate(jobs):
            if job.unique is not None and job.unique.replaces:
                by_key.setdefault(job.unique.digest, []).append(place)
            else:
                plain.append(place)
        if plain:
            answers.update(
                zip(plain, await self._insert([(jobs[n], new_job_document(jobs[n])) for n in plain]), strict=True)
            )
        free = asyncio.Semaphore(_KEYS_AT_ONCE)

        async def of_key(places: Sequence[int]) -> None:
            async with free:
                for place in places:
                    answers[place] = await self.submit(jobs[place])

        for failed in await asyncio.gather(*map(of_key, by_key.values()), return_exceptions=True):
            if failed is not None:
                raise failed
        submissions = []
        for place in range(len(jobs)):
            submission = answers[place]
            if isinstance(submission, Exception):
                raise submission
            submissions.append(submission)
        return submissions

    async def submit_all(self, jobs: Sequence[NewJob]) -> Sequence[Submission] | None:
        """Insert the jobs in a transaction.

        It reads nothing and inserts only new documents, so only submits of the same keys wait for it, and it leaves
        nothing behind if its replica dies.
        """
        documents = []
        for job in jobs:
            documents.append(new_job_document(job))
            if len(documents) % _ENCODED_AT_ONCE == 0:
                await asyncio.sleep(0)

        async def insert(session: Any) -> None:
            await self._jobs.insert_many(documents, session=session)

        with faults("submit the jobs together", _TOGETHER_LIMIT_S):
            for _ in range(_TRIES):
                try:
                    async with await awaited(self._database.client.start_session()) as session:
                        await session.with_transaction(insert, write_concern=MAJORITY)
                except BulkWriteError as error:
                    if any(failure["code"] != DUPLICATE_KEY for failure in error.details.get("writeErrors", ())):
                        raise
                else:
                    return [Submission(SubmitAnswer.NEW, document) for document in documents]
                met = [each for each in await self._collisions(jobs) if each is not None]
                if met:
                    is_replay = len(met) == len(jobs) and all(each.answer is SubmitAnswer.KNOWN for each in met)
                    return met if is_replay else None
        raise StoreUnavailable("submit the jobs together: the existing ones keep changing")

    async def _insert(self, requests: Sequence[_Request]) -> Sequence[Submission | Exception]:
        answers: list[Submission | Exception | None] = [None] * len(requests)
        left = list(range(len(requests)))
        with faults("submit the jobs"):
            for _ in range(_TRIES):
                collided = await self._insert_some(requests, left, answers)
                # The rest collided with a job that has given up its key, or is gone.
                met = await self._collisions([requests[place][0] for place in collided]) if collided else []
                for place, submission in zip(collided, met, strict=True):
                    answers[place] = submission
                left = [place for place in collided if answers[place] is None]
                if not left:
                    break
        return [answer or _unsettled() for answer in answers]

    async def _insert_some(
        self, requests: Sequence[_Request], places: Sequence[int], answers: list[Submission | Exception | None]
    ) -> list[int]:
        """Return the ``places`` whose jobs collided with stored ones; the others get their answers."""
        documents = [requests[place][1] for place in places]
        for place, document in zip(places, documents, strict=True):
            answers[place] = Submission(SubmitAnswer.NEW, document)
        try:
            # Inserted in the given order: a reader of the stream sees a job after those that it depends on.
            await self._jobs.insert_many(documents, ordered=False)
        except BulkWriteError as error:
            failures = error.details.get("writeErrors", ())
            refused = [failure for failure in failures if refuses_document(failure["code"])]
            collided = [places[failure["index"]] for failure in failures if failure["code"] == DUPLICATE_KEY]
            if error.details.get("writeConcernErrors") or len(refused) + len(collided) < len(failures):
                raise
            for failure in refused:
                problem = f"can't be stored: {str(failure.get('errmsg', ''))[:200]}"
                answers[places[failure["index"]]] = InvalidInput(("document",), problem)
            return collided
        return []

    async def _take_unique_key(self, job: NewJob, replaced: dict[str, None]) -> NewJob:
        """Ask the holder of the job's key for it, and return the job as it should be inserted next.

        The holder joins ``replaced`` if it gives way to this job or to one that does, and is cancelled only if it has
        no key by then.
        """
        assert job.unique is not None
        holder = await self._jobs.find_one({"unique_key": job.unique.digest}, _HOLDER_FIELDS)
        if holder is None:
            # It may exist without a majority. A write waits for that, even one that changes nothing.
            await self._jobs.update_one({"unique_key": job.unique.digest}, _UNCHANGED)
            return job
        if fate_of(holder, job) is HolderFate.REPLACED:
            replaced[str(holder["_id"])] = None
            job = replacing(job, holder)
        await self._jobs.update_one(*_release(holder))
        return job

    async def _cancel(self, ids: Mapping[str, None], replaced_by: str, at_ms: WallMs) -> None:
        if not ids:
            return
        # The job that holds the key now is the newest: a job without it has given it up.
        undispatched = {"_id": {"$in": list(ids)}, "state": JobState.PENDING.value, "attempt": 0, "unique_key": None}
        end = AttemptOutcome(JobState.CANCELLED, error=replaced_error(replaced_by))
        update = to_terminal(end, end.state.value, at_ms, kept_ms=self._job_retention_ms)
        await self._jobs.update_many(undispatched, update, hint=BY_ID)

    async def _collisions(self, jobs: Sequence[NewJob]) -> list[Submission | None]:
        """Return the stored job that each job collided with; None, to try again, if it is gone or gave up its key.

        A job that holds the unique key of one that may replace it does not count.
        """
        keys: dict[str, list[str]] = {}
        for job in jobs:
            if job.idempotency_key is not None:
                keys.setdefault(job.tenant, []).append(job.idempotency_key)
        unique = [job.unique.digest for job in jobs if job.unique is not None and not job.unique.replaces]
        which: list[dict[str, Any]] = [{"_id": {"$in": [job.id for job in jobs]}}]
        which += [{"tenant": tenant, "idempotency_key": {"$in": of_one}} for tenant, of_one in keys.items()]
        which += [{"unique_key": {"$in": list(dict.fromkeys(unique))}}] if unique else []
        by_id: dict[str, Mapping[str, Any]] = {}
        by_key: dict[tuple[str, str], Mapping[str, Any]] = {}
        by_unique_key: dict[str, Mapping[str, Any]] = {}
        for query in which:
            await self._jobs.update_many(query, _UNCHANGED)
            for document in await self._jobs.find(query).to_list(None):
                by_id[document["_id"]] = document
                if isinstance(document.get("idempotency_key"), str):
                    by_key[document["tenant"], document["idempotency_key"]] = document
                if isinstance(document.get("unique_key"), str):
                    by_unique_key[document["unique_key"]] = document
        answers: list[Submission | None] = []
        releases: dict[str, UpdateOne] = {}
        for job in jobs:
            by_own_key = None if job.idempotency_key is None else by_key.get((job.tenant, job.idempotency_key))
            met = by_own_key or by_id.get(job.id)
            if met is not None and met is by_own_key and await self._take_expired_key(met, job):
                answers.append(None)
            elif met is not None:
                is_other = job.idempotency_key is not None and met.get("request_hash") != job.request_hash
                answers.append(Submission(SubmitAnswer.OTHER if is_other else SubmitAnswer.KNOWN, met))
            else:
                holder = None if job.unique is None or job.unique.replaces else by_unique_key.get(job.unique.digest)
                keeps = holder is not None and fate_of(holder, job) is HolderFate.KEEPS
                answers.append(Submission(SubmitAnswer.DUPLICATE, holder) if holder is not None and keeps else None)
                if holder is not None and not keeps:
                    releases[holder["_id"]] = UpdateOne(*_release(holder))
        if releases:
            await self._jobs.bulk_write(list(releases.values()), ordered=False)
        return answers

    async def _take_expired_key(self, met: Mapping[str, Any], job: NewJob) -> bool:
        """Take the key from ``met`` if it has expired, and return True if so."""
        if int(met.get("submitted_at_ms") or 0) + IDEMPOTENCY_MS > job.submitted_at_ms:
            return False
        await self._jobs.update_one(
            {"_id": met["_id"], "idempotency_key": met["idempotency_key"]},
            {"$unset": {"idempotency_key": "", "request_hash": ""}},
        )
        return True


_HOLDER_FIELDS = ("state", "attempt", "unique_key", "unique_since_ms", "submitted_at_ms")


def _release(holder: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the write that releases the unique key of ``holder``, unless it has changed since it was read."""
    seen = {name: holder.get(name) for name in ("_id", "unique_key", "state", "attempt")}
    return seen, {"$unset": {"unique_key": ""}}


def _unsettled() -> StoreUnavailable:
    return StoreUnavailable("submit the job: the existing one keeps changing")


class _Turns:
    """Owner of the queues of submits, one a key: one at a time, in order of arrival."""

    def __init__(self) -> None:
        self._by_key: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        lock, waiting = self._by_key.get(key) or (asyncio.Lock(), 0)
        self._by_key[key] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._by_key.pop(key)
            if waiting > 1:
                self._by_key[key] = lock, waiting - 1
