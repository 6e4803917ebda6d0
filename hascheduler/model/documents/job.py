"""Stored jobs: the whole document of a new job, and the lean fields of a live one, which mirrors decode.

Also the fate of the stored job that holds a unique key, if another job is submitted under that key.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from operator import attrgetter
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.event import ERROR_LENGTH_MAX
from hascheduler.model.job import LIVE, AttemptEnd, JobRef, JobState, NewJob, ScheduleId, is_batch, schedule_of
from hascheduler.model.limit_keys import LimitKeys, OnDuplicate
from hascheduler.model.resources import decode_resources
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import (
    Document,
    identifier,
    instant_or_none,
    integer,
    is_integer,
    shared,
    shared_instant,
    shared_text,
    text,
    text_or_none,
    wrong,
)
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.model.values.redaction import redacted_beginning

JOB_FIELDS = (
    "v", "rev", "state", "attempt", "definition", "target", "tenant", "lane", "fairness_key", "priority", "mode",
    "submitted_at_ms", "sequence", "not_before_ms", "processor", "dispatched_at_ms", "cancel_requested_at_ms",
    "serial", "started_at_ms", "finished_at_ms", "resources", "failures", "first_started_at_ms", "retry_at_ms",
    "expires_at_ms", "waits_for", "ignores_failures", "schedule_created_at_ms", "losses", "error",
    "overdue_attempt", "overdue_since_ms", "limit_keys", "unstarted", "batch", "last_error",
)  # fmt: skip


_ADDED_IF_THERE = ("idempotency_key", "request_hash", "trace", "limit_keys", "unique", "on_failure", "failed_job")
"""Fields of new jobs that a document has only if they have a value."""
_AS_THEY_ARE = tuple(name for name in NewJob.__match_args__ if name != "id" and name not in _ADDED_IF_THERE)
_as_they_are = attrgetter(*_AS_THEY_ARE)
_NOT_YET = (
    "processor", "dispatched_at_ms", "started_at_ms", "finished_at_ms", "cancel_requested_at_ms",
    "first_started_at_ms", "retry_at_ms", "progress", "result", "error",
)  # fmt: skip


def new_job_document(job: NewJob) -> dict[str, Any]:
    """Return the stored form of ``job``: its fields, and the initial state of a job to which nothing has happened."""
    document = {
        "_id": job.id,
        "v": WRITTEN_VERSION,
        "rev": 1,
        "state": JobState.PENDING.value,
        "attempt": 0,
        **dict(zip(_AS_THEY_ARE, _as_they_are(job), strict=True)),
        **dict.fromkeys(_NOT_YET),
        "resources": None if job.resources is None else dict(job.resources),
        "failures": 0,
        "losses": 0,
        "depends_on": list(job.depends_on),
        "waits_for": stored_waits_for(job.id, job.waits_for),
        "attempts": [],
    }
    if job.idempotency_key is not None:
        document |= {"idempotency_key": job.idempotency_key, "request_hash": job.request_hash}
    if job.unique is not None:
        document["not_before_ms"] = job.unique.not_before_ms(job.not_before_ms, job.submitted_at_ms)
        document["unique_key"] = job.unique.digest
        if job.unique.since_ms is not None:
            document["unique_since_ms"] = job.unique.since_ms
    kept_ms = _kept_ms(job)
    if kept_ms:
        document["kept_until"] = to_datetime(job.submitted_at_ms + kept_ms)
    if job.limit_keys:
        document["limit_keys"] = [list(pair) for pair in job.limit_keys]
    if job.trace is not None:
        document["trace"] = job.trace.traceparent
    reported = {"on_failure": job.on_failure, "failed_job": job.failed_job}
    return document | {name: value for name, value in reported.items() if value is not None}


def stored_last_error(outcome: str, error: str | None) -> str | None:
    """Return the beginning of the error of an attempt that ended with ``outcome``; None if it did not fail.

    Jobs store it as ``last_error``, after the number of the attempt and a blank: only fields that change are in the
    change stream, and two attempts may fail with one error. 0.2.0 does not store it.
    """
    if not error or outcome not in (JobState.FAILED, AttemptEnd.LOST):
        return None
    return redacted_beginning(error, ERROR_LENGTH_MAX)


def stored_waits_for(job_id: str, waits_for: Sequence[str]) -> list[str]:
    """Return ``waits_for`` as the job stores it: with its own id if a batch is among them.

    0.2.0 takes a batch for a job that no longer exists, and would run this one. It never runs a job that waits for
    itself.
    """
    return [job_id, *waits_for] if any(map(is_batch, waits_for)) else list(waits_for)


def _kept_ms(job: NewJob) -> int:
    """Return how long after its submission the job is kept for its keys, even if it has ended; 0 if it has none."""
    held_ms = [] if job.idempotency_key is None else [IDEMPOTENCY_MS]
    if job.unique is not None and not job.unique.replaces and job.unique.period_ms is not None:
        held_ms.append(job.unique.period_ms)
    return max(held_ms) + _KEPT_LONGER_MS if held_ms else 0


IDEMPOTENCY_MS = 24 * 3_600_000
"""How long after its submission a job holds its idempotency key."""
_KEPT_LONGER_MS = 3_600_000
"""A margin for differing clocks of replicas and database: a lookup by key must still find its job."""
RETRY_KEYS_KEPT_MAX = 16
"""How many of the idempotency keys of its revivals a job keeps.

``retry_keys`` has ``{key, request, at_ms}``, the first two as digests. No mirror holds them.
"""
REVIVED_FIELDS: Document = {
    "state": JobState.PENDING.value,
    "failures": 0,
    "losses": 0,
    "unstarted": 0,
    "first_started_at_ms": None,
    "retry_at_ms": None,
    "expires_at_ms": None,
    "waits_for": [],
    "progress": None,
    "cancel_requested_at_ms": None,
    "finished_at_ms": None,
    "expire_at": None,
    "result": None,
    "error": None,
    "on_failure_job": None,
}
"""The fields that the revival of an ended job sets: those of a new job, without a deadline and without dependencies.

Its ``attempt`` and its ``revivals`` (0 if the field is missing) rise by one.
"""


MADE_BY_FIELDS = ("tenant", "schedule_created_at_ms")
"""The fields that `maker_of` reads besides the id."""


def maker_of(job: Document) -> ScheduleId | None:
    """Return the schedule that made the stored ``job``; None for a submitted one."""
    name, created_at_ms = schedule_of(str(job["_id"])), job.get("schedule_created_at_ms")
    created_at_ms = created_at_ms if is_integer(created_at_ms) else None
    return None if name is None else ScheduleId(name, str(job.get("tenant")), created_at_ms)


def decode_job(id: object, fields: Document) -> JobRef:
    require_known_version(fields)
    # By position: there may be a million of them.
    return JobRef(
        identifier(id),
        integer(fields, "rev"),
        decode_job_state(fields),
        integer(fields, "attempt"),
        # Texts that many jobs share are one object: the driver makes a new one for each document.
        shared_text(fields, "definition"),
        text(fields, "target"),
        shared_text(fields, "tenant"),
        shared_text(fields, "lane"),
        shared_text(fields, "fairness_key", empty=True),
        integer(fields, "priority"),
        shared_text(fields, "mode"),
        shared_instant(integer(fields, "submitted_at_ms")),
        integer(fields, "sequence"),
        instant_or_none(fields, "not_before_ms"),
        text_or_none(fields, "processor"),
        instant_or_none(fields, "dispatched_at_ms"),
        instant_or_none(fields, "cancel_requested_at_ms"),
        bool(fields.get("serial")),
        instant_or_none(fields, "started_at_ms"),
        None if fields.get("resources") is None else decode_resources(fields["resources"]),
        integer(fields, "failures", default=0),
        instant_or_none(fields, "first_started_at_ms"),
        instant_or_none(fields, "retry_at_ms"),
        instant_or_none(fields, "expires_at_ms"),
        _decode_waits_for(id, fields.get("waits_for")),
        bool(fields.get("ignores_failures")),
        instant_or_none(fields, "schedule_created_at_ms"),
        integer(fields, "losses", default=0),
        integer(fields, "overdue_attempt", default=0),
        instant_or_none(fields, "overdue_since_ms"),
        _decode_limit_keys(fields.get("limit_keys")) if "limit_keys" in fields else (),
        integer(fields, "unstarted", default=0),
        _decode_batch(fields.get("batch")),
    )


def decode_job_patch(patch: Document) -> dict[str, Any] | None:
    """Return what `decode_job` would read from these fields; None if that takes the whole document."""
    decoded: dict[str, Any] = {}
    for name, value in patch.items():
        decode = _OF_PATCHES.get(name)
        if decode is None:
            return None
        decoded[name] = None if value is None and decode is instant_or_none else decode(patch, name)
    return decoded


def patched_job(job: JobRef, decoded: Mapping[str, Any]) -> JobRef:
    """Return ``job`` after a patch that `decode_job_patch` has decoded; by position, for speed."""
    values = list(_VALUES(job))
    for name, value in decoded.items():
        if name in _PLACES:
            values[_PLACES[name]] = value
    return JobRef(*values)


_PLACES = {name: place for place, name in enumerate(JobRef.__match_args__)}
_VALUES = attrgetter(*JobRef.__match_args__)


_OF_PATCHES: dict[str, Callable[[Document, str], Any]] = {
    "rev": integer,
    "state": lambda fields, _: decode_job_state(fields),
    "attempt": integer,
    "processor": text_or_none,
    "priority": integer,
    "failures": integer,
    "losses": integer,
    "overdue_attempt": integer,
    "unstarted": integer,
    # Live jobs have no such fields.
    **dict.fromkeys(("finished_at_ms", "error", "last_error"), lambda fields, name: fields[name]),
    **dict.fromkeys(
        (
            "dispatched_at_ms",
            "started_at_ms",
            "first_started_at_ms",
            "retry_at_ms",
            "cancel_requested_at_ms",
            "overdue_since_ms",
        ),
        instant_or_none,
    ),
}
"""The fields that moves of a job change, each decoded on its own."""


def _decode_waits_for(job_id: object, ids: object) -> tuple[str, ...]:
    if not ids:
        return ()
    if not isinstance(ids, list) or not all(isinstance(id, str) and id for id in ids):
        raise InvalidInput(("waits_for",), f"{str(ids)[:64]}", "a list of ids")
    return tuple(shared(id) for id in ids if id != job_id)  # see `stored_waits_for`


def _decode_batch(batch: object) -> str | None:
    """Return the batch, or None if it was written by hand, because it decides nothing about the job itself."""
    return shared(batch) if isinstance(batch, str) and batch else None


_UNREAD = "unread"
"""Only in recordings: the keys of a job that a fire was about to insert."""


def _decode_limit_keys(pairs: object) -> LimitKeys | None:
    if pairs is None or pairs == _UNREAD:
        return () if pairs is None else None
    if isinstance(pairs, list) and all(map(_is_pair, pairs)):
        return tuple((key, value) for key, value in pairs)
    raise InvalidInput(("limit_keys",), f"{str(pairs)[:64]}", "a list of keys, each with its value")


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value)


def decode_job_state(fields: Document) -> JobState:
    try:
        return _STATES[fields["state"]]
    except (KeyError, TypeError):
        raise InvalidInput(("state",), wrong(fields, "state"), " or ".join(JobState)) from None


_STATES = {state.value: state for state in JobState}
"""The states by value: there are many jobs, and a lookup in the enumeration takes five times as long."""


def encode_job_ref(job: JobRef) -> dict[str, Any]:
    """Return the lean fields of a job, as `decode_job` reads them."""
    return {
        **{name: getattr(job, name) for name in _OF_LIVE_JOBS},
        "v": WRITTEN_VERSION,
        "resources": None if job.resources is None else dict(job.resources),
        "waits_for": list(job.waits_for),
        "limit_keys": _UNREAD if job.limit_keys is None else [list(pair) for pair in job.limit_keys],
    }


_NOT_OF_REFS = frozenset({"v", "resources", "finished_at_ms", "error", "waits_for", "limit_keys", "last_error"})
_OF_LIVE_JOBS = tuple(name for name in JOB_FIELDS if name not in _NOT_OF_REFS)


class HolderFate(Enum):
    KEEPS = "keeps"
    """It keeps its key, and the answer to the submit is this job."""
    REPLACED = "replaced"
    """It loses its key and is cancelled if it has not been dispatched by then."""
    RELEASES = "releases"
    """It loses its key and goes on."""


def fate_of(holder: Document, job: NewJob) -> HolderFate:
    """Return the fate of ``holder`` if ``job`` is submitted under its key.

    It depends on the state and the attempt of the holder, so the write that carries it out compares both.
    """
    assert job.unique is not None
    rule, submitted_at_ms = job.unique, job.submitted_at_ms
    if rule.on_duplicate is OnDuplicate.KEEP_FIRST:
        until_ms = _submitted_at_ms(holder) + (rule.period_ms or 0)
        is_live = str(holder.get("state")) in LIVE
        return HolderFate.KEEPS if is_live or submitted_at_ms < until_ms else HolderFate.RELEASES
    if holder.get("state") != JobState.PENDING or holder.get("attempt") != 0:
        return HolderFate.RELEASES
    # Otherwise a row submitted faster than its jobs start would go to the end of the queue for ever.
    is_over = rule.max_wait_ms is not None and submitted_at_ms >= _since_ms(holder) + rule.max_wait_ms
    return HolderFate.RELEASES if is_over else HolderFate.REPLACED


def replacing(job: NewJob, holder: Document) -> NewJob:
    """Return ``job`` with the waiting time of ``holder``, which it replaces."""
    unique = job.unique
    assert unique is not None
    since_ms = min(unique.since_ms or job.submitted_at_ms, _since_ms(holder))
    return replace(job, unique=replace(unique, since_ms=WallMs(since_ms)))


def _since_ms(holder: Document) -> int:
    since_ms = holder.get("unique_since_ms")
    return since_ms if is_integer(since_ms) else _submitted_at_ms(holder)


def _submitted_at_ms(holder: Document) -> int:
    submitted_at_ms = holder.get("submitted_at_ms")
    return submitted_at_ms if is_integer(submitted_at_ms) else 0
