"""What the mirror sums up: the digest is the sum of all members' hashes, and the live counts equal a recount."""

import random
from collections import Counter
from hashlib import blake2b
from typing import Any

import pytest

from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import Mirror
from hascheduler.mirror.sums import UNHASHED_MAX, Digest
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from tests.factories import NOW, make_job, make_schedule


def _sum(members: dict[str, int]) -> str:
    hashes = (blake2b(f"{id}/{rev}".encode(), digest_size=8).digest() for id, rev in members.items())
    return f"{sum(int.from_bytes(each, 'big') for each in hashes) % 2**64:016x}"


def test_it_is_that_of_its_members_however_they_came_to_be() -> None:
    chance, digest, members = random.Random(7), Digest(), dict[str, int]()
    for _ in range(3 * UNHASHED_MAX):
        id = f"jobs/{chance.randrange(2 * UNHASHED_MAX)}"
        before = members.get(id)
        after = None if before is not None and chance.random() < 0.2 else (before or 0) + 1
        digest.replace(id, before, after)
        members.pop(id, None)
        if after is not None:
            members[id] = after
        if chance.random() < 0.001:
            assert str(digest) == _sum(members)
    assert str(digest) == _sum(members)


PUT, PATCH, DELETE = Operation.PUT, Operation.PATCH, Operation.DELETE
STATES = ("pending", "dispatched", "running", "succeeded", "failed", "cancelled")


def job(id: str, rev: int = 1, state: str = "pending", **fields: Any) -> Change:
    document = new_job_document(make_job(id))
    held = {"processor": "p", "dispatched_at_ms": NOW} if state in ("dispatched", "running") else {}
    whole = {**document, "rev": rev, "state": state, "attempt": int(bool(held)), **held, **fields}
    return Change(Collection.JOBS, PUT, id, {key: value for key, value in whole.items() if key != "_id"})


def schedule(name: str, rev: int = 1, **fields: Any) -> Change:
    whole = {**make_schedule(name), "rev": rev, **fields}
    return Change(Collection.SCHEDULES, PUT, name, {key: value for key, value in whole.items() if key != "_id"})


def recount(mirror: Mirror, by: str) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for each in mirror.nouns(Collection.JOBS).values():
        row = table.setdefault(getattr(each, by), {})
        row[each.state.value] = row.get(each.state.value, 0) + 1
    return table


def check(mirror: Mirror) -> None:
    live_counts = mirror.live_counts
    assert live_counts.jobs == Counter(each.state.value for each in mirror.nouns(Collection.JOBS).values())
    assert live_counts.of_definition == recount(mirror, "definition")
    assert live_counts.of_lane == recount(mirror, "lane")
    assert live_counts.of_tenant == recount(mirror, "tenant")
    paused = [each for each in mirror.nouns(Collection.SCHEDULES).values() if each.paused_at_ms is not None]
    assert live_counts.schedules_paused == len(paused)


@pytest.mark.parametrize("seed", range(20))
def test_it_has_what_a_recount_finds_after_whatever_the_stream_tells(seed: int) -> None:
    rng, mirror, revs = random.Random(seed), Mirror(), Counter[str]()
    for _ in range(300):
        id = rng.choice("abcdefgh")
        revs[id] += rng.choice((0, 1, 1, 1))  # some are repeats
        more = {"definition": rng.choice("xy"), "lane": rng.choice("lm"), "tenant": rng.choice("tu")}
        change = rng.choice(
            (
                job(id, revs[id], rng.choice(STATES), **more),
                Change(Collection.JOBS, PATCH, id, {"rev": revs[id], "state": rng.choice(STATES)}),
                Change(Collection.JOBS, DELETE, id, {}),
                job(id, revs[id], "nonsense"),
                schedule(id, revs[id], paused_at_ms=rng.choice((None, NOW))),
                Change(Collection.SCHEDULES, PATCH, id, {"cursor_ms": NOW + revs[id]}),
                Change(Collection.SCHEDULES, DELETE, id, {}),
            )
        )
        mirror.fold([change])
        check(mirror)
    assert mirror.nouns(Collection.JOBS) or mirror.nouns(Collection.SCHEDULES)
