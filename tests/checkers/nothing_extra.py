"""No job and no effect that nobody asked for; and no job vanishes in between."""

from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import graph_job_ids
from hascheduler.model.job import fire_job_id
from hascheduler.triggers import next_nominal
from tests.checkers.evidence import Evidence


def nothing_extra(evidence: Evidence) -> list[str]:
    asked = {submit.id for submit in evidence.submits}
    far_ms = evidence.until_ms + max(600_000, evidence.skew_ms)
    for name, schedule in evidence.schedules.items():
        nominal_ms = next_nominal(schedule.trigger, schedule.now)
        while nominal_ms is not None and nominal_ms <= far_ms:
            last = fire_job_id(name, nominal_ms)
            asked |= {last} if schedule.graph is None else {*graph_job_ids(schedule.graph, last).values()}
            nominal_ms = next_nominal(schedule.trigger, nominal_ms)
    wrong = [f"{id} was never asked for" for id in evidence.kept(Collection.JOBS) if id not in asked]
    effects = [effect.job_id for effect in evidence.effects if effect.job_id not in asked]
    wrong += [f"an effect of {id}, never asked for" for id in effects]
    jobs = evidence.of(Collection.JOBS)
    deleted = [commit for commit in jobs if commit.after is None and not evidence.is_retired(commit)]
    wrong += [f"{commit.id} was deleted at {commit.at_s:.3f} s" for commit in deleted]
    return wrong
