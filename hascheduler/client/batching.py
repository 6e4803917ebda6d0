"""Many jobs in as few requests as they fit into."""

from collections.abc import Sequence
from typing import Any

from hascheduler.client.bodies import encoded
from hascheduler.errors import InvalidInput

REQUEST_JOBS_MAX = 1_000
REQUEST_BYTES_MAX = 1536 * 1024
"""A replica takes 2 MiB."""
_WHOLE = f"at most {REQUEST_JOBS_MAX} jobs and 1.5 MiB"
_REF = "ref:"

Group = list[Any]


def split_jobs(jobs: Sequence[Any], *, atomic: bool = False) -> list[Group]:
    """One request each. Jobs that name each other by ``ref:``, or are ``atomic``, must fit into one: `InvalidInput`."""
    groups: list[Group] = [[]]
    size = 0
    for job in jobs:
        own = len(encoded(job))
        if groups[-1] and (len(groups[-1]) >= REQUEST_JOBS_MAX or size + own > REQUEST_BYTES_MAX):
            groups.append([])
            size = 0
        groups[-1].append(job)
        size += own
    if len(groups) > 1 and atomic:
        problem = f"{len(jobs)} jobs need {len(groups)} requests, and are to be all or none"
        raise InvalidInput(("jobs",), problem, f"{_WHOLE} if they are atomic")
    if len(groups) > 1 and any(_names_others(job) for job in jobs):
        problem = f"{len(jobs)} jobs need {len(groups)} requests, and depend on each other by ref:"
        raise InvalidInput(("jobs",), problem, f"{_WHOLE} if there is a ref:")
    return groups


def group_key(key: str, number: int) -> str:
    """The idempotency key of that group: the same each time for the same jobs."""
    return key if number == 0 else f"{key}/{number}"


def _names_others(job: Any) -> bool:
    named = job.get("depends_on") if isinstance(job, dict) else None
    return isinstance(named, list) and any(isinstance(one, str) and one.startswith(_REF) for one in named)
