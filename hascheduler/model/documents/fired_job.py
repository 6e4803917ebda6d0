"""The jobs that a schedule makes for a nominal time: as they are stored, and as a mirror will see the last of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hascheduler.errors import InvalidInput
from hascheduler.model.documents.job_template import decode_jobs
from hascheduler.model.documents.schedule import decode_policy
from hascheduler.model.job import JobRef, JobState, NewJob, fire_job_id, graph_job_id, is_before_last, last_job_id
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
from hascheduler.model.schedule import Basis, JobGraph, JobTemplate, Overlap, ScheduleRef
from hascheduler.model.values.fields import Document, is_integer
from hascheduler.model.values.instants import WallMs

AFTER_MAX = 100
"""Jobs that one fire waits for: an entry of the journal, which may have a hundred such fires, has to stay small."""


class Payload(NamedTuple):
    """The payload of a schedule for a job on ``target``; ``rendered``: its placeholders are filled."""

    value: Any
    target: str
    rendered: bool


def jobs_from_schedule(
    name: str,
    schedule: Document,
    job_id: str,
    nominal_ms: WallMs,
    *,
    serial: bool,
    keyed_by: Sequence[str] = (),
    after: Sequence[str] = (),
) -> list[NewJob]:
    """The jobs that the stored ``schedule`` makes for ``nominal_ms``, each after those that it waits for, ``job_id`` at
    the end; empty if their templates are unreadable, or their rendered payloads too large to be stored.

    The result depends on the arguments alone, so every leader makes the same jobs. They count as submitted at their
    nominal time. ``keyed_by`` are the keys of the limits per key of their definitions. They begin when the jobs
    ``after`` have ended, however these did. The jobs of a graph are never ``serial``: they may run beside each other.
    """
    try:
        template, graph = decode_jobs(schedule.get("job"), name)
    except InvalidInput:
        return []
    # Checked before rendering: a payload that is too large is never built.
    if schedule.get("render") and rendered_payload_bytes_max(name, schedule) > PAYLOAD_BYTES_MAX:
        return []
    fire = _Making(name, schedule, nominal_ms, keyed_by)
    if graph is None:
        job = fire.job(job_id, template, schedule.get("payload"), rendered=bool(schedule.get("render")))
        return [begins_after(after, replace(job, serial=serial))]
    payloads = schedule.get("payloads")
    ids = graph_job_ids(graph, job_id)
    jobs = []
    for made in graph.in_order:
        payload = payloads.get(made.ref) if isinstance(payloads, Mapping) else None
        waits_for = tuple(ids[ref] for ref in made.depends_on)
        job = fire.job(ids[made.ref], made.template, payload, rendered=made.render)
        jobs.append(begins_after(after, replace(job, depends_on=waits_for, waits_for=waits_for)))
    return jobs


def begins_after(jobs: Sequence[str], job: NewJob) -> NewJob:
    """``job`` as it waits until ``jobs`` have ended, however they did: what waits for others of its graph comes after
    them anyway."""
    return job if job.waits_for or not jobs else replace(job, waits_for=tuple(jobs), ignores_failures=True)


def graph_job_ids(graph: JobGraph, last_id: str) -> dict[str, str]:
    """By ref, the ids of the jobs of a graph whose last job is ``last_id``."""
    last = graph.last.ref
    return {job.ref: last_id if job.ref == last else graph_job_id(last_id, job.ref) for job in graph.jobs}


class _Making:
    """What all jobs of one nominal time have in common."""

    def __init__(self, name: str, schedule: Document, nominal_ms: WallMs, keyed_by: Sequence[str]) -> None:
        stored_labels, created_at_ms = schedule.get("labels"), schedule.get("created_at_ms")
        self._name = name
        self._labels = stored_labels if isinstance(stored_labels, dict) else {}
        self._created_at_ms = WallMs(created_at_ms) if is_integer(created_at_ms) else None
        self._nominal_ms = nominal_ms
        self._keyed_by = keyed_by

    def job(self, id: str, template: JobTemplate, payload: Any, *, rendered: bool) -> NewJob:
        target, labels = template.target_of(self._name), self._labels
        if rendered:
            payload = render(payload, placeholder_values(self._name, target, id, self._nominal_ms, labels))
        return NewJob(
            id=id,
            definition=template.definition,
            target=target,
            payload=payload,
            tenant=template.tenant,
            lane=template.lane,
            fairness_key=template.fairness_key,
            priority=template.priority,
            mode=template.mode,
            labels=labels,
            submitted_at_ms=self._nominal_ms,
            schedule=self._name,
            schedule_created_at_ms=self._created_at_ms,
            nominal_ms=self._nominal_ms,
            resources=template.resources,
            limit_keys=limit_keys(self._keyed_by, payload, target, labels),
        )


def require_storable_payload(payload: Payload, schedule: str, labels: Any, path: tuple[str | int, ...]) -> int:
    """The largest size of this payload in bytes; `InvalidInput` at ``path`` unless every job with it, of such a
    schedule, can be stored."""
    size = _payload_bytes_max(payload, schedule, labels)
    require_storable_size(size, path, rendered=payload.rendered)
    return size


def rendered_payload_bytes_max(name: object, schedule: Document) -> int:
    """The largest size of the payloads that a stored schedule renders; 0 if it renders none, or is unreadable.

    Of a graph, the size of all its payloads, rendered or not.
    """
    if not schedule.get("render") or not isinstance(name, str):
        return 0
    try:
        template, graph = decode_jobs(schedule.get("job"), name)
    except InvalidInput:
        return 0
    labels = schedule.get("labels")
    if graph is None:
        made = [Payload(schedule.get("payload"), template.target_of(name), rendered=True)]
    else:
        stored = schedule.get("payloads")
        payloads = stored if isinstance(stored, Mapping) else {}
        made = [Payload(payloads.get(job.ref), job.template.target_of(name), rendered=job.render) for job in graph.jobs]
    return sum(_payload_bytes_max(payload, name, labels) for payload in made)


def _payload_bytes_max(payload: Payload, schedule: str, labels: Any) -> int:
    if not payload.rendered:
        return json_bytes(payload.value)
    values = longest_values(schedule, payload.target, labels if isinstance(labels, dict) else {})
    return rendered_bytes_max(payload.value, values)


def jobs_waited_for(
    schedule: ScheduleRef, overlap: Overlap, live: Iterable[str], job_id: str, *, holds_slot: Callable[[str], bool]
) -> tuple[str, ...]:
    """Those of the schedule's ``live`` jobs (oldest first) that have to end before the job ``job_id``, and its graph,
    begin. Of more than `AFTER_MAX` those that hold a slot, and the newest of the others, which wait for older ones.

    None where no graph is among them: a single job waits for single ones by being serial. That is not enough for
    graphs, which hold no slot between two of their jobs. Fires that replace each other do not wait for a backfill, as
    none would come to its turn while that lasts.
    """
    others = [id for id in live if last_job_id(id) != job_id]
    if not overlap.is_serial or (schedule.graph is None and not any(map(is_before_last, others))):
        return ()
    if overlap is Overlap.CANCEL_RUNNING:
        others = [id for id in others if id.startswith(("fire:", "trigger:"))]
    if len(others) > AFTER_MAX:
        others.reverse()
        others.sort(key=holds_slot, reverse=True)  # which leaves equals as they are
    return tuple(others[:AFTER_MAX])


def fired_job(schedule: ScheduleRef, nominal_ms: WallMs) -> JobRef:
    """The job that a fire inserts, as the mirror will see it: the core may act on it before its echo arrives. Of a
    graph, the last job."""
    template, graph, id = schedule.template, schedule.graph, fire_job_id(schedule.name, nominal_ms)
    ids = {} if graph is None else graph_job_ids(graph, id)
    return JobRef(
        id=id,
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
        serial=graph is None and schedule.policy.overlap.is_serial,
        resources=template.resources,
        waits_for=() if graph is None else tuple(ids[ref] for ref in graph.last.depends_on),
        schedule_created_at_ms=schedule.created_at_ms,
    )


FIRED_ON = "fired_on"
"""The field in which the jobs of a graph before the last have the `fired_on` of their fire."""


def fired_on(basis: Basis) -> list[int | None]:
    """Which times were in force when a fire was decided. One that is lost, as they were edited, may be decided again:
    what cancels the jobs of the lost one must spare those of the other."""
    return [basis.since_ms, basis.paused_at_ms]


def new_fired_jobs(
    name: str, schedule: Document, nominal_ms: WallMs, keyed_by: Sequence[str] = (), after: Sequence[str] = ()
) -> list[NewJob]:
    """The jobs that a fire inserts, the last as the fire itself; empty if the stored ``schedule`` makes none: it was
    broken by hand, or an earlier release accepted a payload that is too large when rendered."""
    try:
        overlap = decode_policy(schedule.get("policy")).overlap
    except InvalidInput:
        return []
    id, serial = fire_job_id(name, nominal_ms), overlap.is_serial
    return jobs_from_schedule(name, schedule, id, nominal_ms, serial=serial, keyed_by=keyed_by, after=after)
