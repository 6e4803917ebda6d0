"""Several shards: whose tenants are where, and the evidence of one shard alone.

Every promise holds in each shard, so each has an evidence of its own, with what was asked of it: its tenants' submits,
cancels and schedules, and the effects of their jobs, whichever processor had them. A job in a shard that is not its own
is one that nobody asked for there, and is missed in the right one. Caps over all tenants hold over all shards together,
and are judged by the commits of all in their one order.

If partitions move, a job may be in any shard. Then a shard is judged by its lease and its journal alone (`OF_A_SHARD`),
and all the rest in all shards as in one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hascheduler.demo.local import tenants_of_each_shard
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState, schedule_of
from hascheduler.model.partition import partition_in, shard_name
from hascheduler.shards.layout import Layout
from hascheduler.testing.memory.database import Document
from tests.checkers.evidence import Commit, Evidence, Submitted

OF_A_SHARD = frozenset({"journal_fenced", "lease_moves", "mirrors_agree", "pauses_kept"})
"""The checkers that judge what never moves."""
_SECOND_OF_A_KEY = "another job has its key"


def layout_of(shards: int) -> Layout:
    """Return the layout of a deployment that was made with so many shards."""
    return Layout.even([shard_name("default", index) for index in range(shards)])


def tenants_of(shards: int) -> Sequence[str]:
    """Some in each of several shards, the shards' in turns; none where there is one."""
    return tenants_of_each_shard(layout_of(shards)) if shards > 1 else ()


def evidence_of(shard: int, whole: Evidence, commits: Sequence[Commit], layout: Layout) -> Evidence:
    """``whole`` has what was asked of all shards and the effects of all, but the documents of that one, whose
    ``commits`` these are."""

    def is_here(job_id: str) -> bool:
        return _index_of(job_id, whole, layout) == shard

    return replace(
        whole,
        commits=list(commits),
        effects=[effect for effect in whole.effects if is_here(effect.job_id)],
        submits=[submit for submit in whole.submits if is_here(submit.id)],
        cancels=[(id, at_s) for id, at_s in whole.cancels if is_here(id)],
        schedules={
            name: schedule for name, schedule in whole.schedules.items() if layout.index_of(schedule.tenant) == shard
        },
    )


def evidence_of_what_stays(
    whole: Evidence, commits: Sequence[Commit], documents: Mapping[Collection, dict[Any, Document]]
) -> Evidence:
    """Return the evidence of one shard if partitions move."""
    return replace(
        whole, commits=list(commits), documents=dict(documents), effects=[], submits=[], cancels=[], schedules={}
    )


def evidence_of_all(whole: Evidence, shards: Sequence[Evidence], commits: Sequence[Commit]) -> Evidence:
    """Return the evidence of all shards as of one, if partitions move. A submit without an answer that was repeated in
    the other shard of its partition is there twice: the second of its key has arrived cancelled."""
    documents: dict[Collection, dict[Any, Document]] = {}
    for shard in shards:
        for collection, of_one in shard.documents.items():
            documents.setdefault(collection, {}).update(of_one)
    seconds = [
        Submitted(id, 0.0)
        for id, job in documents[Collection.JOBS].items()
        if job["state"] == JobState.CANCELLED and job.get("error") == _SECOND_OF_A_KEY
    ]
    return replace(whole, commits=list(commits), documents=documents, submits=[*whole.submits, *seconds])


def _index_of(job_id: str, whole: Evidence, layout: Layout) -> int:
    """Where it should be; the home, where nobody asked for it, answers for what tells no shard."""
    name, partition = schedule_of(job_id), partition_in(job_id)
    if name in whole.schedules:
        return layout.index_of(whole.schedules[name].tenant)
    return 0 if partition is None else layout.shard_of[partition]
