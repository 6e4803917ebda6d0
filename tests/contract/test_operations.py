"""`OperationStore`: few unfinished ones a party, one a key, and each save by the runner that has it. `MatchStore`: each
match once, in an order that no change disturbs."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.token import Role
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.mongo.connection import Client, open_database
from hascheduler.mongo.matches import MongoMatchStore
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from hascheduler.ports import (
    BulkOperation,
    JobSelection,
    ListPosition,
    MatchingSchedules,
    MatchStore,
    OperationAction,
    OperationState,
    decode_operation,
    encode_operation,
)
from hascheduler.ports.operations import ENDED_KEPT_MAX, OPERATION_KEPT_MS, UNFINISHED_MAX, UnfinishedOperation
from tests.contract.backends import Backend, mongo_backend, on
from tests.factories import NOW as T0
from tests.factories import make_job, make_schedule

every_backend = on("memory", "sharded", "sharded_pymongo", "mongomock", "pymongo", "motor")
with_indexes = on("memory", "sharded", "sharded_pymongo", "pymongo", "motor")
"""And with all operators: mongomock has no unique index, and does not know `$getField`."""


def operation(number: int = 1, **only_what_matters: Any) -> BulkOperation:
    plain: dict[str, Any] = {
        "id": f"operation:{number:04}", "action": OperationAction.CANCEL_JOBS,
        "filter": {"labels": {"a.b": "c"}}, "party": "tenant:acme", "role": Role.OPERATOR, "tenant": "acme",
        "by": "ci", "started_at_ms": T0, "matched": 7, "exact": True, "reason": "why", "request_hash": "h",
    }  # fmt: skip
    return BulkOperation(**{**plain, **only_what_matters})


async def created(backend: Backend, made: BulkOperation, key: str | None = None) -> BulkOperation:
    stored = await backend.operations.create(made, key)
    assert stored is not None
    return decode_operation(stored)


async def taken(backend: Backend, made: BulkOperation, runner: str = "r1") -> BulkOperation | None:
    stored = await backend.operations.take(made.id, made.runner, made.rev, runner)
    return None if stored is None else decode_operation(stored)


async def saved(backend: Backend, made: BulkOperation) -> BulkOperation | None:
    stored = await backend.operations.save(made)
    return None if stored is None else decode_operation(stored)


@every_backend
async def test_an_operation_comes_back_as_it_was_stored(backend: Backend) -> None:
    made = operation(priority=9, catch_up=True, token_id="token-1")
    assert await created(backend, made) == made
    stored = await backend.operations.get(made.id)
    assert stored is not None
    assert decode_operation(stored) == made
    assert await backend.operations.get("operation:none") is None


@with_indexes
async def test_a_party_has_few_unfinished_ones(backend: Backend) -> None:
    for number in range(UNFINISHED_MAX):
        await created(backend, operation(number))
    assert await backend.operations.create(operation(8)) is None
    assert await backend.operations.get(operation(8).id) is None
    await created(backend, operation(9, party="tenant:other"))
    one = await taken(backend, operation(2))
    assert one is not None
    assert await saved(backend, one.ended(OperationState.DONE, T0)) is not None
    await created(backend, operation(8))
    assert await backend.operations.create(operation(10)) is None


@with_indexes
async def test_one_key_of_a_party_is_one_operation(backend: Backend) -> None:
    first = await created(backend, operation(1), "k")
    assert await created(backend, operation(2), "k") == first
    assert (await created(backend, operation(3, party="tenant:other"), "k")).id == operation(3).id
    assert (await created(backend, operation(4), "l")).id == operation(4).id
    ended = (await taken(backend, first) or first).ended(OperationState.DONE, T0)
    assert await saved(backend, ended) is not None
    assert (await created(backend, operation(5), "k")).id == first.id


@every_backend
async def test_one_runner_has_it_and_writes_its_progress(backend: Backend) -> None:
    made = await created(backend, operation())
    mine = await taken(backend, made)
    assert mine is not None
    assert (mine.runner, mine.rev) == ("r1", 2)
    assert await taken(backend, made, "r2") is None
    further = await saved(backend, replace(mine, changed=3, position="5.a", asked_to_stop=1, refused=2, error="e"))
    assert further is not None
    assert (further.changed, further.position, further.asked_to_stop, further.refused) == (3, "5.a", 1, 2)
    assert await saved(backend, replace(mine, changed=9)) is None  # an earlier revision
    other = await taken(backend, further, "r2")
    assert other is not None
    assert await saved(backend, further) is None  # another has it
    assert other.changed == 3


@every_backend
async def test_what_has_ended_is_nobodys_and_expires(backend: Backend) -> None:
    mine = await taken(backend, await created(backend, operation()))
    assert mine is not None
    done = await saved(backend, mine.ended(OperationState.FAILED, T0, "broken"))
    assert done is not None
    assert (done.state, done.ended_at_ms, done.error) == (OperationState.FAILED, T0, "broken")
    assert await taken(backend, done, "r2") is None
    assert await saved(backend, replace(done, changed=1)) is None
    stored = await backend.behind.find(Collection.OPERATIONS, mine.id)
    assert stored is not None
    assert stored["expire_at"].replace(tzinfo=None) == to_datetime(T0 + OPERATION_KEPT_MS).replace(tzinfo=None)
    assert list(await backend.operations.unfinished(10)) == []


@every_backend
async def test_a_stop_is_asked_for_once_and_seen_at_the_next_save(backend: Backend) -> None:
    mine = await taken(backend, await created(backend, operation()))
    assert mine is not None
    for at, by in ((1, "ann"), (2, "ben")):
        asked = await backend.operations.request_stop(mine.id, WallMs(at), by)
        assert asked is not None
        assert (asked["stop_requested_at_ms"], asked["stop_requested_by"]) == (1, "ann")
    further = await saved(backend, replace(mine, changed=1))
    assert further is not None
    assert (further.changed, further.stop_requested_by) == (1, "ann")
    await saved(backend, further.ended(OperationState.STOPPED, T0))
    asked = await backend.operations.request_stop(mine.id, WallMs(3), "cem")
    assert asked is not None
    assert (asked["state"], asked["stop_requested_by"]) == ("stopped", "ann")
    assert await backend.operations.request_stop("operation:none", WallMs(1), "ann") is None


@with_indexes
async def test_the_unfinished_ones_are_found_with_their_runners(backend: Backend) -> None:
    await created(backend, operation(1))
    mine = await taken(backend, await created(backend, operation(2)))
    given = await taken(backend, await created(backend, operation(3)))
    assert mine is not None
    assert given is not None
    await backend.operations.give_back(given)
    await backend.operations.give_back(replace(mine, rev=1))  # not as it is: left alone
    found = sorted(await backend.operations.unfinished(10), key=lambda one: one.id)
    assert found == [
        UnfinishedOperation(operation(1).id, None, 1),
        UnfinishedOperation(operation(2).id, "r1", 2),
        UnfinishedOperation(operation(3).id, None, 3),
    ]
    assert len(await backend.operations.unfinished(1)) == 1


@every_backend
async def test_they_are_listed_newest_first_by_party(backend: Backend) -> None:
    for number, party in ((1, "tenant:acme"), (2, "tenant:other"), (3, "tenant:acme")):
        await created(backend, operation(number, party=party))

    async def numbers(party: str | None, after: str | None = None, limit: int = 10) -> list[int]:
        return [int(one["_id"][-4:]) for one in await backend.operations.list(party, after, limit)]

    assert await numbers(None) == [3, 2, 1]
    assert await numbers("tenant:acme") == [3, 1]
    assert await numbers(None, operation(3).id, 1) == [2]


@with_indexes
async def test_the_oldest_of_a_party_go_where_there_are_too_many(backend: Backend) -> None:
    for number in range(ENDED_KEPT_MAX):
        ended = operation(number).ended(OperationState.DONE, T0)
        await backend.behind.insert(Collection.OPERATIONS, encode_operation(ended))
    await backend.behind.insert(Collection.OPERATIONS, encode_operation(operation(9_000, party="tenant:other")))
    await created(backend, operation(7_000))
    await created(backend, operation(7_001))
    assert await backend.operations.get(operation(0).id) is None
    assert await backend.operations.get(operation(1).id) is None
    assert await backend.operations.get(operation(2).id) is not None
    assert await backend.operations.get(operation(9_000).id) is not None


# What matches


async def submitted(backend: Backend, *jobs: tuple[str, int], **only_what_matters: Any) -> None:
    for id, at in jobs:
        await backend.jobs.submit(replace(make_job(id), submitted_at_ms=WallMs(T0 + at), **only_what_matters))


async def walked(matches: MatchStore, which: JobSelection, limit: int) -> list[list[str]]:
    found: list[list[str]] = []
    after: ListPosition | None = None
    for _ in range(100):
        slice = await matches.jobs(which, after, limit)
        found.append(list(slice.ids))
        if slice.next is None:
            return found
        after = slice.next
    raise AssertionError("it has no end")


@with_indexes
async def test_jobs_are_gone_through_oldest_first_each_once(backend: Backend) -> None:
    await submitted(backend, ("d", 2), ("a", 3), ("c", 2), ("b", 1))
    await submitted(backend, ("x", 2), definition="other")
    await submitted(backend, ("late", 4))
    which = JobSelection(states=(JobState.PENDING,), definition="log", before_ms=WallMs(T0 + 4))
    assert await walked(backend.matches, which, 2) == [["b", "c"], ["d", "a"]]
    assert await walked(backend.matches, which, 3) == [["b", "c", "d"], ["a"]]
    assert (await backend.matches.jobs(which, ListPosition(T0 + 2), 9)).ids == ["c", "d", "a"]
    assert (await backend.matches.jobs(which, ListPosition(T0 + 2, "c"), 9)).ids == ["d", "a"]
    live = JobSelection(states=(JobState.PENDING, JobState.RUNNING), labels={"team": "none"})
    assert await walked(backend.matches, live, 2) == [[]]


@with_indexes
async def test_jobs_are_gone_through_by_instants_and_by_their_ids(backend: Backend) -> None:
    await submitted(backend, ("fire:b:1", 5), ("fire:a:2", 4), ("fire:a:1", 3), ("job:2", 2), ("job:1", 1), ("k", 0))
    pending = (JobState.PENDING,)
    between = JobSelection(states=pending, since_ms=WallMs(T0 + 1), before_ms=WallMs(T0 + 4))
    assert await walked(backend.matches, between, 2) == [["job:1", "job:2"], ["fire:a:1"]]
    assert await walked(backend.matches, replace(between, id_prefix="fire:"), 2) == [["fire:a:1"]]
    assert await walked(backend.matches, JobSelection(states=pending, id_prefix="fire:"), 2) == [
        ["fire:a:1", "fire:a:2"],
        ["fire:b:1"],
    ]
    assert await walked(backend.matches, JobSelection(states=pending, id_prefix="fire:a:"), 1) == [
        ["fire:a:1"],
        ["fire:a:2"],
    ]
    meant = JobSelection(states=pending, ids=frozenset({"job:1", "fire:b:1", "gone"}))
    assert await walked(backend.matches, meant, 1) == [["job:1"], ["fire:b:1"]]
    assert await walked(backend.matches, replace(meant, id_prefix="fire:"), 9) == [["fire:b:1"]]
    for which, matched in ((between, 3), (meant, 2), (replace(meant, id_prefix="fire:"), 1)):
        assert await backend.jobs.count(which, pending, 9) == matched


@with_indexes
async def test_what_is_changed_on_the_way_disturbs_no_order(backend: Backend) -> None:
    await submitted(backend, *((f"j{number}", number) for number in range(6)))
    which = JobSelection(states=(JobState.PENDING,))
    slice = await backend.matches.jobs(which, None, 2)
    for id in (*slice.ids, "j3"):
        await backend.jobs.cancel(id, T0)
    await backend.jobs.retry("j0", T0)  # it matches again, and was met
    rest = await backend.matches.jobs(which, slice.next, 9)
    assert (slice.ids, rest.ids, rest.next) == (["j0", "j1"], ["j2", "j4", "j5"], None)


@with_indexes
async def test_schedules_are_gone_through_by_name(backend: Backend) -> None:
    for name in ("Nightly-a", "nightly-b", "hourly", "nightly.c"):
        await backend.schedules.create(make_schedule(name, labels={"a.b": name[0]}))
    await backend.schedules.edit("nightly-b", 1, {"paused_at_ms": T0})

    async def names(limit: int = 10, after: str | None = None, **which: Any) -> list[str]:
        asked = MatchingSchedules(**which)
        slice = await backend.matches.schedules(asked, after, limit)
        if after is None:
            assert await backend.matches.count_schedules(asked, limit) == len(slice.names)
        return list(slice.names)

    assert await names() == ["Nightly-a", "hourly", "nightly-b", "nightly.c"]
    assert await names(text="NIGHTLY") == ["Nightly-a", "nightly-b", "nightly.c"]
    assert await names(text="y.") == ["nightly.c"]
    assert await names(text="NIGHTLY", limit=2) == ["Nightly-a", "nightly-b"]
    assert await names(text="NIGHTLY", limit=2, after="nightly-b") == ["nightly.c"]
    assert await names(paused=True) == ["nightly-b"]
    assert await names(paused=False, labels={"a.b": "n"}) == ["nightly.c"]
    assert await names(tenant="nobody") == []
    assert (await backend.matches.schedules(MatchingSchedules(), None, 3)).next == "nightly-b"
    assert await names(names=["nightly.c", "hourly", "gone"]) == ["hourly", "nightly.c"]
    assert await names(names=["nightly.c", "hourly"], after="hourly") == ["nightly.c"]
    assert await names(names=["nightly.c", "hourly"], text="NIGHTLY") == ["nightly.c"]
    assert await names(names=[]) == []


@pytest.mark.real
async def test_a_slice_meets_few_that_do_not_match(pymongo_client: Client, database_name: str) -> None:
    database = open_database(pymongo_client, database_name)
    await ensure_collections_and_indexes(database)
    backend = mongo_backend(database)
    for number in range(60):
        await submitted(backend, (f"j{number:02}", number // 2), labels={"n": str(number)})
        await backend.schedules.create(make_schedule(f"s{number:02}", labels={"n": str(number)}))
    matches = MongoMatchStore(database, scanned_max=10)
    which = JobSelection(states=(JobState.PENDING, JobState.RUNNING), definition="log", labels={"n": "41"})
    slices = await walked(matches, which, 5)
    assert [one for one in slices if one] == [["j41"]]
    assert len(slices) >= 5
    among = JobSelection(states=(JobState.PENDING, JobState.RUNNING), id_prefix="j4")
    assert [id for slice in await walked(matches, among, 4) for id in slice] == [f"j4{number}" for number in range(10)]
    many = replace(among, id_prefix="j", labels={"n": "41"})
    slices = await walked(matches, many, 5)
    assert [one for one in slices if one] == [["j41"]]
    assert len(slices) >= 5
    names: list[str] = []
    after: str | None = None
    for _ in range(10):
        slice = await matches.schedules(MatchingSchedules(labels={"n": "41"}), after, 5)
        names += slice.names
        after = slice.next
        if after is None:
            break
    assert (names, after) == (["s41"], None)
