"""The jobs that a schedule makes for a nominal time: as they are stored, and as a mirror will see the last of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from hascheduler.errors import InvalidInput
from hascheduler.model.documents.job_template import decode_jobs
from hascheduler.model.documents.schedule import decode_policy
from hascheduler.model.documents.trigger import stored_zone
from hascheduler.model.job import JobRef, JobState, NewJob, fire_job_id, graph_job_id, is_before_last, last_job_id
from hascheduler.model.limit_keys import limit_keys
from hascheduler.model.payload import (
    NOTHING,
    PAYLOAD_BYTES_MAX,
    RenderedSize,
    longest_values,
    placeholder_values,
    render,
    rendered_size,
    require_few_placeholders,
    require_storable_size,
)
from hascheduler.model.values.fields import Document, is_integer
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.schema.schedule import Basis, GraphJob, JobGraph, JobTemplate, Overlap, ScheduleRef

AFTER_MAX = 100
"""Jobs that one fire waits for: an entry of the journal, which may have a hundred such fires, has to stay small."""
WORK_AT_ONCE_MAX = 4 * 1024 * 1024
"""The `JobMaker.work` that may be done in one piece: some milliseconds."""
_AS_BYTES = 160
"""To fill a placeholder, or to copy and send a value of any kind, takes as long as to send so many bytes of text."""


class Payload(NamedTuple):
    """The payload of a schedule for a job on ``target``; ``rendered``: its placeholders are filled."""

    value: Any
    target: str
    rendered: bool


class JobMaker:
    """Makes the jobs of the nominal times of one stored ``schedule``, which it reads and measures once.

    They count as submitted at their nominal time. ``keyed_by`` are the keys of the limits per key of their definitions.
    ``size`` is that of all their payloads, rendered or not. ``makes_jobs`` is false if the templates are unreadable, or
    the rendered payloads too large to be stored. What expires does so after ``expires_from_ms``, by default its nominal
    time.
    """

    def __init__(
        self, name: str, schedule: Document, keyed_by: Sequence[str] = (), expires_from_ms: WallMs | None = None
    ) -> None:
        stored_labels, created_at_ms = schedule.get("labels"), schedule.get("created_at_ms")
        self._name = name
        self._labels = stored_labels if isinstance(stored_labels, dict) else {}
        self._created_at_ms = WallMs(created_at_ms) if is_integer(created_at_ms) else None
        self._keyed_by = keyed_by
        self._expires_from_ms = expires_from_ms
        self._zone = stored_zone(schedule.get("trigger"))
        self._policy = schedule.get("policy")
        self._graph: JobGraph | None = None
        self._made: Sequence[_Made] = ()
        self.size = NOTHING
        with suppress(InvalidInput):
            self._made, self._graph = _made(name, schedule)
        sizes = [_size(made.payload, name, self._labels) for made in self._made]
        for size in sizes:
            self.size += size
        # What has no placeholder is the same in each job.
        self._made = [
            made if size.placeholders else made._replace(payload=made.payload._replace(rendered=False))
            for made, size in zip(self._made, sizes, strict=True)
        ]
        # Measured before it is rendered: a payload that is too large is never built.
        is_too_large = bool(schedule.get("render")) and self.size.bytes > PAYLOAD_BYTES_MAX
        self.makes_jobs = bool(self._made) and not is_too_large

    @property
    def work(self) -> int:
        """What it costs to make the jobs of one time and to send them, in bytes of plain text."""
        return self.size.bytes + _AS_BYTES * (self.size.placeholders + self.size.values)

    def payloads(self, job_id: str, nominal_ms: WallMs) -> Any:
        """The rendered payload of the job ``job_id``; of a graph, those by ref. None if there is none to render."""
        if not any(made.payload.rendered for made in self._made):
            return None
        if self._graph is None:
            return self._payload(self._made[0].payload, job_id, nominal_ms)
        ids = graph_job_ids(self._graph, job_id)
        return {made.ref: self._payload(made.payload, ids[made.ref], nominal_ms) for made in self._made}

    def jobs(self, job_id: str, nominal_ms: WallMs, *, serial: bool, after: Sequence[str] = ()) -> list[NewJob]:
        """The jobs for ``nominal_ms``, each after those that it waits for, ``job_id`` at the end; empty unless it
        ``makes_jobs``.

        The result depends on the arguments alone, so every leader makes the same jobs. They begin when the jobs
        ``after`` have ended, however these did. The jobs of a graph are never ``serial``: they may run beside each
        other.
        """
        if not self.makes_jobs:
            return []
        if self._graph is None:
            return [begins_after(after, replace(self._job(job_id, self._made[0], nominal_ms), serial=serial))]
        ids = graph_job_ids(self._graph, job_id)
        jobs = []
        for made in self._made:
            waits_for = tuple(ids[ref] for ref in made.depends_on)
            job = self._job(ids[made.ref], made, nominal_ms)
            jobs.append(begins_after(after, replace(job, depends_on=waits_for, waits_for=waits_for)))
        return jobs

    def fired(self, nominal_ms: WallMs, after: Sequence[str] = ()) -> list[NewJob]:
        """The jobs that a fire inserts, the last as the fire itself; empty if there are none: the schedule was broken
        by hand, or an earlier release accepted a payload that is too large when rendered."""
        try:
            overlap = decode_policy(self._policy).overlap
        except InvalidInput:
            return []
        return self.jobs(fire_job_id(self._name, nominal_ms), nominal_ms, serial=overlap.is_serial, after=after)

    def _payload(self, payload: Payload, id: str, nominal_ms: WallMs) -> Any:
        if not payload.rendered:
            return payload.value
        values = placeholder_values(self._name, payload.target, id, nominal_ms, zone=self._zone, labels=self._labels)
        return render(payload.value, values)

    def _job(self, id: str, made: "_Made", nominal_ms: WallMs) -> NewJob:
        template, target, labels = made.template, made.payload.target, self._labels
        payload = self._payload(made.payload, id, nominal_ms)
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
            submitted_at_ms=nominal_ms,
            schedule=self._name,
            schedule_created_at_ms=self._created_at_ms,
            nominal_ms=nominal_ms,
            resources=template.resources,
            limit_keys=limit_keys(self._keyed_by, payload, target, labels),
            expires_at_ms=expires_at(template, nominal_ms if self._expires_from_ms is None else self._expires_from_ms),
        )


class _Made(NamedTuple):
    """A job that each nominal time makes; of a graph, with its place in it."""

    template: JobTemplate
    payload: Payload
    ref: str = ""
    depends_on: tuple[str, ...] = ()


def _made(name: str, schedule: Document) -> tuple[list[_Made], JobGraph | None]:
    """The jobs, each after those that it waits for; `InvalidInput` if their templates are unreadable."""
    template, graph = decode_jobs(schedule.get("job"), name)
    if graph is None:
        rendered = bool(schedule.get("render"))
        return [_Made(template, Payload(schedule.get("payload"), template.target_of(name), rendered))], None
    stored = schedule.get("payloads")
    payloads = stored if isinstance(stored, Mapping) else {}

    def made(job: GraphJob) -> _Made:
        payload = Payload(payloads.get(job.ref), job.template.target_of(name), job.render)
        return _Made(job.template, payload, job.ref, tuple(job.depends_on))

    return [made(job) for job in graph.in_order], graph


def begins_after(jobs: Sequence[str], job: NewJob) -> NewJob:
    """``job`` as it waits until ``jobs`` have ended, however they did: what waits for others of its graph comes after
    them anyway."""
    return job if job.waits_for or not jobs else replace(job, waits_for=tuple(jobs), ignores_failures=True)


def graph_job_ids(graph: JobGraph, last_id: str) -> dict[str, str]:
    """By ref, the ids of the jobs of a graph whose last job is ``last_id``."""
    last = graph.last.ref
    return {job.ref: last_id if job.ref == last else graph_job_id(last_id, job.ref) for job in graph.jobs}


def expires_at(template: JobTemplate, from_ms: WallMs) -> WallMs | None:
    """When a job whose span begins at ``from_ms`` expires, at most the latest instant there is; None: never."""
    return None if template.expires_in_ms is None else WallMs(min(from_ms + template.expires_in_ms, LATEST_MS))


def require_storable_payload(payload: Payload, schedule: str, labels: Any, path: tuple[str | int, ...]) -> RenderedSize:
    """The largest size of this payload; `InvalidInput` at ``path`` unless every job with it, of such a schedule, can be
    stored, and it has few placeholders."""
    size = _size(payload, schedule, labels)
    require_storable_size(size.bytes, path, rendered=payload.rendered)
    require_few_placeholders(size.placeholders, path)
    return size


def rendered_payload_bytes_max(name: object, schedule: Document) -> int:
    """The largest size of the payloads that a stored schedule renders; 0 if it renders none, or is unreadable.

    Of a graph, the size of all its payloads, rendered or not.
    """
    return JobMaker(name, schedule).size.bytes if schedule.get("render") and isinstance(name, str) else 0


def _size(payload: Payload, schedule: str, labels: Any) -> RenderedSize:
    values = longest_values(schedule, payload.target, labels if isinstance(labels, dict) else {})
    return rendered_size(payload.value, values if payload.rendered else {})


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
        expires_at_ms=expires_at(template, nominal_ms),
    )


FIRED_ON = "fired_on"
"""The field in which the jobs of a graph before the last have the `fired_on` of their fire."""


def fired_on(basis: Basis) -> list[int | None]:
    """Which times were in force when a fire was decided. One that is lost, as they were edited, may be decided again:
    what cancels the jobs of the lost one must spare those of the other."""
    return [basis.since_ms, basis.paused_at_ms]
