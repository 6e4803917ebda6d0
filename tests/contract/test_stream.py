"""`ChangeSource` and `ChangeStream`: one total order over all mirrored collections, without a gap."""

import asyncio
from typing import cast

from hascheduler.dispatch.decisions import Requeue
from hascheduler.mirror.changes import BatchSeen, Change, JobGone, Operation
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS, MIRRORED
from hascheduler.model.job import TERMINAL, JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.stream.source import BATCH_MAX
from hascheduler.ports import AttemptOutcome
from hascheduler.schema.definition import RateLimit
from hascheduler.schema.noun import document_of
from tests.contract.backends import Backend, on
from tests.contract.checks import applied
from tests.contract.following import (
    PATIENCE_MS,
    changes_through,
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


async def test_an_insert_is_delivered_whole_and_a_delete_without_fields(backend: Backend) -> None:
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        await backend.definitions.create(make_definition("log", max_concurrency=2))
        await backend.definitions.delete("log")
        await mark(backend)
        put, delete, _ = await changes_through(stream, "the end")
    whole = document_of(make_definition("log", max_concurrency=2, rev=1))
    assert put == Change(DEFINITIONS, Operation.PUT, whole.pop("_id"), whole)
    assert delete == Change(DEFINITIONS, Operation.DELETE, "log", {})


_WHERE_THEY_SAY_SOMETHING = {
    SCHEDULES: {"missed", "cursor_offsets", "reset_at_ms"},
    JOBS: {"limit_keys", "overdue_attempt", "overdue_since_ms", "unstarted"},
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


async def test_a_write_that_changes_nothing_is_not_delivered(backend: Backend) -> None:
    await backend.jobs.submit(make_job())
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        await backend.jobs.submit(make_job())
        await backend.jobs.cancel("nobody", NOW)
        await applied(backend.claims, Requeue("a", 1, "dead"))
        await mark(backend)
        assert whats(await changes_through(stream, "the end")) == [(DEFINITIONS, "the end", False)]


async def test_of_the_journal_only_inserts_are_delivered(backend: Backend) -> None:
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        for seq in (1, 2):
            await backend.journal.insert(make_entry(seq))
        assert await backend.journal.trim("default", 1, WallMs(NOW + 1)) == 1
        await mark(backend)
        changes = await changes_through(stream, "the end")
    assert [change.id for change in changes] == [
        {"shard": "default", "seq": 1},
        {"shard": "default", "seq": 2},
        "the end",
    ]


async def test_a_batch_is_full_while_more_is_there_already(backend: Backend) -> None:
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        many = 2 * BATCH_MAX + BATCH_MAX // 2
        for start in range(0, many, 500):
            await backend.jobs.submit_many([make_job(f"job-{number}") for number in range(start, start + 500)])
        await mark(backend)
        seen, batches = 0, []
        while seen <= many:
            batch = await stream.next_batch(PATIENCE_MS)
            seen += len(batch.changes)
            batches.append(batch)
    assert [batch.is_full for batch in batches] == [len(batch.changes) == BATCH_MAX for batch in batches]
    assert batches[0].is_full
    assert not batches[-1].is_full


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
