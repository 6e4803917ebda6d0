"""`TrustedClock`: of three readings of the time, two that agree are right."""

import pytest

from hascheduler.daemon.leadership.trusted_clock import TrustedClock
from hascheduler.model.values.instants import MonoMs, WallMs

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
