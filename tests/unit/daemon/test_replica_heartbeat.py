"""A replica's own record, and what its echo proves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from structlog.testing import capture_logs

from hascheduler.daemon.leadership.trusted_clock import TrustedClock
from hascheduler.daemon.loop.replica_heartbeat import ReplicaHeartbeat
from hascheduler.errors import StoreUnavailable
from hascheduler.model.values.instants import WallMs
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.schema.replica import ReplicaStatus
from tests.factories import make_replica
from tests.unit.daemon.doubles import CONFIG, HandClock, running


class Board:
    """`hascheduler.ports.ReplicaBoard` that keeps what is written, or is away."""

    def __init__(self) -> None:
        self.written: list[ReplicaStatus] = []
        self.removed: list[str] = []
        self.news = asyncio.Event()
        self.away = False
        self.time: WallMs | None = None

    async def beat(self, status: ReplicaStatus) -> WallMs | None:
        self.written.append(status)
        self.news.set()
        if self.away:
            raise StoreUnavailable("no answer")
        return self.time

    async def remove(self, replica_id: str) -> None:
        if self.away:
            raise StoreUnavailable("no answer")
        self.removed.append(replica_id)

    async def next(self) -> ReplicaStatus:
        async with asyncio.timeout(10):
            await self.news.wait()
        self.news.clear()
        return self.written[-1]


def status(beat: int, id: str = CONFIG.replica_id) -> ReplicaStatus:
    return make_replica(id, beat=beat, stream_lag_ms=None)


def trusted(clock: HandClock) -> TrustedClock:
    return TrustedClock(clock, CONFIG.clock_skew_max_ms)


@asynccontextmanager
async def heartbeat() -> AsyncIterator[tuple[ReplicaHeartbeat, Board, HandClock]]:
    board, clock = Board(), HandClock()
    one = ReplicaHeartbeat(CONFIG, board, trusted(clock))
    async with running(one.run(status)):
        yield one, board, clock


async def test_the_return_of_a_beat_measures_the_lag_and_shows_the_mirror_fresh() -> None:
    async with heartbeat() as (one, board, clock):
        written = await board.next()
        assert written.beat == 1
        clock.now += 120
        one.seen(written)
        assert (one.fresh, one.lag_ms) == (True, 120)
        clock.now += CONFIG.stale_after_ms - 1
        assert one.fresh
        clock.now += 1
        assert not one.fresh


async def test_another_replicas_beat_and_its_own_older_one_prove_nothing() -> None:
    async with heartbeat() as (one, board, clock):
        await board.next()
        one.seen(status(7, id="r2"))
        assert not one.fresh
        one.seen(status(5))
        clock.now += CONFIG.stale_after_ms
        one.seen(status(5))
        one.seen(status(4))
        assert not one.fresh


async def test_a_replica_whose_beats_stop_is_silent_after_three_periods() -> None:
    async with heartbeat() as (one, board, clock):
        one.seen(await board.next())
        one.seen(status(7, id="r2"))
        clock.now += CONFIG.stale_after_ms - 1
        one.seen(status(2))
        assert not one.is_silent("r2")
        clock.now += 1
        assert one.is_silent("r2")
        assert not one.is_silent(CONFIG.replica_id)
        clock.now += CONFIG.stale_after_ms
        assert not one.is_silent("r2"), "nobody is said to be dead where the stream itself is silent"
        one.seen(status(3))
        assert one.is_silent("r2")
        one.gone("r2")
        assert not one.is_silent("r2"), "who left is forgotten"


async def test_other_zone_data_are_warned_of_once() -> None:
    one = ReplicaHeartbeat(CONFIG, Board(), trusted(HandClock()))
    with capture_logs() as logged:
        for beat in (1, 2):
            one.seen(status(beat).model_copy(update={"zone_data": ZONE_DATA_VERSION}))
            one.seen(status(beat, id="r2").model_copy(update={"zone_data": ZONE_DATA_VERSION}))
            one.seen(status(beat, id="r3").model_copy(update={"zone_data": "2025b"}))
            one.seen(status(beat, id="of 0.2.0"))
    [line] = logged
    assert (line["event"], line["log_level"]) == ("zone_data_differ", "warning")
    assert (line["other"], line["own"], line["others"]) == ("r3", ZONE_DATA_VERSION, "2025b")


async def test_a_database_that_is_away_does_not_end_the_beats() -> None:
    async with heartbeat() as (one, board, _):
        first = await board.next()
        board.away = True
        one.barrier()
        assert (await board.next()).beat == first.beat + 1
        board.away = False
        one.barrier()
        assert (await board.next()).beat == first.beat + 2
