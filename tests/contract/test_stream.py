"""`ChangeSource` and `ChangeStream`: one total order over all mirrored collections, without a gap."""

import asyncio

import pytest

from hascheduler.dispatch.decisions import Fire, Requeue
from hascheduler.errors import HistoryLost, InvariantBroken, StoreUnavailable
from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.documents import LEAN_FIELDS, Collection
from hascheduler.model.instants import WallMs
from hascheduler.model.job import LIVE, JobState
from tests.contract.backends import Backend, on
from tests.contract.claim_checks import applied
from tests.contract.following import (
    PATIENCE_MS,
    follow_into,
    opened,
    opened_anew,
    read_snapshot,
    told,
    told_until,
    whats,
)
from tests.contract.job_states import bring_to, dispatch, finish, start
from tests.contract.stream_checks import a_start_is_gap_free
from tests.factories import (
    NOW,
    make_definition,
    make_entry,
    make_job,
    make_lease,
    make_processor,
    make_replica,
    make_schedule,
)

# Not mongomock: it has no change streams.
pytestmark = on("memory", "pymongo", "motor")

JOBS, SCHEDULES, DEFINITIONS = Collection.JOBS, Collection.SCHEDULES, Collection.DEFINITIONS


async def mark(backend: Backend, name: str = "the end") -> None:
    await backend.definitions.put(make_definition(name))


async def write_everything(backend: Backend) -> None:
    """Something in every collection, and a job in each state."""
    await backend.leases.create(make_lease())
    await backend.leases.update(make_lease(), make_lease(renewals=1))
    await backend.journal.insert(make_entry(1))
    await backend.board.beat(make_replica())
    await backend.work.register(make_processor())
    await backend.work.beat("p1", 2, draining=False, parked=0)
    await backend.definitions.put(make_definition("log"))
    await backend.schedules.create(make_schedule())
    await backend.schedules.replace(make_schedule(payload="new"))
    await applied(backend.claims, Fire("tick", WallMs(NOW + 1_000)))
    for state in JobState:
        await bring_to(backend, state, state.value)


# What is told


async def test_what_happened_before_is_not_told(backend: Backend) -> None:
    for id in ("before", "just before"):
        await backend.jobs.submit(make_job(id))
    async with opened(backend.source) as stream:
        await backend.jobs.submit(make_job("after"))
        # It begins at a moment, which may be that of the last change.
        assert [change.id for change in await told(stream, "after")][-2:] in (["just before", "after"], ["after"])


async def test_changes_come_in_the_order_in_which_they_were_made(backend: Backend) -> None:
    async with opened_anew(backend.source, backend.definitions) as stream:
        for number in range(10):
            await backend.jobs.submit(make_job(f"job-{number}"))
            await backend.schedules.create(make_schedule(f"schedule-{number}"))
            await backend.definitions.put(make_definition("log"))
            await backend.schedules.delete(f"schedule-{number}")
        await mark(backend)
        changes = await told(stream, "the end")
    expected = [
        [
            (JOBS, f"job-{number}", False),
            (SCHEDULES, f"schedule-{number}", False),
            (DEFINITIONS, "log", False),
            (SCHEDULES, f"schedule-{number}", True),
        ]
        for number in range(10)
    ]
    assert whats(changes[:-1]) == [change for changes_of_one in expected for change in changes_of_one]


async def test_an_insert_is_told_whole_and_a_delete_without_fields(backend: Backend) -> None:
    async with opened_anew(backend.source, backend.definitions) as stream:
        await backend.definitions.put(make_definition("log", max_concurrency=2))
        await backend.definitions.delete("log")
        await mark(backend)
        put, delete, _ = await told(stream, "the end")
    assert put == Change(
        DEFINITIONS, Operation.PUT, "log", {"rev": 1, "max_concurrency": 2, "attempts_max": put.fields["attempts_max"]}
    )
    assert delete == Change(DEFINITIONS, Operation.DELETE, "log", {})


async def test_only_lean_fields_travel_in_the_stream_in_the_snapshot_and_in_a_fetch(backend: Backend) -> None:
    async with opened_anew(backend.source, backend.definitions) as stream:
        await write_everything(backend)
        await mark(backend)
        changes = await told(stream, "the end")
        snapshot = await read_snapshot(stream)
    fetched = list(await backend.source.fetch(SCHEDULES, ["tick"]))
    assert {change.collection for change in changes} == set(Collection)
    for change in [*changes, *snapshot, *fetched]:
        assert set(change.fields) <= set(LEAN_FIELDS[change.collection])
    for change in [*snapshot, *fetched]:
        assert change.operation is Operation.PUT
        assert set(change.fields) == set(LEAN_FIELDS[change.collection])


async def test_a_patch_holds_what_changed(backend: Backend) -> None:
    await bring_to(backend, JobState.DISPATCHED)
    async with opened_anew(backend.source, backend.definitions) as stream:
        await start(backend)
        await mark(backend)
        change, _ = await told(stream, "the end")
    assert change.operation in {Operation.PATCH, Operation.PUT}
    assert (change.fields["state"], change.fields["rev"]) == (JobState.RUNNING, 3)


async def test_a_write_that_changes_nothing_is_not_told(backend: Backend) -> None:
    await backend.jobs.submit(make_job())
    async with opened_anew(backend.source, backend.definitions) as stream:
        await backend.jobs.submit(make_job())
        await backend.jobs.cancel("nobody", NOW)
        await applied(backend.claims, Requeue("a", 1, "dead"))
        await mark(backend)
        assert whats(await told(stream, "the end")) == [(DEFINITIONS, "the end", False)]


async def test_the_journal_is_told_by_its_inserts_alone(backend: Backend) -> None:
    async with opened_anew(backend.source, backend.definitions) as stream:
        for seq in (1, 2):
            await backend.journal.insert(make_entry(seq))
        assert await backend.journal.trim("default", 1, WallMs(NOW + 1)) == 1
        await mark(backend)
        changes = await told(stream, "the end")
    assert [change.id for change in changes] == [
        {"shard": "default", "seq": 1},
        {"shard": "default", "seq": 2},
        "the end",
    ]


async def test_two_streams_tell_the_same_and_stand_at_the_same_position(backend: Backend) -> None:
    async with opened(backend.source) as one, opened(backend.source) as other:
        await write_everything(backend)
        await mark(backend)
        changes, batch = await told_until(one, "the end")
        changes_again, batch_again = await told_until(other, "the end")
    assert changes == changes_again
    assert batch.position == batch_again.position


async def test_positions_grow_as_texts(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        positions = [(await stream.next_batch(0)).position]
        assert positions == [""]
        for number in range(12):
            await mark(backend, f"definition-{number}")
            _, batch = await told_until(stream, f"definition-{number}")
            positions.append(batch.position)
    assert positions == sorted(set(positions))


async def test_silence_is_an_empty_batch(backend: Backend) -> None:
    async with opened_anew(backend.source, backend.definitions) as stream:
        assert (await stream.next_batch(20)).changes == []


async def test_a_cancelled_wait_loses_nothing(backend: Backend) -> None:
    seen: list[object] = []
    async with opened_anew(backend.source, backend.definitions) as stream:
        for number in range(30):
            waiting = asyncio.create_task(stream.next_batch(PATIENCE_MS))
            await asyncio.sleep(0)
            await backend.jobs.submit(make_job(f"{number:02}"))
            waiting.cancel()
            [answer] = await asyncio.gather(waiting, return_exceptions=True)
            if not isinstance(answer, BaseException):
                seen += [change.id for change in answer.changes]
        await mark(backend)
        seen += [change.id for change in await told(stream, "the end")]
    assert seen == [*(f"{number:02}" for number in range(30)), "the end"]


# Where it begins


async def test_a_start_is_gap_free(backend: Backend) -> None:
    await a_start_is_gap_free(backend.source, backend.jobs, backend.definitions)


async def test_the_snapshot_holds_every_live_document(backend: Backend) -> None:
    await write_everything(backend)
    for seq, shard in ((2, "default"), (10, "default"), (9, "default"), (1, "other")):
        await backend.journal.insert(make_entry(seq, shard=shard))
    async with opened(backend.source) as stream:
        changes = await read_snapshot(stream)
    ids = {of: [change.id for change in changes if change.collection is of] for of in Collection}
    assert {of: len(found) for of, found in ids.items() if of not in {JOBS, Collection.JOURNAL}} == {
        of: 1 for of in Collection if of not in {JOBS, Collection.JOURNAL}
    }
    assert sorted(map(str, ids[JOBS])) == sorted([f"fire:tick:{NOW + 1_000}", *(state.value for state in LIVE)])
    newest = [{"shard": "default", "seq": 10}, {"shard": "other", "seq": 1}]
    assert sorted(ids[Collection.JOURNAL], key=str) == newest


async def test_the_snapshot_of_an_empty_database_is_empty(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        assert await read_snapshot(stream) == []


async def test_a_large_snapshot_comes_in_slices(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    fires = [Fire("tick", WallMs(NOW + 1_000 * number)) for number in range(1, 2_502)]
    await applied(backend.claims, *fires)
    async with opened(backend.source) as stream:
        slices = [changes async for changes in stream.snapshot()]
    assert max(len(changes) for changes in slices) <= 1_000
    ids = {change.id for changes in slices for change in changes if change.collection is JOBS}
    assert ids == {fire.job_id for fire in fires}


async def test_a_mirror_that_followed_equals_one_that_read_a_snapshot(backend: Backend) -> None:
    followed, fresh = Mirror(), Mirror()
    async with opened(backend.source) as stream:
        await write_everything(backend)
        await dispatch(backend, "pending")
        await finish(backend, "running")
        await mark(backend)
        await follow_into(followed, backend.source, stream, "the end")
    async with opened(backend.source) as stream:
        fresh.fold(await read_snapshot(stream))
    for collection in set(Collection) - {Collection.JOURNAL}:
        assert followed.nouns(collection) == fresh.nouns(collection)
    assert followed.journal_head("default") == fresh.journal_head("default")
    assert followed.digest == fresh.digest
    assert not followed.quarantine


# Where it goes on


async def test_a_resumed_stream_goes_on_where_the_other_one_stood(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        await mark(backend, "1")
        _, batch = await told_until(stream, "1")
    for name in ("2", "3"):
        await mark(backend, name)
    async with opened(backend.source, batch.resume) as stream:
        await mark(backend, "4")
        assert [change.id for change in await told(stream, "4")] == ["2", "3", "4"]


async def test_resuming_over_and_over_loses_nothing_and_repeats_nothing(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        resume = (await stream.next_batch(0)).resume
    seen: list[object] = []
    for number in range(10):
        await mark(backend, f"{number} a")
        async with opened(backend.source, resume) as stream:
            await mark(backend, f"{number} b")
            batch = await stream.next_batch(PATIENCE_MS)
            seen += [change.id for change in batch.changes]
            resume = batch.resume
    await mark(backend)
    async with opened(backend.source, resume) as stream:
        seen += [change.id for change in await told(stream, "the end")]
    assert seen == [*(f"{number} {part}" for number in range(10) for part in "ab"), "the end"]


async def test_the_token_of_an_empty_batch_is_as_good_as_any(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        resume = (await stream.next_batch(0)).resume
    await mark(backend, "1")
    async with opened(backend.source, resume) as stream:
        assert [change.id for change in await told(stream, "1")] == ["1"]


async def test_a_resumed_stream_has_no_snapshot(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        resume = (await stream.next_batch(0)).resume
    async with opened(backend.source, resume) as stream:
        with pytest.raises(InvariantBroken):
            await read_snapshot(stream)


# Where it ends


async def test_a_token_without_its_history_is_history_lost(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        await mark(backend, "1")
        _, batch = await told_until(stream, "1")
    token = await backend.behind.outdated(batch.resume)
    # One driver notices when it opens the stream, another when it is first read.
    with pytest.raises(HistoryLost):
        async with opened(backend.source, token) as stream:
            await stream.next_batch(PATIENCE_MS)


async def test_a_dropped_collection_is_history_lost_after_what_came_before(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        await mark(backend, "1")
        await backend.behind.drop(SCHEDULES)
        await mark(backend, "2")
        assert [change.id for change in await told(stream, "1")] == ["1"]
        for _ in range(2):
            with pytest.raises(HistoryLost):
                await stream.next_batch(PATIENCE_MS)
    async with opened(backend.source) as stream:
        assert {change.id for change in await read_snapshot(stream)} == {"1", "2"}


async def test_a_closed_stream_says_so(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        pass
    with pytest.raises(StoreUnavailable):
        await stream.next_batch(PATIENCE_MS)


# Fetching


async def test_a_fetch_puts_what_is_there_and_deletes_what_is_not(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING, "a")
    await bring_to(backend, JobState.SUCCEEDED, "b")
    changes = {change.id: change for change in await backend.source.fetch(JOBS, ["b", "nobody", "a"])}
    assert changes.keys() == {"a", "b", "nobody"}
    assert (changes["a"].operation, changes["a"].fields["state"]) == (Operation.PUT, JobState.RUNNING)
    # Finished ones too: only a snapshot leaves them out.
    assert (changes["b"].operation, changes["b"].fields["state"]) == (Operation.PUT, JobState.SUCCEEDED)
    assert changes["nobody"] == Change(JOBS, Operation.DELETE, "nobody", {})


async def test_a_fetch_of_nothing_is_empty(backend: Backend) -> None:
    assert list(await backend.source.fetch(JOBS, [])) == []
