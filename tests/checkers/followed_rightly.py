"""Leaders that are awake and connected are hardly ever followed early: at most twice in ten minutes, and in no circle.

Once is the promise for a cluster that is known to be short of CPU. The first stop of a leader that was on time until
then shows nothing of that, so it may come on top.
"""

from tests.checkers.evidence import Evidence

_WITHIN_S = 600.0
_AT_MOST = 2


def followed_rightly(evidence: Evidence) -> list[str]:
    at_s = [at_s for at_s, _ in evidence.needless]
    return [
        f"{_AT_MOST + 1} leaders were followed needlessly by {last_s:.3f} s: "
        + ", ".join(f"{id} at {when_s:.3f} s" for when_s, id in evidence.needless)
        for first_s, last_s in zip(at_s, at_s[_AT_MOST:], strict=False)
        if last_s - first_s <= _WITHIN_S
    ]
