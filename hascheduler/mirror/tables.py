"""How to read the documents of each collection, and which facts to report: one row a collection.

The fold itself depends on none of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hascheduler.mirror import changes as seen
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import decode_job, decode_job_patch, encode_job_ref, patched_job
from hascheduler.model.documents.leadership import decode_hold, decode_lease, encode_hold, encode_lease
from hascheduler.model.documents.processor import decode_processor, encode_processor
from hascheduler.model.documents.schedule import LEADER_FIELDS, decode_schedule, encode_schedule_ref, with_leader_fields
from hascheduler.model.job import TERMINAL, JobState
from hascheduler.model.schema_version import decode_schema_version, encode_schema_version
from hascheduler.model.values.fields import is_integer
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.noun import Part, document_of, read_document
from hascheduler.schema.pause import StandingPause
from hascheduler.schema.replica import ReplicaStatus
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.token import Token


@dataclass(frozen=True, slots=True)
class Table:
    """``decode(id, fields)`` makes the noun and ``encode`` the fields again.

    ``arrived`` and ``left`` report it; without them, that is a `NounSeen`. ``revision(noun)`` orders its versions.
    ``revised`` names the field that every write raises by one, except writes of ``unnumbered`` fields alone; it is ""
    if patches are not numbered. Documents for which ``ends`` is true leave the mirror. ``advanced(noun, patch)`` is the
    noun after a patch of unnumbered fields alone, which is frequent. ``decode_patch(fields)`` reads a patch by itself
    if possible, and ``patched(noun, decoded)`` is the noun after it, which saves encoding and decoding it again.
    """

    decode: Callable[[object, Any], Any]
    encode: Callable[[Any], Any]
    revision: Callable[[Any], tuple[int, ...]]
    arrived: Callable[[Any], seen.Seen] | None = None
    left: Callable[[str, Mapping[str, Any]], seen.Seen] | None = None
    revised: str = ""
    unnumbered: frozenset[str] = frozenset()
    ends: Callable[[Any], bool] = lambda _: False
    advanced: Callable[[Any, Mapping[str, Any]], Any] | None = None
    decode_patch: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = lambda _: None
    patched: Callable[[Any, Mapping[str, Any]], Any] = lambda noun, _: noun


def _edited(part: type[Part]) -> Table:
    """Return the row of a part of which every write is an edit, and raises its ``rev``."""
    return Table(partial(read_document, part), document_of, lambda noun: (noun.rev,), revised="rev")


def _job_left(id: str, fields: Mapping[str, Any]) -> seen.JobGone:
    finished_at_ms = fields.get("finished_at_ms")
    return seen.JobGone(id, _ended_in(fields), finished_at_ms if is_integer(finished_at_ms) else None)


def _ended_in(fields: Mapping[str, Any]) -> JobState | None:
    state = fields.get("state")
    return _TERMINAL.get(state) if isinstance(state, str) else None


_TERMINAL: dict[str, JobState] = {state.value: state for state in TERMINAL}


TABLES: dict[Collection, Table] = {
    Collection.JOBS: Table(
        decode=decode_job,
        encode=encode_job_ref,
        arrived=seen.JobSeen,
        left=_job_left,
        revision=lambda job: (job.rev,),
        revised="rev",
        ends=lambda fields: _ended_in(fields) is not None,
        decode_patch=decode_job_patch,
        patched=patched_job,
    ),
    Collection.SCHEDULES: Table(
        decode=decode_schedule,
        encode=encode_schedule_ref,
        arrived=seen.ScheduleSeen,
        left=lambda name, _last: seen.ScheduleGone(name),
        # The cursor advances without an edit; a reset, which takes it back, raises rev.
        revision=lambda schedule: (schedule.rev, schedule.cursor_ms),
        revised="rev",
        unnumbered=LEADER_FIELDS,
        advanced=with_leader_fields,
    ),
    Collection.DEFINITIONS: _edited(Definition),
    Collection.LANES: _edited(Lane),
    Collection.CALENDARS: _edited(Calendar),
    Collection.TENANTS: _edited(Tenant),
    Collection.PAUSES: _edited(StandingPause),
    # Making or lifting a hold raises rev; the leader records what it has released.
    Collection.HOLDS: Table(decode_hold, encode_hold, lambda hold: (hold.rev, hold.released)),
    Collection.TOKENS: _edited(Token),
    Collection.PROCESSORS: Table(
        decode=decode_processor,
        encode=encode_processor,
        arrived=seen.ProcessorSeen,
        left=lambda processor, _last: seen.ProcessorGone(processor),
        revision=lambda processor: (processor.beat,),
    ),
    Collection.LEASES: Table(decode_lease, encode_lease, lambda lease: (lease.term, lease.renewals)),
    Collection.REPLICAS: Table(partial(read_document, ReplicaStatus), document_of, lambda replica: (replica.beat,)),
    Collection.META: Table(decode_schema_version, encode_schema_version, lambda schema: (schema.rev,)),
}
