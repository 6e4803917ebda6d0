"""The time axis: in seconds, minutes or hours, as the length of the run asks for."""

from collections.abc import Sequence
from dataclasses import dataclass

from hascheduler.simulate.outcome import Outcome

_UNITS = ((3 * 3_600_000, 3_600_000, "hours"), (300_000, 60_000, "minutes"), (0, 1_000, "seconds"))


@dataclass(frozen=True, slots=True)
class TimeScale:
    """``end`` is the end of the longest run, in ``unit``."""

    unit_ms: int
    unit: str
    end: float

    def of(self, at_ms: int) -> float:
        return at_ms / self.unit_ms


def time_scale(outcomes: Sequence[Outcome]) -> TimeScale:
    """Long enough for all of them; a rest in which nothing is left to happen is left out."""
    end_ms = max(1, *(_last_ms(outcome) for outcome in outcomes))
    unit_ms, unit = next((ms, name) for least, ms, name in _UNITS if end_ms >= least)
    return TimeScale(unit_ms, unit, end_ms / unit_ms)


def _last_ms(outcome: Outcome) -> int:
    is_over = all(record.finished_at_ms is not None for record in outcome.jobs)
    return max((record.finished_at_ms or 0 for record in outcome.jobs), default=0) if is_over else outcome.ended_at_ms
