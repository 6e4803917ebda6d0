"""The time of a replica: nominal times are decided by it, and an early fire can't be undone.

No wall clock is trusted alone. At each beat there are three readings of the time: this machine's wall clock, the
database's, and the time so far, which went on with the monotonic clock since the last beat. Two that agree are right::

    wall, database          the time goes on by the wall clock
    time so far, database   the wall clock was set: it is not followed
    time so far, wall       the database's clock was set, or a new primary has another one: it is not followed, and its
                            offset is ignored for as long as the wall clock and the database differ; if instead it has
                            drifted away bit by bit, there is no telling which is right
    none                    as at a start with a wrong clock: such a replica does not lead

The first line comes first. Two clocks that agree now outweigh the time so far, which may come from two clocks that were
wrong together and have been corrected one after the other. Then the time goes back, at once; the cursors of schedules
keep what is decided.

Between two beats the time is as good as the monotonic clock. Late fires are caught up with, early ones can't be taken
back; so if the time is unknown, nothing is decided.
"""

import structlog

from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.ports import Clock

log = structlog.get_logger(__name__)


class TrustedClock:
    """`hascheduler.ports.Clock`, and the owner of the time so far. Until `compared` it is the machine's.

    A *level* is how far a wall clock is above this machine's monotonic one: it changes only when a clock is set.
    """

    def __init__(self, machine: Clock, skew_max_ms: int) -> None:
        self._machine = machine
        self._skew_max_ms = skew_max_ms
        self._level_ms: int | None = None
        self._database_level_ms: tuple[int, int] | None = None
        self._database_off_ms = 0
        self.wrong_because = ""
        """Why the time is unknown here; "" as long as two of the three agree."""
        self._reported = ""

    @classmethod
    def over(cls, machine: Clock, skew_max_ms: int) -> "TrustedClock":
        """Return ``machine`` as a trusted clock: itself if it is one."""
        return machine if isinstance(machine, cls) else cls(machine, skew_max_ms)

    def wall_ms(self) -> WallMs:
        if self._level_ms is None:
            return self._machine.wall_ms()
        return WallMs(self._machine.mono_ms() + self._level_ms)

    def mono_ms(self) -> MonoMs:
        return self._machine.mono_ms()

    def is_trusted(self) -> bool:
        return not self.wrong_because

    def compared(self, database_ms: WallMs, began_at: MonoMs, ended_at: MonoMs) -> None:
        """Take the time that the database read between those two moments; the longer that took, the less it proves."""
        wall = self._machine.wall_ms() - self._machine.mono_ms()
        before, self._database_level_ms = self._database_level_ms, (database_ms - ended_at, database_ms - began_at)
        if all(abs(wall - level) <= self._skew_max_ms for level in self._database_level_ms):
            self._database_off_ms = 0
        off_ms, so_far = self._off(wall), self._level_ms
        if not off_ms:
            behind_ms = -self._database_off_ms
            self._go_on(wall, f"the database's clock is {behind_ms} ms behind" if behind_ms else "")
        elif so_far is not None and not self._off(so_far):
            self._go_on(so_far, f"the clock was set, and is now {off_ms} ms ahead")
        elif self._may_learn(wall) and self._was_set(before):
            self._database_off_ms -= off_ms
            self._go_on(wall, f"the database's clock was set, or a new primary's clock is {off_ms} ms behind")
        else:
            self.wrong_because = f"this clock is {off_ms} ms ahead of the database's"
            self._log_change(self.wrong_because)

    def _go_on(self, level_ms: int, remark: str) -> None:
        self._level_ms, self.wrong_because = level_ms, ""
        self._log_change(remark)

    def _off(self, level_ms: int) -> int:
        """Return how far that level is ahead of the database's (behind: negative), if that is too far; else 0."""
        assert self._database_level_ms is not None
        low, high = (level - self._database_off_ms for level in self._database_level_ms)
        off_ms = level_ms - min(max(level_ms, low), high)
        return off_ms if abs(off_ms) > self._skew_max_ms else 0

    def _may_learn(self, wall: int) -> bool:
        """Return True if the time is known without the database: its clock alone has changed."""
        so_far = None if self.wrong_because else self._level_ms
        return so_far is not None and abs(wall - so_far) <= self._skew_max_ms

    def _was_set(self, before: tuple[int, int] | None) -> bool:
        """Return True if the database's clock has jumped since the comparison before, not only run at another rate."""
        assert self._database_level_ms is not None
        if before is None:
            return False
        low, high = self._database_level_ms
        return low - before[1] > self._skew_max_ms or before[0] - high > self._skew_max_ms

    def _log_change(self, remark: str) -> None:
        if remark and not self._reported:
            log.warning("clock_skew_detected", reason=remark, believed=not self.wrong_because)
        elif self._reported and not remark:
            log.info("clock_skew_resolved")
        self._reported = remark
