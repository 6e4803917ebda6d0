"""An acknowledged cancel is final: the job stays cancelled, and no handler begins with it after that, unless
it is revived later."""

from hascheduler.model.collection import Collection
from hascheduler.model.job import TERMINAL, JobState
from tests.checkers.evidence import Effect, Evidence

_AWAKE_S = 1.0
"""A process that wakes up may take so long to notice what happened meanwhile."""


def cancels_kept(evidence: Evidence) -> list[str]:
    jobs = evidence.kept(Collection.JOBS)
    cancelled_s: dict[str, float] = {}
    revived_s = _revived_s(evidence)
    for id, at_s in evidence.cancels:
        if at_s > revived_s.get(id, 0.0):
            cancelled_s[id] = min(at_s, cancelled_s.get(id, at_s))
    wrong = []
    for id in cancelled_s:
        state = jobs[id]["state"] if id in jobs else "gone"
        if state != JobState.CANCELLED:
            wrong.append(f"{id} was acknowledged as cancelled and is {state}")
    for effect in evidence.effects:
        at_s = cancelled_s.get(effect.job_id, float("inf"))
        if effect.began_s > at_s and not _had_slept(evidence, effect, at_s):
            began = f"began on {effect.processor} at {effect.began_s:.3f} s"
            wrong.append(f"{effect.job_id} was cancelled at {at_s:.3f} s and {began}")
    return wrong


def _revived_s(evidence: Evidence) -> dict[str, float]:
    """When each job was revived last."""
    return {
        commit.id: commit.at_s
        for commit in evidence.of(Collection.JOBS)
        if commit.before and commit.after and commit.before["state"] in TERMINAL
        if commit.after["state"] == JobState.PENDING
    }


def _had_slept(evidence: Evidence, effect: Effect, cancelled_s: float) -> bool:
    """Whether its process stood still in between, so that it could not know."""
    return any(
        began_s <= effect.began_s <= ended_s + _AWAKE_S and cancelled_s <= ended_s
        for began_s, ended_s in evidence.pauses.get(effect.processor, ())
    )
