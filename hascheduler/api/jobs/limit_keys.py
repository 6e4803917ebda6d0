"""The keys at which the definitions of new jobs have limits, for the values that are stored with them.

They come from the mirror; before it is complete, from the database: a limit must not lapse while a replica begins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hascheduler.api.services import ApiServices
from hascheduler.errors import InvalidInput
from hascheduler.model.definition import Definition
from hascheduler.model.documents.definition import decode_definition
from hascheduler.model.job import NewJob
from hascheduler.model.limit_keys import limit_keys

KeysOfDefinitions = Mapping[str, tuple[str, ...]]
"""By definition; those without keys may be missing."""


async def keys_of(definitions: Iterable[str], services: ApiServices) -> KeysOfDefinitions:
    """The limited keys of these definitions."""
    known = services.view.definitions()
    if services.view.ready:
        return {name: known[name].keyed_by for name in definitions if name in known}
    return {name: await _stored_keys(name, known.get(name), services) for name in dict.fromkeys(definitions)}


async def _stored_keys(name: str, known: Definition | None, services: ApiServices) -> tuple[str, ...]:
    stored = await services.definitions.get(name)
    try:
        return () if stored is None else decode_definition(stored["_id"], stored).keyed_by
    except InvalidInput:
        return () if known is None else known.keyed_by  # as the mirror sets it aside, and goes on without it


def with_keys(job: NewJob, keys: KeysOfDefinitions) -> NewJob:
    """The job with its values at the keys of its definition."""
    own = keys.get(job.definition)
    if not own:
        return job
    return replace(job, limit_keys=limit_keys(own, job.payload, job.target, job.labels))
