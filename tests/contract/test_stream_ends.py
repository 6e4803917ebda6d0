"""`ChangeSource` and `ChangeStream`: where a stream begins, resumes and ends, and the position of each change."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import pytest

from hascheduler.errors import HistoryLost, InvariantBroken, StoreUnavailable
from hascheduler.mirror.changes import Change
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import MIRRORED
from hascheduler.model.event import is_position
from hascheduler.model.job import LIVE
from hascheduler.model.token import digest_of, session_id
from tests.contract.backends import Backend, on
from tests.contract.checks import applied
from tests.contract.following import (
    PATIENCE_MS,
    a_start_is_gap_free,
    changes_through,
    changes_until,
    follow_into,
    mark,
    opened,
    opened_at_the_end,
    read_snapshot,
    write_everything,
)
from tests.contract.job_states import dispatch, finish
from tests.factories import NOW, make_entry, make_fire, make_job, make_schedule, make_token

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


def positions(changes: list[Change]) -> dict[str, Any]:
    return {change.position: (change.collection, change.id) for change in changes}


async def test_each_change_has_a_position_of_its_own_and_they_grow(backend: Backend) -> None:
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        await write_everything(backend)
        await backend.jobs.submit_many([make_job(f"job-{number}") for number in range(50)])
        await mark(backend)
        changes, batch = await changes_until(stream, "the end")
    found = [change.position for change in changes]
    assert all(is_position(position) for position in found)
    assert found == sorted(set(found))
    assert found[-1] == batch.position


async def test_a_resumed_stream_gives_the_positions_that_the_other_would_have_given(backend: Backend) -> None:
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        resume = (await stream.next_batch(0)).resume
        await write_everything(backend)
        await mark(backend)
        expected = positions(await changes_through(stream, "the end"))
    async with opened(backend.source, resume) as stream:
        assert positions(await changes_through(stream, "the end")) == expected


async def test_a_mirror_learns_of_new_sessions_and_of_those_that_ended_with_their_parent(backend: Backend) -> None:
    session = make_token(session_id("parent", "1"), expires_at_ms=NOW + 1, session_of=digest_of("parent"))
    await backend.tokens.create(make_token("parent"))
    mirror = Mirror()
    async with opened(backend.source) as stream:
        mirror.fold(await read_snapshot(stream))
        await backend.tokens.begin_session(session, 1, NOW)
        await mark(backend)
        await follow_into(mirror, backend.source, stream, "the end")
        assert mirror.nouns(Collection.TOKENS)[session.digest] == session
        await backend.tokens.revoke("parent", None)
        await mark(backend, "the very end")
        await follow_into(mirror, backend.source, stream, "the very end")
    assert mirror.nouns(Collection.TOKENS) == {}
