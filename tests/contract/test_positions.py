"""The position of each change is the same in every stream; fetches and snapshots have none."""

from typing import Any

from hascheduler.mirror.changes import Change
from hascheduler.model.collection import Collection
from hascheduler.model.event import is_position
from hascheduler.ports import ChangeStream
from tests.contract.backends import Backend, on
from tests.contract.following import (
    PATIENCE_MS,
    changes_through,
    changes_until,
    opened,
    opened_at_the_end,
    read_snapshot,
)
from tests.contract.writing import mark, write_everything
from tests.factories import make_job

# Not mongomock: it has no change streams.
pytestmark = on("memory", "pymongo", "motor")


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


async def test_two_streams_give_the_same_changes_and_positions(backend: Backend) -> None:
    async with opened(backend.source) as one, opened(backend.source) as other:
        await write_everything(backend)
        await mark(backend)
        changes, again = await changes_through(one, "the end"), await changes_through(other, "the end")
    assert changes == again
    assert positions(changes) == positions(again)


async def test_a_resumed_stream_gives_the_positions_that_the_other_would_have_given(backend: Backend) -> None:
    async with opened_at_the_end(backend.source, backend.definitions) as stream:
        resume = (await stream.next_batch(0)).resume
        await write_everything(backend)
        await mark(backend)
        expected = positions(await changes_through(stream, "the end"))
    async with opened(backend.source, resume) as stream:
        assert positions(await changes_through(stream, "the end")) == expected


async def test_a_resumed_stream_has_the_position_of_its_token(backend: Backend) -> None:
    async with opened(backend.source) as stream:
        await mark(backend, "1")
        _, batch = await changes_until(stream, "1")
    async with opened(backend.source, batch.resume) as stream:
        await mark(backend, "2")
        assert (await _next(stream)).position > batch.position


async def test_snapshots_and_fetches_have_no_position(backend: Backend) -> None:
    await backend.jobs.submit(make_job("a"))
    async with opened(backend.source) as stream:
        snapshot = await read_snapshot(stream)
    fetched = await backend.source.fetch(Collection.JOBS, ["a", "nobody"])
    assert {change.position for change in [*snapshot, *fetched]} == {""}


async def _next(stream: ChangeStream) -> Change:
    batch = await stream.next_batch(PATIENCE_MS)
    return batch.changes[0]
