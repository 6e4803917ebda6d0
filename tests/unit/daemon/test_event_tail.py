"""From the writes of a database to the log of events, by way of a stream and its fold."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from hascheduler.daemon.outbound import event_log as witness_module
from hascheduler.daemon.outbound.event_log import EventLog, EventTail
from hascheduler.dispatch.decisions import Dispatch, Requeue
from hascheduler.errors import StoreUnavailable
from hascheduler.mirror.changes import Change
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.event import Event
from hascheduler.ports import ChangeSource, ChangeStream, NewEvents
from hascheduler.testing.memory.claims import MemoryClaimStore
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.jobs import MemoryJobStore
from hascheduler.testing.memory.stream import MemoryChangeSource
from tests.factories import NOW, make_job
from tests.unit.daemon.doubles import running
from tests.unit.daemon.happenings import ALL

JOBS = Collection.JOBS


class Refusing:
    """A `ChangeSource` that can't be asked for documents, the first ``times``."""

    def __init__(self, source: ChangeSource, times: int) -> None:
        self._source = source
        self.open = source.open
        self.times = times

    async def fetch(self, collection: Collection, ids: Sequence[str]) -> Sequence[Change]:
        if self.times > 0:
            self.times -= 1
            raise StoreUnavailable("not now")
        return await self._source.fetch(collection, ids)


class Scene:
    """A database, and a replica's way from its stream to the log: one `turn` a batch."""

    def __init__(self, *, refusals: int = 0) -> None:
        connection = MemoryConnection(MemoryDatabase())
        self.database = connection.database
        self.jobs = MemoryJobStore(connection, 600_000)
        self.claims = MemoryClaimStore(connection, 600_000)
        self.source = MemoryChangeSource(connection)
        self.mirror = Mirror()
        self.position = ""
        self.complete = False
        self.log = EventLog()
        self.tail = EventTail(self.log, cast(Any, self), Refusing(self.source, refusals))
        self.stream: ChangeStream | None = None

    async def turn(self) -> None:
        """One batch of the stream, as the feeder has it."""
        if self.stream is None:
            self.stream = await self.source.open(None)
        batch = await self.stream.next_batch(0)
        folded = self.mirror.fold(batch.changes)
        self.position = batch.position or self.position
        self.tail.look(folded.events)

    async def begin(self) -> None:
        await self.jobs.submit(make_job("a marker"))
        await self.turn()
        self.complete = True
        await self.turn()
        assert self.log.is_open

    def events(self) -> list[Event]:
        return [self.log.at(place) for place in range(self.log.first, self.log.end)]

    def types(self, job: str = "j") -> list[str]:
        return [event.type.value for event in self.events() if event.job == job]

    async def events_and_one_more(self) -> list[Event]:
        """All, once there is an event that is not there yet; the tail runs meanwhile."""
        async with running(self.tail.run()):
            with self.log.follow(None, ALL) as follower:
                events = await follower.next(10_000)
                assert isinstance(events, NewEvents)
                assert events.events
        return self.events()


async def test_the_log_is_open_as_soon_as_the_mirror_is_complete() -> None:
    """Not only with the next batch: a client that follows from now on would be sent to list all jobs again."""
    scene = Scene()
    await scene.jobs.submit(make_job("before"))
    await scene.turn()
    scene.complete = True
    scene.tail.look([])
    assert scene.log.is_open
    assert scene.log.position == scene.position


async def test_what_a_job_goes_through_in_one_batch_gives_an_event_a_step() -> None:
    scene = Scene()
    await scene.begin()
    await scene.jobs.submit(make_job("j"))
    await scene.claims.apply([Dispatch("j", 1, "p")], NOW, majority=True)
    await scene.claims.apply([Requeue("j", 1, "lost")], NOW, majority=True)
    await scene.jobs.reprioritize("j", 9)
    await scene.jobs.cancel("j", NOW)
    await scene.turn()
    assert scene.types() == ["submitted", "dispatched", "returned", "reprioritized", "cancelled"]
    assert [event.id for event in scene.events()] == sorted({event.id for event in scene.events()})


async def test_a_revived_job_is_read_to_say_whose_it_is_and_what_came_later_waits() -> None:
    scene = Scene()
    await scene.begin()
    await scene.jobs.submit(make_job("j"))
    await scene.turn()
    scene.database.update(JOBS, scene.database.find(JOBS, "j") or {}, {"state": "failed", "rev": 2, "attempt": 1})
    await scene.turn()
    await scene.jobs.retry("j", NOW)
    await scene.turn()
    await scene.jobs.submit(make_job("k"))
    await scene.turn()
    assert scene.types() == ["submitted", "failed"]
    assert scene.types("k") == []
    events = await scene.events_and_one_more()
    assert (events[2].type, events[2].tenant, events[2].definition, events[2].attempt) == (
        "revived",
        "tenant",
        "log",
        2,
    )
    assert [event.job for event in events[2:]] == ["j", "k"]


async def test_an_end_that_a_fetch_was_ahead_of_says_whose_it_was_and_which_attempt() -> None:
    scene = Scene(refusals=1)
    await scene.begin()
    await scene.jobs.submit(make_job("j"))
    await scene.turn()
    await scene.claims.apply([Dispatch("j", 1, "p")], NOW, majority=True)
    await scene.turn()
    await scene.jobs.cancel("j", NOW)
    scene.mirror.want(JOBS, "j")
    asked = scene.mirror.fold([]).wanted
    scene.mirror.fold_fetched(asked, await scene.source.fetch(JOBS, ["j"]))
    await scene.turn()
    cancelled = (await scene.events_and_one_more())[-1]
    assert (cancelled.type, cancelled.tenant, cancelled.attempt) == ("cancelled", "tenant", 1)


@pytest.mark.parametrize("why", ["it is deleted", "it can't be read", "it makes no sense"])
async def test_an_event_whose_job_is_unknown_goes_out_as_it_is(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness_module, "_AGAIN_S", 0)
    scene = Scene(refusals=99 if why == "it can't be read" else 0)
    await scene.begin()
    scene.database.insert(JOBS, {"_id": "j", "state": "running", "rev": 4})
    await scene.turn()
    scene.database.update(JOBS, scene.database.find(JOBS, "j") or {}, {"state": "failed", "rev": 5})
    if why == "it is deleted":
        scene.database.delete(JOBS, "j")
    await scene.turn()
    [event] = await scene.events_and_one_more()
    assert (event.type, event.job, event.is_identified) == ("failed", "j", False)


async def test_more_than_may_wait_goes_out_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness_module, "WAITING_MAX", 2)
    scene = Scene()
    await scene.begin()
    for name in "abc":
        scene.database.insert(JOBS, {"_id": name, "state": "running", "rev": 4})
        scene.database.update(JOBS, scene.database.find(JOBS, name) or {}, {"state": "failed", "rev": 5})
        await scene.turn()
    assert [event.job for event in scene.events()] == ["a", "b", "c"]


async def test_a_resync_ends_what_waits_and_the_tail_starts_over() -> None:
    scene = Scene()
    await scene.begin()
    scene.database.insert(JOBS, {"_id": "j", "state": "running", "rev": 4})
    scene.database.update(JOBS, scene.database.find(JOBS, "j") or {}, {"state": "failed", "rev": 5})
    await scene.turn()
    scene.complete, scene.mirror = False, Mirror()
    scene.tail.restarted()
    assert not scene.log.is_open
    await scene.jobs.submit(make_job("meanwhile"))
    await scene.turn()
    scene.complete = True
    await scene.jobs.submit(make_job("after"))
    await scene.turn()
    assert [event.job for event in scene.events()] == ["after"]
