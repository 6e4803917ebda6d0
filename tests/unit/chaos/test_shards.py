"""Of several shards each answers for its own: what is in another one is lost here and was never asked for there."""

from types import SimpleNamespace
from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.job import fire_job_id
from hascheduler.model.partition import with_partition
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.trigger import Interval, Trigger
from tests.chaos.shards import evidence_of, layout_of, tenants_of
from tests.checkers import ALL
from tests.checkers.evidence import Effect, Evidence, Submitted

SHARDS = 4
LAYOUT = layout_of(SHARDS)
TENANTS = tenants_of(SHARDS)[:SHARDS]
"""One of each, in order."""
JOBS = [with_partition(f"job-{index}", tenant) for index, tenant in enumerate(TENANTS)]
NAMES = [f"every-{index}" for index in range(SHARDS)]
FIRES = [fire_job_id(name, WallMs(1_000)) for name in NAMES]


def judged(stored: list[list[str]], effects: list[str]) -> dict[str, list[str]]:
    """What is found in all shards, by checker; ``stored`` are the ids of the jobs that each has in the end."""
    trigger = Trigger(Interval(1_000, WallMs(0)))
    whole = Evidence(
        effects=[Effect(id, 1, "p", 1.0, 1.1) for id in effects],
        submits=[Submitted(id, 0.5, acknowledged=True) for id in JOBS],
        schedules={
            name: SimpleNamespace(trigger=trigger, now=WallMs(500), graph=None, tenant=tenant)
            for name, tenant in zip(NAMES, TENANTS, strict=True)
        },
        until_ms=1_500,
    )
    found: dict[str, list[str]] = {}
    for shard, ids in enumerate(stored):
        jobs: dict[Any, Any] = {id: {"_id": id, "state": "succeeded", "attempt": 1} for id in ids}
        of_one = evidence_of(shard, whole, [], LAYOUT)
        of_one.documents = {Collection.JOBS: jobs, Collection.VERDICTS: {}}
        for name in ("nothing_lost", "nothing_extra"):
            found.setdefault(name, []).extend(ALL[name](of_one))
    return found


def in_place() -> list[list[str]]:
    return [[job, fire] for job, fire in zip(JOBS, FIRES, strict=True)]


def test_all_in_its_place_is_right() -> None:
    assert judged(in_place(), JOBS + FIRES) == {"nothing_lost": [], "nothing_extra": []}


@pytest.mark.parametrize("id", [JOBS[1], FIRES[1]])
def test_a_job_in_two_shards_was_never_asked_for_in_one(id: str) -> None:
    stored = in_place()
    stored[2].append(id)
    assert judged(stored, []) == {"nothing_lost": [], "nothing_extra": [f"{id} was never asked for"]}


def test_a_job_in_another_shard_is_missed_in_its_own() -> None:
    stored = in_place()
    stored[1].remove(JOBS[1])
    stored[0].append(JOBS[1])
    assert judged(stored, []) == {
        "nothing_lost": [f"{JOBS[1]} was acknowledged and is gone"],
        "nothing_extra": [f"{JOBS[1]} was never asked for"],
    }


def test_an_effect_that_tells_no_shard_is_not_overlooked() -> None:
    assert judged(in_place(), ["whose"])["nothing_extra"] == ["an effect of whose, never asked for"]
