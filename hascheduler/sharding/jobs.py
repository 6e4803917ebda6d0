"""Jobs of all shards, as the API reads and changes them. `submissions` inserts them.

A job is found by its id in the likeliest shard first (`ShardPlaces.search`), then in the others, until one has it; each
change of it is one compare-and-set of one shard, so a call that goes on to the next has written nothing before. It ends
at a shard that does not answer: the job may be there.

Of two shards that have a job by one id, as of a schedule whose name came back, the first of that order has it, in every
method here. Lists show both.

A selection with a tenant, or of one certain schedule, is of one shard. A schedule's name alone is not: jobs outlive
their schedule, and the name may have been another tenant's. Slices of changes go through the shards in order, within
the limit of one slice.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from hascheduler.model.job import JobState, NewJob
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
from hascheduler.sharding.merging import Part, PlaceKey, key_of, merged, place_of, position_of
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.shards import Shards
from hascheduler.sharding.submissions import ShardedSubmissions

Answer = TypeVar("Answer")


def shards_of_jobs(which: JobSelection, places: ShardPlaces) -> Sequence[int]:
    """All shards in which jobs may match."""
    if which.tenant is not None:
        return [places.of_tenant(which.tenant)]
    if which.made_by is not None:
        return [places.of_tenant(which.made_by.tenant)]
    return range(places.count)


class ShardedJobStore:
    """`hascheduler.ports.JobStore`."""

    def __init__(self, places: ShardPlaces, stores: Sequence[JobStore]) -> None:
        self._places = places
        self._shards = Shards(places, stores)
        self._submissions = ShardedSubmissions(places, self._shards)

    async def submit(self, job: NewJob) -> Submission:
        return await self._submissions.submit(job)

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[Submission]:
        return await self._submissions.submit_many(jobs)

    async def submit_all(self, jobs: Sequence[NewJob]) -> Sequence[Submission] | None:
        return await self._submissions.submit_all(jobs)

    # Read

    async def get(self, job_id: str) -> StoredDocument | None:
        return await self._first(job_id, lambda store: store.get(job_id))

    async def list(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobPage:
        meant = shards_of_jobs(which, self._places)
        if len(meant) == 1:
            return await self._shards.one(meant[0], lambda store: store.list(which, after, limit))
        pages = await self._shards.all(lambda store: store.list(which, after, limit))
        parts = [
            Part([(_key_of(job, after), job) for job in page.documents], key_of(page.next, newest_first=True))
            for page in pages
        ]
        whole = merged(parts, limit, newest_first=True)
        return JobPage(whole.entries, position_of(whole.until))

    async def known(self, ids: Sequence[str]) -> Sequence[KnownJob]:
        told = await self._places.of_jobs(ids)
        by_shard: dict[int, list[str]] = {}
        for id, index in told.items():
            if index is not None:
                by_shard.setdefault(index, []).append(id)
        found = {job.id: job for job in await self._known_in(by_shard)}
        left = [id for id in told if id not in found]
        if left:
            others = {index: [id for id in left if told[id] != index] for index in range(self._places.count)}
            for job in await self._known_in(others):
                found.setdefault(job.id, job)
        return list(found.values())

    async def batch(self, batch: str, limit: int) -> Sequence[KnownJob]:
        found = await self._shards.all(lambda store: store.batch(batch, limit))
        return [job for jobs in found for job in jobs][:limit]

    async def count(self, which: JobSelection, states: Sequence[JobState], limit: int) -> int:
        counted = await self._meant(which, lambda store: store.count(which, states, limit))
        return min(sum(counted), limit)

    async def counts(self, which: JobSelection, limit: int) -> JobCounts:
        counted = await self._meant(which, lambda store: store.counts(which, limit))
        sums = {state: sum(each.by_state.get(state, 0) for each in counted) for state in which.states or JobState}
        more = {state for state, count in sums.items() if count > limit}
        at_least = frozenset(more.union(*(each.at_least for each in counted)))
        return JobCounts({state: min(count, limit) for state, count in sums.items()}, at_least)

    async def failed(self, which: JobSelection, limit: int) -> FailedJobs:
        """Where it is not complete, others may be between those that it has: each shard says the newest that it met."""
        told = await self._meant(which, lambda store: store.failed(which, limit))
        parts = [Part([(place_of(job.submitted_at_ms, job.id), job) for job in each.jobs], None) for each in told]
        whole = merged(parts, limit, newest_first=True)
        is_all = len(whole.found) == sum(len(part.found) for part in parts)
        return FailedJobs(whole.entries, complete=is_all and all(each.complete for each in told))

    async def of_key(self, tenant: str, key: str, at_ms: WallMs) -> StoredDocument | None:
        return await self._shards.one(self._places.of_tenant(tenant), lambda store: store.of_key(tenant, key, at_ms))

    async def dependents(
        self, ids: Sequence[str], tenant: str | None, known: Sequence[str], limit: int
    ) -> Sequence[Dependent]:
        if tenant is not None:
            here = self._places.of_tenant(tenant)
            return await self._shards.one(here, lambda store: store.dependents(ids, tenant, known, limit))
        found = await self._shards.all(lambda store: store.dependents(ids, tenant, known, limit))
        by_id: dict[str, dict[int, Dependent]] = {}
        for index, jobs in enumerate(found):
            for job in jobs:
                by_id.setdefault(job.id, {})[index] = job
        return [await self._likeliest(id, by_id[id]) for id in sorted(by_id)[:limit]]

    # Change

    async def cancel(self, job_id: str, at_ms: WallMs) -> CancelAnswer | None:
        return await self._first(job_id, lambda store: store.cancel(job_id, at_ms))

    async def reprioritize(self, job_id: str, priority: int) -> ReprioritizeAnswer | None:
        return await self._first(job_id, lambda store: store.reprioritize(job_id, priority))

    async def retry(self, job_id: str, at_ms: WallMs) -> RetryAnswer | None:
        return await self._first(job_id, lambda store: store.retry(job_id, at_ms))

    async def retry_once(self, job_id: str, at_ms: WallMs, key: RetryKey) -> KeyedRetry | None:
        return await self._first(job_id, lambda store: store.retry_once(job_id, at_ms, key))

    async def retry_dependent(
        self, job: Dependent, waits_for: Sequence[str], at_ms: WallMs, key: RetryKey | None = None
    ) -> bool:
        async def retry(store: JobStore) -> bool | None:
            """None: it is not there, which the answer of the store does not tell from one that has changed."""
            if await store.retry_dependent(job, waits_for, at_ms, key):
                return True
            return False if await store.known([job.id]) else None

        return await self._first(job.id, retry) or False

    async def cancel_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> CancelledSome:
        slices = await self._slices(
            which,
            limit,
            lambda store, left: store.cancel_some(which, at_ms, left),
            lambda done: done.cancelled + done.asked,
        )
        return CancelledSome(sum(done.cancelled for done in slices), sum(done.asked for done in slices))

    async def reprioritize_some(self, which: JobSelection, priority: int, limit: int) -> int:
        return sum(
            await self._slices(which, limit, lambda store, left: store.reprioritize_some(which, priority, left), int)
        )

    async def retry_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> int:
        return sum(await self._slices(which, limit, lambda store, left: store.retry_some(which, at_ms, left), int))

    # Shards

    async def _first(self, job_id: str, call: Callable[[JobStore], Awaitable[Answer | None]]) -> Answer | None:
        return await self._shards.first(await self._places.search(job_id), call, None)

    async def _meant(self, which: JobSelection, call: Callable[[JobStore], Awaitable[Answer]]) -> Sequence[Answer]:
        answers = await self._shards.each(dict.fromkeys(shards_of_jobs(which, self._places), call))
        return list(answers.values())

    async def _slices(
        self,
        which: JobSelection,
        limit: int,
        call: Callable[[JobStore, int], Awaitable[Answer]],
        size: Callable[[Answer], int],
    ) -> Sequence[Answer]:
        """Of one shard after the other, until there is nothing left of ``limit``."""
        slices: list[Answer] = []
        left = limit
        for index in shards_of_jobs(which, self._places):
            if left <= 0:
                break
            done = await self._shards.one(index, partial(_called_with, call, left))
            slices.append(done)
            left -= size(done)
        return slices

    async def _known_in(self, ids: Mapping[int, Sequence[str]]) -> Sequence[KnownJob]:
        """In the order of the shards."""
        calls = {index: partial(_known, some) for index, some in ids.items() if some}
        return [job for jobs in (await self._shards.each(calls)).values() for job in jobs]

    async def _likeliest(self, job_id: str, found: Mapping[int, Dependent]) -> Dependent:
        if len(found) == 1:
            return next(iter(found.values()))
        return next(found[index] for index in await self._places.search(job_id) if index in found)


async def _known(ids: Sequence[str], store: JobStore) -> Sequence[KnownJob]:
    return await store.known(ids)


async def _called_with(call: Callable[[JobStore, int], Awaitable[Answer]], left: int, store: JobStore) -> Answer:
    return await call(store, left)


def _key_of(job: StoredDocument, after: ListPosition | None) -> PlaceKey:
    """One whose instant was broken by hand is among the first of a list, or the last; no position names it."""
    at_ms, id = job.get("submitted_at_ms"), str(job["_id"])
    if is_integer(at_ms):
        return place_of(at_ms, id)
    if at_ms is None or after is not None:
        return place_of(-1, id)
    key = key_of(ListPosition(LATEST_MS), newest_first=True)
    assert key is not None
    return key
