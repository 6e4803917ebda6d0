"""How the start of each job differs between two runs of the same work."""

from dataclasses import dataclass

from hascheduler.simulate.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Differences:
    """Jobs that start sooner, later, at the same time, or in one of the runs only.

    ``most_sooner`` and ``most_later`` are the (job, by how many ms) that gain and lose most; None: there is none.
    """

    sooner: int
    later: int
    same: int
    in_one_only: int
    most_sooner: tuple[str, int] | None
    most_later: tuple[str, int] | None


def differences(first: Outcome, second: Outcome) -> Differences:
    """What ``second`` changes; of equals the job that was submitted first is named."""
    before = {record.job.id: record.started_at_ms for record in first.jobs}
    shifts: list[tuple[str, int]] = []
    in_one_only = 0
    for record in second.jobs:
        was, now = before.get(record.job.id), record.started_at_ms
        if was is not None and now is not None:
            shifts.append((record.job.id, now - was))
        elif was is not now:
            in_one_only += 1
    sooner = [(job, -by_ms) for job, by_ms in shifts if by_ms < 0]
    later = [(job, by_ms) for job, by_ms in shifts if by_ms > 0]
    return Differences(
        sooner=len(sooner),
        later=len(later),
        same=len(shifts) - len(sooner) - len(later),
        in_one_only=in_one_only,
        most_sooner=max(sooner, key=lambda shift: shift[1], default=None),
        most_later=max(later, key=lambda shift: shift[1], default=None),
    )
