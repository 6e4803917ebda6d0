"""A replica's own record, and what its echo proves; of three readings of the time, two that agree are right."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from hascheduler.daemon.leadership.trusted_clock import TrustedClock
from hascheduler.daemon.loop.replica_heartbeat import ReplicaHeartbeat
from hascheduler.errors import StoreUnavailable
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.schema.replica import ReplicaStatus
from tests.factories import make_replica
from tests.unit.daemon.doubles import CONFIG, HandClock, comes, running


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
        await comes(self.news)
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


async def test_a_replica_takes_its_record_away_if_it_can() -> None:
    board = Board()
    one = ReplicaHeartbeat(CONFIG, board, trusted(HandClock()))
    await one.leave()
    assert board.removed == [CONFIG.replica_id]
    board.away = True
    await one.leave()


SKEW_MAX_MS = 5_000


class Machine:
    """`hascheduler.ports.Clock` that moves only by hand, and can be set; and a database beside it."""

    def __init__(self, wall_off_ms: int = 0) -> None:
        self.true = 1_700_000_000_000
        self.wall_off_ms = wall_off_ms
        self.database_off_ms = 0

    def wall_ms(self) -> WallMs:
        return WallMs(self.true + self.wall_off_ms)

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.true - 1_699_999_000_000)

    def beat(self, clock: TrustedClock, took_ms: int = 0) -> None:
        """A second later; the database reads its clock as the exchange begins."""
        self.true += 1_000
        began_at, database_ms = self.mono_ms(), WallMs(self.true + self.database_off_ms)
        self.true += took_ms
        clock.compared(database_ms, began_at, self.mono_ms())

    def off_ms(self, clock: TrustedClock) -> int:
        return clock.wall_ms() - self.true


H = 3 * 3_600_000
"""How far ahead the clocks are, in the stories below; with another sign, how far behind."""
Story = tuple[tuple[int, int, int | None], ...]


@pytest.mark.parametrize("sign", [1, -1], ids=["ahead", "behind"])
@pytest.mark.parametrize("beats", [1, 5], ids=["at once", "five beats later"])
@pytest.mark.parametrize(
    "story",
    [
        # How far off the wall clock is, the database's, and then the time (None: unknown).
        pytest.param(((H, H, H), (H, 0, H), (0, 0, 0)), id="the database's first"),
        pytest.param(((H, H, H), (0, H, H), (0, 0, 0)), id="the own first"),
        pytest.param(((H, H, H), (0, 0, 0)), id="both at once"),
        pytest.param(((0, 0, 0), (0, H, 0), (H, H, H), (H, 0, H), (0, 0, 0)), id="there and back"),
        pytest.param(((0, 0, 0), (H, 0, 0), (H, H, H), (0, H, H), (0, 0, 0)), id="there and back, the own first"),
        pytest.param(((H, H, H), (H, H // 2, H), (H, 0, H), (0, 0, 0)), id="the database's in two steps"),
        pytest.param(((H, H, H), (H // 2, H, H), (0, H, H), (0, 0, 0)), id="the own in two steps"),
        pytest.param(
            ((H, H, H), (H, H // 2, H), (H // 2, H // 2, H // 2), (H // 2, 0, H // 2), (0, 0, 0)), id="by turns"
        ),
        pytest.param(((H, H, H), (H, 0, H), (2 * H, 0, H), (0, 0, 0)), id="the own wrong again in between"),
        pytest.param(((H, H, H), (H, 0, H), (H, -H, H), (H, 0, H), (0, 0, 0)), id="between two primaries"),
        pytest.param(((H, H, H), (0, -H, None), (0, 0, 0)), id="each to another time"),
        pytest.param(((H, H, H), (0, -H, None), (-H, -H, -H), (0, 0, 0)), id="each to another time, then alike"),
        pytest.param(((H, 0, None), (0, 0, 0)), id="started between, the database's first"),
        pytest.param(((0, H, None), (0, 0, 0)), id="started between, the own first"),
        pytest.param(((H, 0, None), (H, H, H), (0, H, H), (0, 0, 0)), id="started between, wrong together"),
        pytest.param(((H, 0, None), (H, -H, None), (0, 0, 0)), id="started between, and the database's set again"),
    ],
)
def test_clocks_that_agree_again_are_followed_in_whatever_order_they_were_corrected(
    story: Story, sign: int, beats: int
) -> None:
    machine = Machine()
    clock = TrustedClock(machine, SKEW_MAX_MS)
    for step, (wall_off_ms, database_off_ms, time_off_ms) in enumerate(story):
        machine.wall_off_ms, machine.database_off_ms = sign * wall_off_ms, sign * database_off_ms
        for _ in range(beats):
            machine.beat(clock)
            assert clock.is_trusted() is (time_off_ms is not None), step
            assert time_off_ms is None or machine.off_ms(clock) == sign * time_off_ms, step
