"""What a submitted job waits for: its ``depends_on`` is resolved before anything is written.

A job that has already succeeded is not waited for; one that has already failed is left to the leader, which fails the
jobs that wait for it. Each named job must exist and be visible to the caller: the ids of other tenants do not exist
for it.
"""

from collections.abc import Collection, Mapping, Sequence

from hascheduler.api.middleware.auth import Caller
from hascheduler.api.services import ApiServices
from hascheduler.errors import InvalidInput
from hascheduler.model.job import TERMINAL, JobState
from hascheduler.model.values.error_texts import quoted
from hascheduler.ports import KnownJob
from hascheduler.wire.job import DEPENDENCIES_MAX

BATCH_PREFIX = "batch:"
BATCHES_MAX = 100
"""Each costs one query."""


class Lookup:
    """The jobs that ``depends_on`` of one or several bodies names; made by `look_up`."""

    def __init__(self, jobs: Mapping[str, KnownJob], batches: Mapping[str, Sequence[KnownJob]]) -> None:
        self._jobs = jobs
        self._batches = batches

    def jobs_of(self, named: str, path: tuple[str | int, ...]) -> Sequence[KnownJob]:
        """The jobs that the id or batch ``named`` stands for; `InvalidInput` at ``path`` if there are none."""
        if named.startswith(BATCH_PREFIX):
            found = self._batches.get(named, ())
            if len(found) > DEPENDENCIES_MAX:
                raise InvalidInput(path, f"{quoted(named)} has too many jobs", f"at most {DEPENDENCIES_MAX}")
        else:
            found = [self._jobs[named]] if named in self._jobs else []
        if not found:
            raise InvalidInput(path, f"there is no {quoted(named)}", "the id of a job, or of a batch")
        return found


async def look_up(named: Sequence[str], caller: Caller, services: ApiServices) -> Lookup:
    """Read all jobs and batches in ``named`` that the caller may see."""
    distinct = list(dict.fromkeys(named))
    ids = [name for name in distinct if not name.startswith(BATCH_PREFIX)]
    named_batches = [name for name in distinct if name.startswith(BATCH_PREFIX)]
    if len(named_batches) > BATCHES_MAX:
        raise InvalidInput(("depends_on",), f"{len(named_batches)} batches in one request", f"at most {BATCHES_MAX}")
    batches = {}
    for name in named_batches:
        jobs = await services.jobs.batch(name, DEPENDENCIES_MAX + 1)
        batches[name] = [job for job in jobs if caller.sees(job.tenant)]
    known: dict[str, KnownJob] = {}
    for begin in range(0, len(ids), DEPENDENCIES_MAX):
        jobs = await services.jobs.known(ids[begin : begin + DEPENDENCIES_MAX])
        known.update({job.id: job for job in jobs if caller.sees(job.tenant)})
    return Lookup(known, batches)


def waits_for(jobs: Sequence[KnownJob], *, ignores_failures: bool) -> tuple[str, ...]:
    """The ids of ``jobs`` that have yet to succeed; where failures are ignored, that have yet to end."""
    met = TERMINAL if ignores_failures else {JobState.SUCCEEDED}
    return tuple(dict.fromkeys(job.id for job in jobs if job.state not in met))


def require_few(ids: Collection[str], path: tuple[str | int, ...]) -> None:
    """`InvalidInput` at ``path`` for more than `DEPENDENCIES_MAX` jobs to wait for."""
    if len(ids) > DEPENDENCIES_MAX:
        raise InvalidInput(path, f"{len(ids)} jobs in all", f"at most {DEPENDENCIES_MAX}")
