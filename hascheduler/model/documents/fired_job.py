"""The jobs that a schedule makes for a nominal time: as they are stored, and the last as a mirror will see it."""

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
"""The most jobs that one fire waits for: a journal entry, which may have a hundred such fires, must stay small."""
WORK_AT_ONCE_MAX = 4 * 1024 * 1024
"""The most `JobMaker.work` that may be done in one piece: it takes some milliseconds."""
_AS_BYTES = 160
"""The bytes of text that take as long to send as one placeholder to fill, or one value to copy and send."""


class Payload(NamedTuple):
    """The payload of a schedule for a job on ``target``; if ``rendered``, its placeholders are filled."""

    value: Any
    target: str
    rendered: bool


class JobMaker:
    """A maker of jobs for the nominal times of one stored ``schedule``, which it reads and measures once.

    They count as submitted at their nominal time. ``keyed_by`` are the keys of the limits per key of their definitions.
    ``size`` is the size of all their payloads, rendered or not. ``makes_jobs`` is false if the templates are
    unreadable, or the rendered payloads too large to be stored. Jobs expire, if they do, counted from
    ``expires_from_ms``, by default their nominal time.
    """

    def __init__(
        self, name: str, schedule: Document, keyed_by: Sequence[str] = (), expires_from_ms: WallMs | None = None
    ) -> None:
        stored_labels, created_at_ms = schedule.get("labels"), schedule.get("created_at_ms")
        self._name = name
        self._labels = stored_labels if isinstance(stored_labels, dict) else {}
        self._created_at_ms = WallMs(created_at_ms) if is_integer(created_at_ms) else None
        on_failure = schedule.get("on_failure")
        self._on_failure = on_failure if isinstance(on_failure, str) and on_failure else None
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
        # Values without placeholders are the same in each job.
        self._made = [
            made if size.placeholders else made._replace(payload=made.payload._replace(rendered=False))
            for made, size in zip(self._made, sizes, strict=True)
        ]
        # Measured before it is rendered: a payload that is too large is never built.
        is_too_large = bool(schedule.get("render")) and self.size.bytes > PAYLOAD_BYTES_MAX
        self.makes_jobs = bool(self._made) and not is_too_large

    @property
    def work(self) -> int:
        """Return the cost of making and sending the jobs of one time, in bytes of plain text."""
        return self.size.bytes + _AS_BYTES * (self.size.placeholders + self.size.values)

    def payloads(self, job_id: str, nominal_ms: WallMs) -> Any:
        """Return the rendered payload of ``job_id``, or those of a graph by ref; None if there is none to render."""
        if not any(made.payload.rendered for made in self._made):
            return None
        if self._graph is None:
            return self._payload(self._made[0].payload, job_id, nominal_ms)
        ids = graph_job_ids(self._graph, job_id)
        return {made.ref: self._payload(made.payload, ids[made.ref], nominal_ms) for made in self._made}

    def jobs(self, job_id: str, nominal_ms: WallMs, *, serial: bool, after: Sequence[str] = ()) -> list[NewJob]:
        """Return the jobs for ``nominal_ms``, each after those that it waits for; empty unless it ``makes_jobs``.

        The last job's id is ``job_id``. The result depends on the arguments alone, so every leader makes the same jobs.
        They begin when the jobs ``after`` have ended, however those ended. The jobs of a graph are never ``serial``:
        they may run at the same time.
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
            if job.on_failure is not None and job.id != job_id:
                job = replace(job, on_failure="")  # the last reports for all
            jobs.append(begins_after(after, replace(job, depends_on=waits_for, waits_for=waits_for)))
        return jobs

    def fired(self, nominal_ms: WallMs, after: Sequence[str] = ()) -> list[NewJob]:
        """Return the jobs that a fire inserts, the last as the fire itself.

        Empty if there are none: the schedule was broken by hand, or an earlier release accepted a payload that is too
        large when rendered.
        """
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
            on_failure=self._on_failure,
        )


class _Made(NamedTuple):
    """A job that each nominal time makes; a job of a graph with its place in it."""

    template: JobTemplate
    payload: Payload
    ref: str = ""
    depends_on: tuple[str, ...] = ()


def _made(name: str, schedule: Document) -> tuple[list[_Made], JobGraph | None]:
    """Return the jobs, each after those that it waits for; raise `InvalidInput` if their templates are unreadable."""
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
    """Return ``job``, waiting until ``jobs`` have ended, however they end.

    Jobs that wait for others of their graph are unchanged, because they begin later anyway.
    """
    return job if job.waits_for or not jobs else replace(job, waits_for=tuple(jobs), ignores_failures=True)


def graph_job_ids(graph: JobGraph, last_id: str) -> dict[str, str]:
    """Return by ref the ids of the jobs of a graph whose last job is ``last_id``."""
    last = graph.last.ref
    return {job.ref: last_id if job.ref == last else graph_job_id(last_id, job.ref) for job in graph.jobs}


def expires_at(template: JobTemplate, from_ms: WallMs) -> WallMs | None:
    """Return when a job whose span begins at ``from_ms`` expires, at most the latest possible instant; None: never."""
    return None if template.expires_in_ms is None else WallMs(min(from_ms + template.expires_in_ms, LATEST_MS))


def require_storable_payload(payload: Payload, schedule: str, labels: Any, path: tuple[str | int, ...]) -> RenderedSize:
    """Return the largest size of this payload; raise `InvalidInput` at ``path`` if some job with it can't be stored.

    It raises the same if the payload has too many placeholders.
    """
    size = _size(payload, schedule, labels)
    require_storable_size(size.bytes, path, rendered=payload.rendered)
    require_few_placeholders(size.placeholders, path)
    return size


def rendered_payload_bytes_max(name: object, schedule: Document) -> int:
    """Return the largest size of the payloads that a stored schedule renders; 0 if it renders none, or is unreadable.

    For a graph, that is the size of all its payloads, rendered or not.
    """
    return JobMaker(name, schedule).size.bytes if schedule.get("render") and isinstance(name, str) else 0


def _size(payload: Payload, schedule: str, labels: Any) -> RenderedSize:
    values = longest_values(schedule, payload.target, labels if isinstance(labels, dict) else {})
    return rendered_size(payload.value, values if payload.rendered else {})


def jobs_waited_for(
    schedule: ScheduleRef, overlap: Overlap, live: Iterable[str], job_id: str, *, holds_slot: Callable[[str], bool]
) -> tuple[str, ...]:
    """Return the ``live`` jobs of the schedule that must end before the job ``job_id`` and its graph begin.

    ``live`` is sorted, the oldest first. If there are more than `AFTER_MAX`, those that hold a slot, and the newest of
    the others, which wait for older ones.

    Empty if there is no graph among them: a single job waits for single ones by being serial. That is not enough for
    graphs, which hold no slot between two of their jobs. Fires that replace each other do not wait for a backfill,
    because none of them would get its turn during the backfill.
    """
    others = [id for id in live if last_job_id(id) != job_id]
    if not overlap.is_serial or (schedule.graph is None and not any(map(is_before_last, others))):
        return ()
    if overlap is Overlap.CANCEL_RUNNING:
        others = [id for id in others if id.startswith(("fire:", "trigger:"))]
    if len(others) > AFTER_MAX:
        others.reverse()
        others.sort(key=holds_slot, reverse=True)  # a stable sort
    return tuple(others[:AFTER_MAX])


def fired_job(schedule: ScheduleRef, nominal_ms: WallMs) -> JobRef:
    """Return the job that a fire inserts, of a graph the last, as the mirror will see it.

    The core may act on it before its echo arrives.
    """
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
        serial=graph is None and schedule.policy.overlap.is_serial,
        resources=template.resources,
        waits_for=() if graph is None else tuple(ids[ref] for ref in graph.last.depends_on),
        schedule_created_at_ms=schedule.created_at_ms,
        expires_at_ms=expires_at(template, nominal_ms),
    )


FIRED_ON = "fired_on"
"""The field in which the jobs of a graph before the last have the `fired_on` of their fire."""


def fired_on(basis: Basis) -> list[int | None]:
    """Return the fields that identify the times in force when a fire was decided.

    A fire that lost to an edit of the times may be decided again. Cancelling the jobs of the lost fire must spare those
    of the new one.
    """
    return [basis.since_ms, basis.paused_at_ms]
