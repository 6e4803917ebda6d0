"""`ChangeSource` and `ChangeStream`: one total order without a gap; where a stream begins, resumes and ends."""

import asyncio
from typing import Any, cast

import pytest

from hascheduler.errors import HistoryLost, InvariantBroken, StoreUnavailable
from hascheduler.mirror.changes import BatchSeen, Change, JobGone, Operation
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS, MIRRORED
from hascheduler.model.event import is_position
from hascheduler.model.job import LIVE, TERMINAL, JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome
from hascheduler.schema.definition import RateLimit
from tests.contract.backends import Backend, on
from tests.contract.following import (
    PATIENCE_MS,
    a_start_is_gap_free,
    changes_through,
    changes_until,
    follow_into,
    mark,
    opened,
    opened_at_the_end,
    put,
    read_snapshot,
    whats,
    write_everything,
)
from tests.contract.job_states import bring_to, dispatch, finish, start
from tests.factories import NOW, make_definition, make_entry, make_job, make_lane, make_schedule

# Not mongomock: it has no change streams.
pytestmark = on("memory", "pymongo", "motor")

JOBS, SCHEDULES, DEFINITIONS = Collection.JOBS, Collection.SCHEDULES, Collection.DEFINITIONS


# What is delivered


async def test_changes_come_in_the_order_in_which_they_were_made(backend: Backend) -> None:
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        for number in range(10):
            await backend.jobs.submit(make_job(f"job-{number}"))
            await backend.schedules.create(make_schedule(f"schedule-{number}"))
            await put(backend.definitions, make_definition("log"))
            await backend.schedules.delete(f"schedule-{number}")
        await mark(backend)
        changes = await changes_through(stream, "the end")
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


_WHERE_THEY_SAY_SOMETHING = {
    SCHEDULES: {"missed", "cursor_offsets", "reset_at_ms"},
    JOBS: {"last_error", "limit_keys", "overdue_attempt", "overdue_since_ms", "unstarted"},
}
"""Fields that are left out elsewhere."""


async def test_only_lean_fields_travel_in_the_stream_in_the_snapshot_and_in_a_fetch(backend: Backend) -> None:
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        await write_everything(backend)
        await mark(backend)
        changes = await changes_through(stream, "the end")
        snapshot = await read_snapshot(stream)
    fetched = list(await backend.source.fetch(SCHEDULES, ["tick"]))
    assert {change.collection for change in changes} == set(MIRRORED)
    for change in [*changes, *snapshot, *fetched]:
        assert set(change.fields) <= set(LEAN_FIELDS[change.collection])
    for change in [*snapshot, *fetched]:
        assert change.operation is Operation.PUT
        assert {*change.fields, *_WHERE_THEY_SAY_SOMETHING.get(change.collection, ())} == set(
            LEAN_FIELDS[change.collection]
        )


async def test_the_event_of_a_failed_try_has_its_error_even_if_it_is_that_of_the_try_before(backend: Backend) -> None:
    mirror, again = Mirror(), AttemptOutcome(JobState.FAILED, error="$no luck", retry_at_ms=WallMs(NOW))
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        await backend.jobs.submit(make_job())
        for attempt in (1, 2):
            await dispatch(backend, attempt=attempt)
            await start(backend, attempt=attempt)
            await finish(backend, attempt=attempt, outcome=again)
        await dispatch(backend, attempt=3)
        await backend.work.give_back("a", 3, "p1", "it stops", WallMs(NOW))
        await backend.jobs.cancel("a", WallMs(NOW))
        await mark(backend)
        events = mirror.fold(await changes_through(stream, "the end")).events
    returned = [(event.attempt, event.error) for event in events if event.type == "returned"]
    assert returned == [(1, "$no luck"), (2, "$no luck"), (3, None)]


async def test_a_partly_edited_field_is_delivered_whole(backend: Backend) -> None:
    """Its lean fields have parts, and a mirror has no use for a part."""
    await backend.definitions.create(
        make_definition("log", rate_limit=RateLimit(count=5, per_ms=1_000), resources=(("cpu", 2),))
    )
    await backend.lanes.create(make_lane("slow", promote_after_ms=tuple(range(1, 12))))
    mirror = Mirror()
    async with opened(backend.source) as stream:
        mirror.fold(await read_snapshot(stream))
        definition = make_definition(
            "log", rate_limit=RateLimit(count=6, per_ms=1_000), resources=(("cpu", 2), ("gpu", 1))
        )
        lane = make_lane("slow", promote_after_ms=(1, 2, 9, *range(4, 12)))
        await backend.definitions.replace(definition, 1)
        await backend.lanes.replace(lane, 1)
        await mark(backend)
        await follow_into(mirror, backend.source, stream, "the end")
    assert mirror.nouns(DEFINITIONS)["log"] == definition.model_copy(update={"rev": 2})
    assert mirror.nouns(Collection.LANES)["slow"] == lane.model_copy(update={"rev": 2})


async def test_a_cancelled_wait_loses_nothing(backend: Backend) -> None:
    seen: list[object] = []
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        for number in range(30):
            waiting = asyncio.create_task(stream.next_batch(PATIENCE_MS))
            await asyncio.sleep(0)
            await backend.jobs.submit(make_job(f"{number:02}"))
            waiting.cancel()
            [answer] = await asyncio.gather(waiting, return_exceptions=True)
            if not isinstance(answer, BaseException):
                seen += [change.id for change in answer.changes]
        await mark(backend)
        seen += [change.id for change in await changes_through(stream, "the end")]
    assert seen == [*(f"{number:02}" for number in range(30)), "the end"]


# Fetching


async def test_a_fetch_puts_existing_documents_and_deletes_missing_ones(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING, "a")
    await bring_to(backend, JobState.SUCCEEDED, "b")
    changes = {change.id: change for change in await backend.source.fetch(JOBS, ["b", "nobody", "a"])}
    assert changes.keys() == {"a", "b", "nobody"}
    assert (changes["a"].operation, changes["a"].fields["state"]) == (Operation.PUT, JobState.RUNNING)
    # Finished ones too: only a snapshot leaves them out.
    assert (changes["b"].operation, changes["b"].fields["state"]) == (Operation.PUT, JobState.SUCCEEDED)
    assert changes["nobody"] == Change(JOBS, Operation.DELETE, "nobody", {})


async def test_a_fetch_of_a_batch_tells_whether_any_of_its_jobs_is_live_and_of_one_that_ended_badly(
    backend: Backend,
) -> None:
    for batch, states in BATCHES.items():
        for number, state in enumerate(states):
            job_id = f"{batch}-{number}"
            await backend.jobs.submit(make_job(job_id, batch=batch))
            if state is JobState.CANCELLED:
                await backend.jobs.cancel(job_id, WallMs(NOW + 10))
            elif state in TERMINAL:
                await dispatch(backend, job_id)
                await start(backend, job_id)
                await finish(backend, job_id, outcome=AttemptOutcome(state, error="it broke"))
    await bring_to(backend, JobState.FAILED, "a")
    read = await backend.source.fetch(JOBS, [*BATCHES, "batch:nobody", "a"])
    mirror = Mirror()
    for id in (*BATCHES, "batch:nobody", "a"):
        mirror.want(JOBS, id)
    facts = mirror.fold_fetched(mirror.fold([]).wanted, read).facts
    seen = {fact.batch: (fact.is_live, fact.failed) for fact in facts if isinstance(fact, BatchSeen)}
    assert seen == {
        "batch:going on": (True, None),
        "batch:going on badly": (True, ("batch:going on badly-1", JobState.FAILED)),
        "batch:well": (False, None),
        "batch:badly": (False, ("batch:badly-0", JobState.CANCELLED)),
        "batch:nobody": (False, None),
    }
    assert [fact for fact in facts if isinstance(fact, JobGone)] == [JobGone("a", JobState.FAILED, NOW + 30)]


BATCHES = {
    "batch:going on": (JobState.PENDING, JobState.SUCCEEDED),
    "batch:going on badly": (JobState.PENDING, JobState.FAILED),
    "batch:well": (JobState.SUCCEEDED, JobState.SUCCEEDED),
    "batch:badly": (JobState.CANCELLED, JobState.FAILED, JobState.SUCCEEDED),
}


async def test_a_snapshot_has_the_jobs_with_few_dependencies_and_those_with_many(backend: Backend) -> None:
    counts = (0, 1, 19, 20, 21, 22, 300)
    for count in counts:
        names = tuple(f"d{number}" for number in range(count))
        await backend.jobs.submit(make_job(f"waits-{count}", depends_on=names, waits_for=names))
    stream = await backend.source.open(None)
    snapshot = [change async for some in stream.snapshot() for change in some if change.collection is JOBS]
    await stream.close()
    found = {change.id: len(cast(list[str], change.fields["waits_for"])) for change in snapshot}
    assert found == {f"waits-{count}": count for count in counts}
    assert len(snapshot) == len(counts)


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
