"""Each local time of a schedule has one fire, whatever the leaders' time-zone data are."""

from itertools import pairwise

from tests.checkers.evidence import Evidence


def local_times_once(evidence: Evidence) -> list[str]:
    """By the wall time that each nominal time is to the data of the leader that decided it."""
    wrong = []
    for before, fire in pairwise(sorted(evidence.local_fires)):
        if fire.wall_s <= before.wall_s:
            wrong.append(
                f"{_local(fire.wall_s)} by {fire.holder} came after {_local(before.wall_s)} by {before.holder}"
            )
        # What comes right after another, by other data, is one fire for all that is left out between the two.
        elif fire.wall_s > before.wall_s + evidence.local_every_s and fire.nominal_ms != before.nominal_ms + 1:
            wrong.append(f"none between {_local(before.wall_s)} by {before.holder} and {_local(fire.wall_s)}")
    return wrong


def _local(wall_s: int) -> str:
    hours, seconds = divmod(wall_s % 86_400, 3_600)
    return f"{hours:02d}:{seconds // 60:02d}:{seconds % 60:02d}"
