"""Every obligation has its end: a job that ended for each acknowledged submit, one verdict for each nominal time."""

from hascheduler.model.collection import Collection
from hascheduler.model.job import TERMINAL, fire_job_id
from hascheduler.triggers import next_nominal
from tests.checkers.evidence import Evidence


def nothing_lost(evidence: Evidence) -> list[str]:
    jobs = evidence.kept(Collection.JOBS)
    wrong = []
    for submit in evidence.submits:
        job = jobs.get(submit.id)
        if job is None and submit.acknowledged:
            wrong.append(f"{submit.id} was acknowledged and is gone")
        elif job is not None and job["state"] not in TERMINAL:
            wrong.append(f"{submit.id} is still {job['state']}, attempt {job['attempt']}")
    runs = list(evidence.kept(Collection.VERDICTS).values())
    for name, schedule in evidence.schedules.items():
        of_one = [run for run in runs if run["schedule"] == name]
        nominal_ms = next_nominal(schedule.trigger, schedule.now)
        while nominal_ms is not None and nominal_ms <= evidence.until_ms:
            job = jobs.get(fire_job_id(name, nominal_ms))
            passed_over = sum(run["first_ms"] <= nominal_ms <= run["last_ms"] for run in of_one)
            if (job is not None) + passed_over != 1:
                wrong.append(f"{name} at {nominal_ms}: {int(job is not None)} fires, {passed_over} other verdicts")
            if job is not None and job["state"] not in TERMINAL:
                wrong.append(f"{job['_id']} is still {job['state']}, attempt {job['attempt']}")
            nominal_ms = next_nominal(schedule.trigger, nominal_ms)
    return wrong
