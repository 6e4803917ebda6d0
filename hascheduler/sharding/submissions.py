"""Submits each job to the shard of its tenant, which is where all that it meets is: keys, quotas, what it waits for.

An id is no place: that of a repeated submit, or of a job that a schedule makes, may tell no slot.

What must hold: a job never waits for one of another shard, as no event of that shard would ever let it go. What is
refused for that has written nothing.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as SomeOf
from functools import partial

from hascheduler.errors import InvalidInput
from hascheduler.model.job import NewJob
from hascheduler.model.routing import slot_in
from hascheduler.model.values.error_texts import quoted
from hascheduler.ports import JobStore, Submission
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.shards import Shards


class ShardedSubmissions:
    """The part of the job store that inserts."""

    def __init__(self, places: ShardPlaces, shards: Shards[JobStore]) -> None:
        self._places = places
        self._shards = shards

    async def submit(self, job: NewJob) -> Submission:
        await self._require_own_dependencies([job])
        return await self._shards.one(self._places.of_tenant(job.tenant), lambda store: store.submit(job))

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[Submission]:
        """Where one shard does not answer, the jobs of the others are submitted all the same, and the call fails: it is
        repeated as after any unknown answer."""
        await self._require_own_dependencies(jobs)
        by_shard: dict[int, list[int]] = {}
        for place, job in enumerate(jobs):
            by_shard.setdefault(self._places.of_tenant(job.tenant), []).append(place)
        answers = await self._shards.each(
            {index: partial(_submit_many, [jobs[place] for place in some]) for index, some in by_shard.items()}
        )
        by_place = {
            place: submission
            for index, some in by_shard.items()
            for place, submission in zip(some, answers[index], strict=True)
        }
        return [by_place[place] for place in range(len(jobs))]

    async def submit_all(self, jobs: Sequence[NewJob]) -> Sequence[Submission] | None:
        if not jobs:
            return []
        self._places.require_one_shard([job.tenant for job in jobs], ("jobs",))
        await self._require_own_dependencies(jobs)
        return await self._shards.one(self._places.of_tenant(jobs[0].tenant), lambda store: store.submit_all(jobs))

    async def _require_own_dependencies(self, jobs: Sequence[NewJob]) -> None:
        """`InvalidInput` about the first dependency that is in another shard than its job; one that is nowhere is none
        of these."""
        together = {job.id: self._places.of_tenant(job.tenant) for job in jobs}
        elsewhere = {id for job in jobs for id in job.depends_on if id not in together}
        if not elsewhere and not any(job.depends_on for job in jobs):
            return
        told = {**await self._places.of_jobs(sorted(elsewhere)), **together}
        # An id with a slot, or that is submitted with the job, is certain. The name of a schedule that made one may be
        # of another tenant by now, and an id that tells nothing may be anywhere: what is known decides.
        unsure: dict[int, set[str]] = {}
        for job in jobs:
            here = self._places.of_tenant(job.tenant)
            for id in job.depends_on:
                if told[id] != here and id not in together and slot_in(id) is None:
                    unsure.setdefault(here, set()).add(id)
        known = await self._known(unsure)
        for job in jobs:
            here = self._places.of_tenant(job.tenant)
            for index, id in enumerate(job.depends_on):
                found = known.get((here, id), told[id])
                if found not in (None, here):
                    self._refuse(job, index, found)

    async def _known(self, unsure: Mapping[int, SomeOf[str]]) -> Mapping[tuple[int, str], int]:
        """Where a job of each shard would find each of the ids: in that shard before any other."""
        if not unsure:
            return {}
        ids = sorted({id for some in unsure.values() for id in some})
        has = [{job.id for job in found} for found in await self._shards.all(lambda store: store.known(ids))]
        return {
            (here, id): there
            for here, some in unsure.items()
            for id in some
            for there in reversed(self._places.from_there(here))
            if id in has[there]
        }

    def _refuse(self, job: NewJob, index: int, found: int | None) -> None:
        assert found is not None
        here = self._places.of_tenant(job.tenant)
        raise InvalidInput(
            ("depends_on", index),
            f"job {quoted(job.depends_on[index])} is in shard {self._places.shards[found]}, and jobs of tenant"
            f" {quoted(job.tenant)} are in {self._places.shards[here]}",
            "a job of the same shard: an event of another one lets no job go",
        )


async def _submit_many(jobs: Sequence[NewJob], store: JobStore) -> Sequence[Submission]:
    return await store.submit_many(jobs)
