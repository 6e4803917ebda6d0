"""The keys of new jobs that their definitions ask for: the values that limits per key count by, and the unique key.

Definitions come from the mirror; before it is complete, from the database: no limit may lapse while a replica begins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hascheduler.api.services import ApiServices
from hascheduler.errors import InvalidInput
from hascheduler.model.job import NewJob
from hascheduler.model.limit_keys import limit_keys
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.schema.definition import Definition
from hascheduler.schema.noun import read_document

Definitions = Mapping[str, Definition]
"""By name; those that are not stored are missing."""


async def definitions_of(names: Iterable[str], services: ApiServices) -> Definitions:
    """The definitions by these names."""
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
        return known  # as the mirror sets it aside, and goes on without it


def with_limit_keys(job: NewJob, definitions: Definitions) -> NewJob:
    """The job with its values at the keys of its definition's limits."""
    definition = definitions.get(job.definition)
    if definition is None or not definition.keyed_by:
        return job
    return replace(job, limit_keys=limit_keys(definition.keyed_by, job.payload, job.target, job.labels))


def with_keys(job: NewJob, definitions: Definitions) -> NewJob:
    """A submitted job with all its keys; `InvalidInput` if it would expire while it is debounced."""
    definition = definitions.get(job.definition)
    if definition is None:
        return job
    job = with_limit_keys(job, definitions)
    if definition.unique is None:
        return job
    values = limit_keys(definition.unique.by, job.payload, job.target, job.labels)
    key = definition.unique.key(job.tenant, job.definition, values)
    _demand_time_after(key.not_before_ms(None, job.submitted_at_ms), job)
    return replace(job, unique=key)


def _demand_time_after(not_before_ms: WallMs | None, job: NewJob) -> None:
    if not_before_ms is not None and job.expires_at_ms is not None and job.expires_at_ms <= not_before_ms:
        problem = f"{format_instant(job.expires_at_ms)} is not after the period for which {job.definition!r} debounces"
        raise InvalidInput(("expires_at",), problem, f"later than {format_instant(not_before_ms)}")
