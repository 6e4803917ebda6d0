"""Which nominal times are due: one timer per schedule, set to the next nominal time after its cursor.

A fire that was decided and has not come back yet is remembered as a promised cursor, so that it is not decided again
from the older cursor that the stream still shows.
"""

from hascheduler.dispatch.decisions import Fire
from hascheduler.dispatch.timers import Timers
from hascheduler.model.instants import WallMs
from hascheduler.model.schedule import ScheduleRef
from hascheduler.triggers import next_nominal


class Fires:
    def __init__(self) -> None:
        self._schedules: dict[str, ScheduleRef] = {}
        self._promised: dict[str, WallMs] = {}
        self._timers = Timers()

    def schedule(self, name: str) -> ScheduleRef | None:
        return self._schedules.get(name)

    def seen(self, schedule: ScheduleRef) -> None:
        self._schedules[schedule.name] = schedule
        if self._promised.get(schedule.name, -1) <= schedule.cursor_ms:
            self._promised.pop(schedule.name, None)
        self._arm(schedule)

    def gone(self, name: str) -> None:
        self._schedules.pop(name, None)
        self._promised.pop(name, None)
        self._timers.clear(name)

    def promise(self, name: str, nominal_ms: WallMs) -> None:
        """That nominal time is decided, whatever the stream still says."""
        schedule = self._schedules.get(name)
        if schedule is None or nominal_ms <= max(schedule.cursor_ms, self._promised.get(name, -1)):
            return
        self._promised[name] = nominal_ms
        self._arm(schedule)

    def forget_promises(self) -> None:
        """Back to what the stream has shown."""
        for name in list(self._promised):
            del self._promised[name]
            self._arm(self._schedules[name])

    def take_due(self, now: WallMs, limit: int) -> list[Fire]:
        """Due nominal times, earliest first, each promised from here on; of one schedule in their order."""
        fires: list[Fire] = []
        while len(fires) < limit:
            # One at a time: taking it sets the schedule's next nominal time, which may be due as well.
            due = next(self._timers.take_due(now, 1), None)
            if due is None:
                break
            name, nominal_ms = due
            fires.append(Fire(name, WallMs(nominal_ms)))
            self.promise(name, WallMs(nominal_ms))
        return fires

    def next_at(self) -> int | None:
        return self._timers.next_at()

    def _arm(self, schedule: ScheduleRef) -> None:
        after_ms = max(schedule.cursor_ms, self._promised.get(schedule.name, -1))
        nominal_ms = next_nominal(schedule.trigger, after_ms)
        if nominal_ms is None:
            self._timers.clear(schedule.name)
        else:
            self._timers.set(schedule.name, nominal_ms)
