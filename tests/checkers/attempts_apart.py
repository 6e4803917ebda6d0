"""No two handlers are at work on one job at once, unless the earlier one's process stood still and could not know."""

from collections import defaultdict
from itertools import pairwise

from tests.checkers.evidence import Effect, Evidence

_AWAKE_S = 1.0
"""A process that wakes up may take so long to notice what happened meanwhile."""


def attempts_apart(evidence: Evidence) -> list[str]:
    of_job: dict[str, list[Effect]] = defaultdict(list)
    for effect in evidence.effects:
        of_job[effect.job_id].append(effect)
    wrong = []
    for job, effects in of_job.items():
        effects.sort(key=lambda effect: effect.began_s)
        for earlier, later in pairwise(effects):
            end_s = earlier.ended_s or evidence.deaths.get(earlier.processor, float("inf"))
            if end_s <= later.began_s or _stood_still(evidence, earlier.processor, later.began_s, end_s):
                continue
            wrong.append(
                f"{job}: attempt {earlier.attempt} on {earlier.processor} until {end_s:.3f} s,"
                f" attempt {later.attempt} on {later.processor} from {later.began_s:.3f} s"
            )
    return wrong


def _stood_still(evidence: Evidence, processor: str, from_s: float, to_s: float) -> bool:
    return any(
        began_s <= from_s and to_s <= ended_s + _AWAKE_S for began_s, ended_s in evidence.pauses.get(processor, ())
    )
