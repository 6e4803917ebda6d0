"""The parts of a new job that come from other documents: its dependencies, and the keys that its definition asks for.

``depends_on`` is resolved before anything is written. A job that has already succeeded is not waited for; a job that
has already failed is left to the leader, which fails the jobs that wait for it. Each named job must exist and be
visible to the caller: the ids of other tenants do not exist for it.

A batch is one dependency, however many jobs it has, if all of them are of one tenant. If they are of several tenants,
the job depends on each of its jobs that the caller sees; if dependencies stay within a tenant, on those of its own.

Definitions come from the mirror, or from the database until the mirror is complete: no limit may lapse while a replica
starts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from hascheduler.api.middleware.auth import Caller
from hascheduler.api.services import ApiServices
from hascheduler.errors import InvalidInput
from hascheduler.model.job import TERMINAL, JobState, NewJob, is_batch
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import format_instant
from hascheduler.ports import KnownJob
from hascheduler.schema.definition import Definition
from hascheduler.schema.job import DEPENDENCIES_MAX
from hascheduler.schema.noun import read_document
from hascheduler.schema.refusals import Path

BATCHES_MAX = 100
"""The most batches that one request may name: all their jobs are read."""
Found = dict[str, Sequence[KnownJob]]
"""The states of each named job or batch, by its id."""
Find = Callable[[str, Path, str | None], Found]
"""A function that resolves a name as `Lookup.found` does."""


class Lookup:
    """The jobs named by ``depends_on`` of one or several bodies, as read by `look_up`.

    ``named`` holds the rows of each job and batch, ``mixed`` the jobs of each batch of several tenants.
    """

    def __init__(self, named: Mapping[str, Sequence[KnownJob]], mixed: Mapping[str, Sequence[KnownJob]]) -> None:
        self._named = named
        self._mixed = mixed

    def found(self, named: str, path: Path, within: str | None = None) -> Found:
        """Return the dependencies of a job that names ``named``.

        Raise an `InvalidInput` at ``path`` if it does not exist, or has nothing of tenant ``within`` (None allows any).
        """
        jobs = self._mixed.get(named)
        require_any_of(within, self._named.get(named, ()), named, path)
        if jobs is not None and within is not None:
            jobs = [job for job in jobs if job.tenant == within]
        if jobs is not None and len(jobs) > DEPENDENCIES_MAX:
            problem = f"{quoted(named)} has too many jobs of several tenants"
            raise InvalidInput(path, problem, f"a batch of one tenant, or one of at most {DEPENDENCIES_MAX} jobs")
        if jobs is not None:
            return {job.id: [job] for job in jobs}
        if named not in self._named:
            raise InvalidInput(path, f"{quoted(named)} does not exist", "the id of a job or a batch")
        return {named: self._named[named]}

    def most(self, named: str) -> int:
        """Return how many dependencies ``named`` may stand for."""
        return len(self._mixed.get(named, (named,)))


NOTHING_NAMED = Lookup({}, {})


def require_any_of(tenant: str | None, jobs: Sequence[KnownJob], named: str, path: Path) -> None:
    """Raise an `InvalidInput` if all ``jobs``, for which ``named`` stands, are of other tenants; None allows any."""
    if tenant is not None and jobs and all(job.tenant != tenant for job in jobs):
        problem = f"{quoted(named)} belongs to tenant {quoted(jobs[0].tenant)}, but this job to {quoted(tenant)}"
        raise InvalidInput(path, problem, "a job or batch of the same tenant")


async def look_up(named: Sequence[str], caller: Caller, services: ApiServices) -> Lookup:
    """Read all jobs and batches in ``named`` that the caller may see."""
    distinct = list(dict.fromkeys(named))
    batches = sum(map(is_batch, distinct))
    if batches > BATCHES_MAX:
        raise InvalidInput(("depends_on",), f"{batches} batches in one request", f"at most {BATCHES_MAX}")
    rows: list[KnownJob] = []
    for begin in range(0, len(distinct), DEPENDENCIES_MAX):
        rows += await services.jobs.known(distinct[begin : begin + DEPENDENCIES_MAX])
    known = {id: found for id, found in by_id(rows).items() if any(caller.sees(job.tenant) for job in found)}
    mixed: dict[str, Sequence[KnownJob]] = {}
    for id, found in known.items():
        if len({job.tenant for job in found}) > 1:
            jobs = await services.jobs.batch(id, DEPENDENCIES_MAX + 1)
            mixed[id] = [job for job in jobs if caller.sees(job.tenant)]
    return Lookup(known, mixed)


def waits_for(found: Mapping[str, Sequence[KnownJob]], *, ignores_failures: bool) -> tuple[str, ...]:
    """Return the ids in ``found`` that have yet to succeed, or, if failures are ignored, that have yet to end."""
    met = TERMINAL if ignores_failures else {JobState.SUCCEEDED}
    return tuple(id for id, jobs in found.items() if any(job.state not in met for job in jobs))


def by_id(jobs: Sequence[KnownJob]) -> Found:
    """Return ``jobs`` by id, each with all its rows."""
    rows: dict[str, list[KnownJob]] = {}
    for job in jobs:
        rows.setdefault(job.id, []).append(job)
    return {**rows}


def with_dependencies(job: NewJob, names: Sequence[str], find: Find, services: ApiServices) -> NewJob:
    """Return ``job`` with the jobs that ``names`` stand for; raise `InvalidInput` for a missing one, or too many."""
    within = job.tenant if services.is_one_of_several else None
    first: dict[str, int] = {}
    for place, name in enumerate(names):
        first.setdefault(name, place)
    found: Found = {}
    for name, place in first.items():
        found |= find(name, ("depends_on", place), within)
        if len(found) > DEPENDENCIES_MAX:
            raise InvalidInput(("depends_on",), f"{len(found)} dependencies", f"at most {DEPENDENCIES_MAX}")
    waiting = waits_for(found, ignores_failures=job.ignores_failures)
    return replace(job, depends_on=tuple(found), waits_for=waiting)


def levels_of(needs: Sequence[Sequence[int]]) -> tuple[Sequence[Sequence[int]], Sequence[int]]:
    """Return the levels in which to insert jobs, each after all that it needs, and the jobs on or behind a cycle.

    ``needs[index]`` are the indexes of the jobs that ``index`` depends on.
    """
    sorter = TopologicalSorter(dict(enumerate(needs)))
    with suppress(CycleError):  # then the sorter still yields all that are not behind a cycle
        sorter.prepare()
    levels = []
    while level := sorter.get_ready():
        levels.append(sorted(level))
        sorter.done(*level)
    placed = {index for level in levels for index in level}
    return levels, [index for index in range(len(needs)) if index not in placed]


Definitions = Mapping[str, Definition]
"""Definitions by name; those that are not stored are missing."""


async def definitions_of(names: Iterable[str], services: ApiServices) -> Definitions:
    """Return the definitions by these names."""
    known = services.view.definitions()
    if services.view.ready:
        return {name: known[name] for name in names if name in known}
    stored = {name: await _stored(name, known.get(name), services) for name in dict.fromkeys(names)}
    return {name: definition for name, definition in stored.items() if definition is not None}


async def _stored(name: str, known: Definition | None, services: ApiServices) -> Definition | None:
    stored = await services.definitions.get(name)
    try:
        return None if stored is None else read_document(Definition, stored["_id"], stored)
    except InvalidInput:
        return known  # the mirror quarantines it too, and goes on without it


def with_limit_keys(job: NewJob, definitions: Definitions) -> NewJob:
    """Return the job with its values at the keys of its definition's limits."""
    definition = definitions.get(job.definition)
    return job if definition is None else definition.with_limit_keys(job)


def with_keys(job: NewJob, definitions: Definitions) -> NewJob:
    """Return a submitted job with all its keys; raise `InvalidInput` if it would expire while it is debounced."""
    definition = definitions.get(job.definition)
    if definition is None:
        return job
    job = definition.with_keys(job)
    not_before_ms = None if job.unique is None else job.unique.not_before_ms(None, job.submitted_at_ms)
    if not_before_ms is not None and job.expires_at_ms is not None and job.expires_at_ms <= not_before_ms:
        problem = f"{format_instant(job.expires_at_ms)} is not after the debounce period of {job.definition!r}"
        raise InvalidInput(("expires_at",), problem, f"later than {format_instant(not_before_ms)}")
    return job
