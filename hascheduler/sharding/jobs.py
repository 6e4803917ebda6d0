"""Jobs of all shards as one store."""

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState, NewJob, is_batch
from hascheduler.model.routing import slot_of
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import is_integer
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.ports import (
    CancelAnswer,
    CancelledSome,
    Dependent,
    FailedJobs,
    JobCounts,
    JobPage,
    JobSelection,
    JobStore,
    KeyedRetry,
    KnownJob,
    ListPosition,
    ReprioritizeAnswer,
    RetryAnswer,
    RetryKey,
    StoredDocument,
    Submission,
)
from hascheduler.sharding.asking import ask_all, first_answer, naming_outages
from hascheduler.sharding.merging import Place, ShardPage, merged, newest_first, position_of
from hascheduler.sharding.places import ShardPlaces

_Answer = TypeVar("_Answer")


class ShardedJobStore:
    """`hascheduler.ports.JobStore`. A job is in the shard of its tenant, and waits for jobs of that shard alone."""

    def __init__(self, places: ShardPlaces, shards: Sequence[JobStore]) -> None:
        self._places = places
        self._shards = naming_outages(places.shards, shards)

    # Submitting

    async def submit(self, job: NewJob) -> Submission:
        await self._require_near([job])
        return await self._shards[self._places.of_tenant(job.tenant)].submit(job)

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[Submission]:
        await self._require_near(jobs)
        by_shard: dict[int, list[int]] = {}
        for index, job in enumerate(jobs):
            by_shard.setdefault(self._places.of_tenant(job.tenant), []).append(index)
        answers: dict[int, Submission] = {}

        async def submit(shard: int, indexes: list[int]) -> None:
            found = await self._shards[shard].submit_many([jobs[index] for index in indexes])
            answers.update(zip(indexes, found, strict=True))

        await ask_all((submit(shard, indexes) for shard, indexes in by_shard.items()))
        return [answers[index] for index in range(len(jobs))]

    async def submit_all(self, jobs: Sequence[NewJob]) -> Sequence[Submission] | None:
        """`InvalidInput` where they would be in different shards: no write covers two."""
        self._places.require_one_shard([job.tenant for job in jobs], ("jobs",))
        await self._require_near(jobs)
        return await self._shards[self._places.of_tenant(jobs[0].tenant) if jobs else 0].submit_all(jobs)

    async def _require_near(self, jobs: Sequence[NewJob]) -> None:
        """`InvalidInput` where one of ``jobs`` waits for a job of another slot: no stream shows it that one's end, or
        none will once one of the two slots has moved. `StoreUnavailable` while one of their tenants moves."""
        for tenant in {job.tenant for job in jobs}:
            self._places.require_at_rest(tenant)
        if not any(job.depends_on for job in jobs):  # nearly always
            return
        together = {job.id for job in jobs}
        asked = {id for job in jobs for id in job.depends_on if id not in together}
        located = await self._located(sorted(asked)) if asked else {}
        there = {id: (shard, known.tenant) for id, rows in located.items() for shard, known in rows}
        there |= {job.id: (self._places.of_tenant(job.tenant), job.tenant) for job in jobs}
        for job in jobs:
            here, names = self._places.of_tenant(job.tenant), self._places.shards
            for index, id in enumerate(job.depends_on):
                shard, tenant = there.get(id, (here, job.tenant))  # all jobs of a batch are of one tenant
                if shard != here:
                    raise InvalidInput(
                        ("depends_on", index),
                        f"{quoted(id)} is in shard {names[shard]}, and what is tenant {quoted(job.tenant)}'s in"
                        f" {names[here]}",
                        "jobs of one shard",
                    )
                if slot_of(tenant) != slot_of(job.tenant):
                    raise InvalidInput(
                        ("depends_on", index),
                        f"{quoted(id)} is tenant {quoted(tenant)}'s, which may move to another shard than tenant"
                        f" {quoted(job.tenant)}",
                        "jobs of one tenant",
                    )

    async def _located(self, ids: Sequence[str]) -> Mapping[str, Sequence[tuple[int, KnownJob]]]:
        """Each of them that is there, and its shard: the likeliest are asked first, and the others for what is left."""
        told = await self._places.of_jobs(ids)
        likely: dict[int, list[str]] = {}
        for id, shard in told.items():
            if shard is not None:
                likely.setdefault(shard, []).append(id)
        found = await self._known_in(likely)
        left = [id for id in told if id not in found]
        if left:
            others = {shard: [id for id in left if told[id] != shard] for shard in range(len(self._shards))}
            found |= await self._known_in({shard: some for shard, some in others.items() if some})
            for id in left:
                if id not in found and not is_batch(id):
                    await self._places.require_job_found(id)
        return found

    async def _known_in(self, asked: Mapping[int, Sequence[str]]) -> dict[str, list[tuple[int, KnownJob]]]:
        answers = await ask_all(self._shards[shard].known(some) for shard, some in asked.items())
        found: dict[str, list[tuple[int, KnownJob]]] = {}
        for shard, jobs in zip(asked, answers, strict=True):
            for job in jobs:
                found.setdefault(job.id, []).append((shard, job))
        return found

    # One job

    async def get(self, job_id: str) -> StoredDocument | None:
        return await self._first(job_id, lambda shard: shard.get(job_id))

    async def cancel(self, job_id: str, at_ms: WallMs) -> CancelAnswer | None:
        return await self._first(job_id, lambda shard: shard.cancel(job_id, at_ms))

    async def reprioritize(self, job_id: str, priority: int) -> ReprioritizeAnswer | None:
        return await self._first(job_id, lambda shard: shard.reprioritize(job_id, priority))

    async def retry(self, job_id: str, at_ms: WallMs) -> RetryAnswer | None:
        return await self._first(job_id, lambda shard: shard.retry(job_id, at_ms))

    async def retry_once(self, job_id: str, at_ms: WallMs, key: RetryKey) -> KeyedRetry | None:
        return await self._first(job_id, lambda shard: shard.retry_once(job_id, at_ms, key))

    async def of_key(self, tenant: str, key: str, at_ms: WallMs) -> StoredDocument | None:
        shards = self._places.meant(self._shards, tenant)
        answer = await first_answer(shards, lambda shard: shard.of_key(tenant, key, at_ms), none=None)
        if answer is None:
            self._places.require_found(tenant)
        return answer

    async def retry_dependent(
        self, job: Dependent, waits_for: Sequence[str], at_ms: WallMs, key: RetryKey | None = None
    ) -> bool:
        """`StoreUnavailable` while its tenant moves: what it waits for may be in the other shard."""
        stored = await self.get(job.id)
        if stored is not None:
            self._places.require_at_rest(str(stored["tenant"]))
        shards = await self._searched(job.id)
        return await first_answer(shards, lambda shard: shard.retry_dependent(job, waits_for, at_ms, key), none=False)

    async def _first(
        self, job_id: str, ask: Callable[[JobStore], Coroutine[Any, Any, _Answer | None]]
    ) -> _Answer | None:
        """The answer of the shard that has the job: an id is in one alone."""
        answer = await first_answer(await self._searched(job_id), ask, none=None)
        if answer is None:
            await self._places.require_job_found(job_id)
        return answer

    async def _searched(self, job_id: str) -> Sequence[JobStore]:
        return [self._shards[index] for index in await self._places.search(job_id)]

    # Many jobs

    async def list(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobPage:
        pages = await self._of(which, lambda shard: shard.list(which, after, limit))
        documents, end = merged(
            [ShardPage(page.documents, newest_first(page.next)) for page in pages],
            lambda document: _place(document, after),
            limit,
        )
        return JobPage(documents, position_of(end))

    async def known(self, ids: Sequence[str]) -> Sequence[KnownJob]:
        return [job for rows in (await self._located(ids)).values() for _, job in rows]

    async def batch(self, batch: str, limit: int) -> Sequence[KnownJob]:
        found = await ask_all(shard.batch(batch, limit) for shard in self._shards)
        return list(chain.from_iterable(found))[:limit]

    async def count(self, which: JobSelection, states: Sequence[JobState], limit: int) -> int:
        return min(sum(await self._of(which, lambda shard: shard.count(which, states, limit))), limit)

    async def counts(self, which: JobSelection, limit: int) -> JobCounts:
        found = await self._of(which, lambda shard: shard.counts(which, limit))
        total: Counter[JobState] = Counter()
        for each in found:
            total.update(each.by_state)
        at_least = {state for state, count in total.items() if count > limit}.union(*(each.at_least for each in found))
        return JobCounts({state: min(count, limit) for state, count in total.items()}, frozenset(at_least))

    async def failed(self, which: JobSelection, limit: int) -> FailedJobs:
        found = await self._of(which, lambda shard: shard.failed(which, limit))
        jobs = sorted(
            chain.from_iterable(each.jobs for each in found),
            key=lambda job: (job.submitted_at_ms, job.id),
            reverse=True,
        )
        return FailedJobs(jobs[:limit], len(jobs) <= limit and all(each.complete for each in found))

    async def dependents(
        self, ids: Sequence[str], tenant: str | None, known: Sequence[str], limit: int
    ) -> Sequence[Dependent]:
        shards = self._places.meant(self._shards, tenant)
        found = await ask_all(shard.dependents(ids, tenant, known, limit) for shard in shards)
        return sorted(chain.from_iterable(found), key=lambda job: job.id)[:limit]

    async def cancel_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> CancelledSome:
        cancelled = asked = 0
        for shard in self._meant(which):
            some = await shard.cancel_some(which, at_ms, limit - cancelled - asked)
            cancelled, asked = cancelled + some.cancelled, asked + some.asked
            if cancelled + asked >= limit:
                break
        return CancelledSome(cancelled, asked)

    async def reprioritize_some(self, which: JobSelection, priority: int, limit: int) -> int:
        return await self._in_turn(which, lambda shard, left: shard.reprioritize_some(which, priority, left), limit)

    async def retry_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> int:
        return await self._in_turn(which, lambda shard, left: shard.retry_some(which, at_ms, left), limit)

    async def _in_turn(
        self, which: JobSelection, change: Callable[[JobStore, int], Coroutine[Any, Any, int]], limit: int
    ) -> int:
        changed = 0
        for shard in self._meant(which):
            changed += await change(shard, limit - changed)
            if changed >= limit:
                break
        return changed

    async def _of(
        self, which: JobSelection, ask: Callable[[JobStore], Coroutine[Any, Any, _Answer]]
    ) -> Sequence[_Answer]:
        return await ask_all(ask(shard) for shard in self._meant(which))

    def _meant(self, which: JobSelection) -> Sequence[JobStore]:
        """All shards in which jobs may match. That of a schedule is the one of its tenant; that of a name alone is not
        known, as jobs outlive their schedule and the name may have been another's."""
        tenant = which.made_by.tenant if which.tenant is None and which.made_by is not None else which.tenant
        return self._places.meant(self._shards, tenant)


def _place(document: StoredDocument, after: ListPosition | None) -> Place:
    """One whose instant was broken by hand is among the first of a list, or the last; no position names it."""
    at_ms, id = document.get("submitted_at_ms"), str(document["_id"])
    if is_integer(at_ms):
        return (at_ms, False, id)
    return (-1, False, id) if at_ms is None or after is not None else (LATEST_MS, True, "")
