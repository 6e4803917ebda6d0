"""`ChangeSource` and `ChangeStream`: where a stream begins, resumes and ends, without a gap between."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import pytest

from hascheduler.errors import HistoryLost, InvariantBroken, StoreUnavailable
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import MIRRORED
from hascheduler.model.job import LIVE
from tests.contract.backends import Backend, on
from tests.contract.claim_checks import applied
from tests.contract.following import (
    PATIENCE_MS,
    changes_through,
    changes_until,
    follow_into,
    opened,
    read_snapshot,
)
from tests.contract.job_states import dispatch, finish
from tests.contract.stream_checks import a_start_is_gap_free
from tests.contract.writing import mark, write_everything
from tests.factories import (
    NOW,
    make_entry,
    make_fire,
    make_schedule,
)

# Not mongomock: it has no change streams.
pytestmark = on("memory", "pymongo", "motor")

JOBS, SCHEDULES = Collection.JOBS, Collection.SCHEDULES


# Where it begins


async def test_a_start_is_gap_free(backend: Backend) -> None:
    await a_start_is_gap_free(backend.source, backend.jobs, backend.definitions)


async def test_the_snapshot_holds_every_live_document(backend: Backend) -> None:
    await write_everything(backend)
    for seq, name in ((2, "default"), (10, "default"), (9, "default"), (1, "other")):
        await backend.journal.insert(make_entry(seq, name=name))
    async with opened(backend.source) as stream:
        changes = await read_snapshot(stream)
    ids: dict[Collection, list[object]] = {of: [] for of in MIRRORED}
    for change in changes:
        ids[change.collection].append(change.id)
    assert {of: len(found) for of, found in ids.items() if of not in {JOBS, Collection.JOURNAL}} == {
        of: 1 for of in MIRRORED if of not in {JOBS, Collection.JOURNAL}
    }
    assert sorted(map(str, ids[JOBS])) == sorted([f"fire:tick:{NOW + 1_000}", *(state.value for state in LIVE)])
    newest = [{"shard": "default", "seq": 10}, {"shard": "other", "seq": 1}]
    assert sorted(ids[Collection.JOURNAL], key=str) == newest


async def test_the_snapshot_of_an_empty_database_is_empty(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        assert await read_snapshot(stream) == []


async def test_a_large_snapshot_comes_in_slices(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    fires = [make_fire(number) for number in range(1, 2_502)]
    await applied(backend.claims, *fires)
    async with opened(backend.source) as stream:
        slices = [changes async for changes in stream.snapshot()]
    assert max(len(changes) for changes in slices) <= 1_000
    ids = {change.id for changes in slices for change in changes if change.collection is JOBS}
    assert ids == {fire.job_id for fire in fires}


async def test_a_snapshot_that_is_left_halfway_leaves_nothing_running(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    await applied(backend.claims, *(make_fire(number) for number in range(1, 1_502)))
    before = asyncio.all_tasks()
    async with (
        opened(backend.source) as stream,
        aclosing(cast("AsyncGenerator[Any, None]", stream.snapshot())) as slices,
    ):
        async for changes in slices:
            if any(change.collection is JOBS for change in changes):
                break
    assert not [task for task in asyncio.all_tasks() - before if task.get_name().startswith("snapshot")]


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
    for collection in set(MIRRORED) - {Collection.JOURNAL}:
        assert followed.nouns(collection) == fresh.nouns(collection)
    assert followed.journal_head("default") == fresh.journal_head("default")
    assert followed.digest == fresh.digest
    assert not followed.quarantine


# Where it goes on


async def test_a_resumed_stream_goes_on_where_the_other_one_stopped(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        await mark(backend, "1")
        _, batch = await changes_until(stream, "1")
    for name in ("2", "3"):
        await mark(backend, name)
    async with opened(backend.source, batch.resume) as stream:
        await mark(backend, "4")
        assert [change.id for change in await changes_through(stream, "4")] == ["2", "3", "4"]


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
        seen += [change.id for change in await changes_through(stream, "the end")]
    assert seen == [*(f"{number} {part}" for number in range(10) for part in "ab"), "the end"]


async def test_a_stream_can_be_resumed_from_the_token_of_an_empty_batch(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        resume = (await stream.next_batch(0)).resume
    await mark(backend, "1")
    async with opened(backend.source, resume) as stream:
        assert [change.id for change in await changes_through(stream, "1")] == ["1"]


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
        _, batch = await changes_until(stream, "1")
    token = await backend.behind.outdated(batch.resume)
    async with opened(backend.source, token) as stream:
        with pytest.raises(HistoryLost):
            await stream.next_batch(PATIENCE_MS)


async def test_a_dropped_collection_is_history_lost_after_the_changes_before_it(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        await mark(backend, "1")
        await backend.behind.drop(SCHEDULES)
        await mark(backend, "2")
        assert [change.id for change in await changes_through(stream, "1")] == ["1"]
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
