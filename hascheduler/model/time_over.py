"""When the time of an attempt is over, and with what error it has failed then; the same for all processors."""

from dataclasses import dataclass

from hascheduler.model.definition import Definition
from hascheduler.model.durations import format_duration
from hascheduler.model.instants import WallMs
from hascheduler.model.retry import tries_text


@dataclass(frozen=True, slots=True)
class TimeOver:
    """A ``final`` one is the end of the job's total time: it is not tried again."""

    at_ms: WallMs
    error: str
    final: bool = False


def time_over(
    rules: Definition, began_ms: int, first_started_at_ms: int | None, *, failures: int, losses: int
) -> TimeOver | None:
    """The nearer one of the timeout of an attempt that began then and the end of the total one; None: no limit.

    ``failures`` and ``losses`` are those before it.
    """
    over = None
    if rules.timeout_ms is not None:
        over = TimeOver(WallMs(began_ms + rules.timeout_ms), f"timed out after {format_duration(rules.timeout_ms)}")
    end_ms = rules.end_of(first_started_at_ms)
    if end_ms is not None and (over is None or end_ms < over.at_ms):
        total = format_duration(rules.total_timeout_ms or 0)
        tries = tries_text(failures + losses + 1, losses)
        over = TimeOver(WallMs(end_ms), f"timed out after {total} in all ({tries})", final=True)
    return over
