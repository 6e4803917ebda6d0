"""The fold, one case at a time; unreadable documents are set aside; the digest and the counts equal a recount."""

import random
from collections import Counter
from hashlib import blake2b
from typing import Any

import pytest

from hascheduler.mirror.changes import (
    Change,
    JobGone,
    JobSeen,
    JournalSeen,
    NounSeen,
    ProcessorGone,
    ProcessorSeen,
    Quarantined,
    ScheduleGone,
    ScheduleSeen,
)
from hascheduler.mirror.mirror import QUARANTINE_MAX, Mirror
from hascheduler.mirror.sums import UNHASHED_MAX, Digest
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import journal_id
from hascheduler.model.job import JobState
from tests.factories import NOW
from tests.unit.mirror.nouns import (
    delete,
    entry_fields,
    job_fields,
    lease_fields,
    patch,
    processor_fields,
    put,
    schedule_fields,
)

JOBS, SCHEDULES = Collection.JOBS, Collection.SCHEDULES
DEFINITION = {"rev": 1, "max_concurrency": None, "attempts_max": 5}
KEY = (JOBS, "j")


def mirror_of(*changes: Change) -> Mirror:
    mirror = Mirror()
    mirror.fold(changes)
    return mirror


def kinds(facts: list[Any]) -> list[type]:
    return [type(fact) for fact in facts]


@pytest.mark.parametrize(
    ("collection", "fields", "seen", "gone"),
    [
        (JOBS, job_fields(), JobSeen, JobGone),
        (SCHEDULES, schedule_fields(), ScheduleSeen, ScheduleGone),
        (Collection.DEFINITIONS, DEFINITION, NounSeen, NounSeen),
        (Collection.PROCESSORS, processor_fields(), ProcessorSeen, ProcessorGone),
        (Collection.LEASES, lease_fields(), NounSeen, NounSeen),
    ],
)
def test_every_noun_comes_and_goes(collection: Collection, fields: dict[str, Any], seen: type, gone: type) -> None:
    mirror = Mirror()
    empty = mirror.digest
    assert kinds(mirror.fold([put(collection, "x", fields)]).facts) == [seen]
    assert mirror.fold([put(collection, "x", fields)]).facts == []
    assert kinds(mirror.fold([delete(collection, "x")]).facts) == [gone]
    assert mirror.digest == empty


@pytest.mark.parametrize(
    "overtaking", [delete(JOBS, "j"), put(JOBS, "j", job_fields(rev=8)), patch(JOBS, "j", rev=6, state="cancelled")]
)
def test_a_read_that_the_stream_overtook_changes_nothing(overtaking: Change) -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(rev=5)))
    mirror.want(JOBS, "j")
    mirror.fold([])
    mirror.fold([overtaking])
    after = dict(mirror.nouns(JOBS))
    assert mirror.fold_fetched([KEY], [put(JOBS, "j", job_fields(rev=5))]).facts == []
    assert mirror.nouns(JOBS) == after
    assert mirror.fold([]).wanted == []


def test_a_change_by_hand_that_raised_no_revision_has_the_document_read() -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(rev=5)))
    assert mirror.fold([patch(JOBS, "j", state="cancelled")]).facts == []
    assert mirror.fold([]).wanted == [KEY]
    assert mirror.fold_fetched([KEY], [put(JOBS, "j", job_fields(rev=5, state="cancelled"))]).facts == [
        JobGone("j", JobState.CANCELLED)
    ]


def test_a_document_that_cannot_be_read_is_set_aside_with_the_reason_and_the_others_go_on() -> None:
    mirror = Mirror()
    facts = mirror.fold([put(JOBS, "bad", job_fields(priority="high")), put(JOBS, "good", job_fields())]).facts
    assert kinds(facts) == [JobGone, Quarantined, JobSeen]
    assert "priority" in mirror.quarantine[(JOBS, "bad")]
    assert set(mirror.nouns(JOBS)) == {"good"}


@pytest.mark.parametrize("id", [1, None, "", {"a": [1]}, b"j", 2.5])
def test_an_id_that_is_no_text_is_set_aside_until_it_is_deleted(id: object) -> None:
    mirror = Mirror()
    assert kinds(mirror.fold([put(JOBS, id, job_fields())]).facts) == [Quarantined]
    assert len(mirror.quarantine) == 1
    mirror.fold([delete(JOBS, id)])
    assert mirror.quarantine == {}


@pytest.mark.parametrize("kind", [None, "vote", [], {"$ne": 1}])
def test_a_journal_entry_that_cannot_be_read_is_set_aside(kind: object) -> None:
    mirror = Mirror()
    facts = mirror.fold([put(Collection.JOURNAL, journal_id("a", 1), entry_fields(kind=kind))]).facts
    assert kinds(facts) == [Quarantined]
    assert mirror.journal_head("a") is None


def test_the_quarantine_is_bounded_and_keeps_the_newest() -> None:
    mirror = Mirror()
    mirror.fold(put(JOBS, f"j{i}", {}) for i in range(QUARANTINE_MAX + 10))
    assert len(mirror.quarantine) == QUARANTINE_MAX
    assert (JOBS, "j9") not in mirror.quarantine
    assert (JOBS, f"j{QUARANTINE_MAX + 9}") in mirror.quarantine


def _sum(members: dict[str, int]) -> str:
    hashes = (blake2b(f"{id}/{rev}".encode(), digest_size=8).digest() for id, rev in members.items())
    return f"{sum(int.from_bytes(each, 'big') for each in hashes) % 2**64:016x}"


def test_a_digest_is_that_of_its_members_however_they_came_to_be() -> None:
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


STATES = ("pending", "dispatched", "running", "succeeded", "failed", "cancelled")


def job(id: str, rev: int, state: str, **fields: Any) -> Change:
    held = {"processor": "p", "dispatched_at_ms": NOW} if state in ("dispatched", "running") else {}
    return put(JOBS, id, job_fields(rev=rev, state=state, attempt=int(bool(held)), **held, **fields))


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
def test_live_counts_are_what_a_recount_finds_after_whatever_the_stream_tells(seed: int) -> None:
    rng, mirror, revs = random.Random(seed), Mirror(), Counter[str]()
    for _ in range(300):
        id = rng.choice("abcdefgh")
        revs[id] += rng.choice((0, 1, 1, 1))  # some are repeats
        more = {"definition": rng.choice("xy"), "lane": rng.choice("lm"), "tenant": rng.choice("tu")}
        change = rng.choice(
            (
                job(id, revs[id], rng.choice(STATES), **more),
                patch(JOBS, id, rev=revs[id], state=rng.choice(STATES)),
                delete(JOBS, id),
                job(id, revs[id], "nonsense"),
                put(SCHEDULES, id, schedule_fields(rev=revs[id], paused_at_ms=rng.choice((None, NOW)))),
                patch(SCHEDULES, id, cursor_ms=NOW + revs[id]),
                delete(SCHEDULES, id),
            )
        )
        mirror.fold([change])
        check(mirror)
    assert mirror.nouns(Collection.JOBS) or mirror.nouns(Collection.SCHEDULES)


def test_an_older_version_tells_nothing() -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(rev=5, priority=9)))
    assert mirror.fold([put(JOBS, "j", job_fields(rev=4)), patch(JOBS, "j", rev=5, priority=1)]).facts == []
    assert mirror.nouns(JOBS)["j"].priority == 9
    assert mirror.fold([]).wanted == []


def test_a_cursor_advances_without_an_edit_and_never_back() -> None:
    mirror = mirror_of(put(SCHEDULES, "s", schedule_fields(cursor_ms=1_000)))
    assert kinds(mirror.fold([patch(SCHEDULES, "s", cursor_ms=2_000)]).facts) == [ScheduleSeen]
    assert mirror.fold([patch(SCHEDULES, "s", cursor_ms=1_500)]).facts == []
    assert mirror.nouns(SCHEDULES)["s"].cursor_ms == 2_000
    assert mirror.fold([]).wanted == []


def test_a_gap_in_the_revisions_has_the_document_read() -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(rev=1)))
    assert mirror.fold([patch(JOBS, "j", rev=3, priority=1)]).facts == []
    assert mirror.nouns(JOBS)["j"].rev == 1
    assert mirror.fold([]).wanted == [KEY]
    mirror.fold_fetched([KEY], [put(JOBS, "j", job_fields(rev=4))])
    assert mirror.nouns(JOBS)["j"].rev == 4


def test_the_newest_journal_entry_of_each_shard_is_known() -> None:
    mirror = Mirror()
    for shard, seq in (("a", 4), ("b", 1), ("a", 6), ("a", 5)):
        mirror.fold([put(Collection.JOURNAL, journal_id(shard, seq), entry_fields(term=seq))])
    heads = [mirror.journal_head(shard) for shard in ("a", "b", "c")]
    assert [head and head.seq for head in heads] == [6, 1, None]
    again = mirror.fold([put(Collection.JOURNAL, journal_id("a", 7), entry_fields(term=7))]).facts
    assert kinds(again) == [JournalSeen]
