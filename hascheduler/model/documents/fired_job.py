"""The job that a schedule makes for a nominal time: as it is stored, and as a mirror will see it."""

from collections.abc import Sequence
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.documents.schedule import decode_policy, decode_template
from hascheduler.model.fields import Document, is_integer
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobRef, JobState, NewJob, fire_job_id
from hascheduler.model.limit_keys import limit_keys
from hascheduler.model.payload import (
    PAYLOAD_BYTES_MAX,
    json_bytes,
    longest_values,
    placeholder_values,
    render,
    rendered_bytes_max,
    require_storable_size,
)
from hascheduler.model.schedule import Overlap, ScheduleRef


def job_from_schedule(
    name: str,
    schedule: Document,
    job_id: str,
    nominal_ms: WallMs,
    *,
    serial: bool,
    keyed_by: Sequence[str] = (),
) -> NewJob | None:
    """The job ``job_id`` that the stored ``schedule`` makes for ``nominal_ms``; None if its template is unreadable, or
    its rendered payload too large to be stored.

    The result depends on the arguments alone, so every leader makes the same job. It counts as submitted at its nominal
    time. ``keyed_by`` are the keys of its definition's limits per key.
    """
    try:
        template = decode_template(schedule.get("job"), name)
    except InvalidInput:
        return None
    stored_labels, payload = schedule.get("labels"), schedule.get("payload")
    labels = stored_labels if isinstance(stored_labels, dict) else {}
    created_at_ms = schedule.get("created_at_ms")
    if schedule.get("render"):
        # Checked before rendering: a payload that is too large is never built.
        if rendered_payload_bytes_max(name, schedule) > PAYLOAD_BYTES_MAX:
            return None
        payload = render(payload, placeholder_values(name, template.target_of(name), job_id, nominal_ms, labels))
    target = template.target_of(name)
    return NewJob(
        id=job_id,
        definition=template.definition,
        target=target,
        payload=payload,
        tenant=template.tenant,
        lane=template.lane,
        fairness_key=template.fairness_key,
        priority=template.priority,
        mode=template.mode,
        labels=labels,
        submitted_at_ms=nominal_ms,
        schedule=name,
        schedule_created_at_ms=WallMs(created_at_ms) if is_integer(created_at_ms) else None,
        nominal_ms=nominal_ms,
        serial=serial,
        resources=template.resources,
        limit_keys=limit_keys(keyed_by, payload, target, labels),
    )


def require_storable_payload(
    payload: Any, schedule: str, target: str, labels: Any, *, rendered: bool, path: tuple[str | int, ...]
) -> None:
    """`InvalidInput` at ``path`` unless every job with this payload, of such a schedule, can be stored."""
    if rendered:
        values = longest_values(schedule, target, labels if isinstance(labels, dict) else {})
        require_storable_size(rendered_bytes_max(payload, values), path, rendered=True)
    else:
        require_storable_size(json_bytes(payload), path, rendered=False)


def rendered_payload_bytes_max(name: object, schedule: Document) -> int:
    """The largest size of the payloads that a stored schedule renders; 0 if it renders none, or is unreadable."""
    if not schedule.get("render") or not isinstance(name, str):
        return 0
    try:
        target = decode_template(schedule.get("job"), name).target_of(name)
    except InvalidInput:
        return 0
    labels = schedule.get("labels")
    return rendered_bytes_max(
        schedule.get("payload"), longest_values(name, target, labels if isinstance(labels, dict) else {})
    )


def fires_serially(overlap: Overlap) -> bool:
    """Whether a fired job has to wait until the schedule's earlier jobs have ended."""
    return overlap in {Overlap.BUFFER_ONE, Overlap.CANCEL_RUNNING}


def fired_job(schedule: ScheduleRef, nominal_ms: WallMs) -> JobRef:
    """The job that a fire inserts, as the mirror will see it: the core may act on it before its echo arrives."""
    template = schedule.template
    return JobRef(
        id=fire_job_id(schedule.name, nominal_ms),
        rev=1,
        state=JobState.PENDING,
        attempt=0,
        definition=template.definition,
        target=template.target_of(schedule.name),
        tenant=template.tenant,
        lane=template.lane,
        fairness_key=template.fairness_key,
        priority=template.priority,
        mode=template.mode,
        submitted_at_ms=nominal_ms,
        sequence=0,
        not_before_ms=None,
        processor=None,
        dispatched_at_ms=None,
        cancel_requested_at_ms=None,
        serial=fires_serially(schedule.policy.overlap),
        resources=template.resources,
        schedule_created_at_ms=schedule.created_at_ms,
    )


def new_fired_job(name: str, schedule: Document, nominal_ms: WallMs, keyed_by: Sequence[str] = ()) -> NewJob | None:
    """The job that a fire inserts; None if the stored ``schedule`` makes none: it was broken by hand, or an earlier
    release accepted a payload that is too large when rendered."""
    try:
        overlap = decode_policy(schedule.get("policy")).overlap
    except InvalidInput:
        return None
    id = fire_job_id(name, nominal_ms)
    return job_from_schedule(name, schedule, id, nominal_ms, serial=fires_serially(overlap), keyed_by=keyed_by)
