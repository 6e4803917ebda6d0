"""Inserts jobs, each once: by its id, and by its idempotency key where it has one.

The keys are a unique index over (tenant, key) of the jobs themselves. So the winning insert and the reservation of its
key are one write, however many equal submits race. A losing submit reads the winner, after a write that changes nothing
but waits for the winner's majority. A key is free again `IDEMPOTENCY_MS` after its job was submitted: the next submit
takes it from that job.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bson import encode
from pymongo.errors import BulkWriteError, DuplicateKeyError

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import IDEMPOTENCY_MS, new_job_document
from hascheduler.model.instants import WallMs
from hascheduler.model.job import NewJob
from hascheduler.mongo.connection import MAJORITY, Database, awaited
from hascheduler.mongo.faults import DUPLICATE_KEY, faults, refuses_document, translated
from hascheduler.mongo.request_batcher import RequestBatcher
from hascheduler.ports import Submission, SubmitAnswer

_TRIES = 5
_TOGETHER_LIMIT_S = 15.0
"""A thousand jobs of eight megabytes in one transaction."""
_UNCHANGED = {"$max": {"rev": 0}}
_Request = tuple[NewJob, dict[str, Any]]
"""A job and its document."""


class Submissions:
    """The part of the job store that inserts."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs = database[Collection.JOBS.value].with_options(write_concern=MAJORITY)
        self._batcher = RequestBatcher(self._submit_batch, "submit jobs")

    async def submit(self, job: NewJob) -> Submission:
        """Concurrent submits share an exchange."""
        document = new_job_document(job)
        with translated("submit the job"):
            encode(document)  # a document that can't be stored must fail alone, before it is batched with others
        return await self._batcher.send((job, document))

    async def _submit_batch(self, requests: Sequence[_Request]) -> Sequence[Submission | Exception]:
        return await self._insert(requests) if len(requests) > 1 else [await self._submit(*requests[0])]

    async def _submit(self, job: NewJob, document: dict[str, Any]) -> Submission:
        with faults("submit the job"):
            for _ in range(_TRIES):
                try:
                    await self._jobs.insert_one(document)
                except DuplicateKeyError:
                    [met] = await self._collisions([job])
                    if met is not None:
                        return met
                else:
                    return Submission(SubmitAnswer.NEW, document)
        raise StoreUnavailable("submit the job: the one that is there comes and goes")

    async def of_key(self, tenant: str, key: str, at_ms: WallMs) -> Mapping[str, Any] | None:
        query = {"tenant": tenant, "idempotency_key": key, "submitted_at_ms": {"$gt": at_ms - IDEMPOTENCY_MS}}
        with faults("look for the idempotency key"):
            if await self._jobs.find_one(query, ["_id"]) is None:
                return None
            await self._jobs.update_one(query, _UNCHANGED)
            return await self._jobs.find_one(query)

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[Submission]:
        submissions = []
        for submission in await self._insert([(job, new_job_document(job)) for job in jobs]):
            if isinstance(submission, Exception):
                raise submission
            submissions.append(submission)
        return submissions

    async def submit_all(self, jobs: Sequence[NewJob]) -> Sequence[Submission] | None:
        """In a transaction. It reads nothing, and what it inserts is new, so none waits for it but one under the same
        keys, and what it leaves when its replica dies is nothing."""
        documents = [new_job_document(job) for job in jobs]

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
        raise StoreUnavailable("submit the jobs together: those that are there come and go")

    async def _insert(self, requests: Sequence[_Request]) -> Sequence[Submission | InvalidInput]:
        documents = [document for _, document in requests]
        answers: list[Submission | InvalidInput | None] = [
            Submission(SubmitAnswer.NEW, document) for document in documents
        ]
        with faults("submit the jobs"):
            try:
                # Inserted in the given order: a reader of the stream sees a job after the jobs that it waits for.
                await self._jobs.insert_many(documents, ordered=False)
            except BulkWriteError as error:
                failures = error.details.get("writeErrors", ())
                refused = [failure for failure in failures if refuses_document(failure["code"])]
                known = [failure["index"] for failure in failures if failure["code"] == DUPLICATE_KEY]
                if error.details.get("writeConcernErrors") or len(refused) + len(known) < len(failures):
                    raise
                for failure in refused:
                    problem = f"can't be stored: {str(failure.get('errmsg', ''))[:200]}"
                    answers[failure["index"]] = InvalidInput(("document",), problem)
                if known:
                    for place, met in zip(
                        known, await self._collisions([requests[place][0] for place in known]), strict=True
                    ):
                        answers[place] = met
        # The few whose key was held by a job that no longer answers for it.
        return [answer or await self._submit(*one) for answer, one in zip(answers, requests, strict=True)]

    async def _collisions(self, jobs: Sequence[NewJob]) -> list[Submission | None]:
        """The stored job that each of ``jobs`` collided with; None: it is gone, or gave its key away, so try again."""
        keys: dict[str, list[str]] = {}
        for job in jobs:
            if job.idempotency_key is not None:
                keys.setdefault(job.tenant, []).append(job.idempotency_key)
        which: list[dict[str, Any]] = [{"_id": {"$in": [job.id for job in jobs]}}]
        which += [{"tenant": tenant, "idempotency_key": {"$in": of_one}} for tenant, of_one in keys.items()]
        by_id: dict[str, Mapping[str, Any]] = {}
        by_key: dict[tuple[str, str], Mapping[str, Any]] = {}
        for query in which:
            await self._jobs.update_many(query, _UNCHANGED)
            for document in await self._jobs.find(query).to_list(None):
                by_id[document["_id"]] = document
                if isinstance(document.get("idempotency_key"), str):
                    by_key[document["tenant"], document["idempotency_key"]] = document
        answers: list[Submission | None] = []
        for job in jobs:
            by_own_key = None if job.idempotency_key is None else by_key.get((job.tenant, job.idempotency_key))
            met = by_own_key or by_id.get(job.id)
            if met is None or (met is by_own_key and await self._take_expired_key(met, job)):
                answers.append(None)
            else:
                is_other = job.idempotency_key is not None and met.get("request_hash") != job.request_hash
                answers.append(Submission(SubmitAnswer.OTHER if is_other else SubmitAnswer.KNOWN, met))
        return answers

    async def _take_expired_key(self, met: Mapping[str, Any], job: NewJob) -> bool:
        """Whether the key of ``met`` has run out; if so it is taken from that job."""
        if int(met.get("submitted_at_ms") or 0) + IDEMPOTENCY_MS > job.submitted_at_ms:
            return False
        await self._jobs.update_one(
            {"_id": met["_id"], "idempotency_key": met["idempotency_key"]},
            {"$unset": {"idempotency_key": "", "request_hash": ""}},
        )
        return True
