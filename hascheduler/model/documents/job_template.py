"""The field ``job`` of a stored schedule: the template of the one job that a fire makes, or those of a graph of jobs.

A graph is ``{tenant, jobs: [{ref, depends_on, render, …a template}, …]}``, as written. It lacks the fields of a single
template, so a release that does not know graphs quarantines the schedule, and does not fire one job of several.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.resources import decode_resources
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import Document, as_document, integer, shared_text, text
from hascheduler.schema.schedule import (
    GRAPH_JOBS_MAX,
    GRAPH_JOBS_MIN,
    REF_EXPECTED,
    GraphJob,
    JobGraph,
    JobTemplate,
    graph_order,
    is_ref,
)

_SHARED_MAX = 4_096


def encode_jobs(template: JobTemplate, graph: JobGraph | None, schedule: str) -> dict[str, Any]:
    """Return the field ``job`` of the schedule of that name."""
    if graph is None:
        return encode_template(template, schedule)
    return {"tenant": template.tenant, "jobs": [_encode_graph_job(job, schedule) for job in graph.jobs]}


def decode_jobs(stored: object, schedule: str) -> tuple[JobTemplate, JobGraph | None]:
    """Return the template of the job that stands for a fire, and the graph if that job is the last of one."""
    fields = as_document(stored)
    if fields is not None and "jobs" in fields:
        graph = _decode_graph(fields, schedule)
        return graph.last.template, graph
    return decode_template(fields, schedule), None


def encode_template(template: JobTemplate, schedule: str) -> dict[str, Any]:
    """Return the template of the schedule of that name."""
    return {
        "definition": template.definition,
        "target": template.target_of(schedule),
        "tenant": template.tenant,
        "lane": template.lane,
        "fairness_key": template.fairness_key,
        "priority": template.priority,
        "mode": template.mode,
        "resources": None if template.resources is None else dict(template.resources),
    } | ({} if template.expires_in_ms is None else {"expires_in_ms": template.expires_in_ms})


def decode_template(stored: object, schedule: str) -> JobTemplate:
    """Return the template. Equal templates are mostly one object, because many schedules have the same."""
    fields = as_document(stored)
    if fields is None:
        raise InvalidInput(("job",), "not an object")
    target = text(fields, "target")
    if target != schedule or fields.get("resources") is not None:
        return _decode_template(fields, None if target == schedule else target)
    try:
        return _shared_template(*map(fields.get, _SHARED_FIELDS))
    except (InvalidInput, TypeError):  # also if a value can't be hashed; `_decode_template` names the wrong field
        return _decode_template(fields, None)


def _decode_template(fields: Document, target: str | None) -> JobTemplate:
    return JobTemplate(
        definition=shared_text(fields, "definition"),
        target=target,
        tenant=shared_text(fields, "tenant"),
        lane=shared_text(fields, "lane"),
        fairness_key=shared_text(fields, "fairness_key", empty=True),
        priority=integer(fields, "priority"),
        mode=shared_text(fields, "mode"),
        resources=None if fields.get("resources") is None else decode_resources(fields["resources"]),
        expires_in_ms=None if fields.get("expires_in_ms") is None else integer(fields, "expires_in_ms"),
    )


def _encode_graph_job(job: GraphJob, schedule: str) -> dict[str, Any]:
    named = {"ref": job.ref, "depends_on": list(job.depends_on), "render": job.render}
    return {**named, **encode_template(job.template, schedule)}


def _decode_graph(fields: Document, schedule: str) -> JobGraph:
    stored = fields["jobs"]
    if not isinstance(stored, list) or not GRAPH_JOBS_MIN <= len(stored) <= GRAPH_JOBS_MAX:
        raise InvalidInput(("job", "jobs"), "not a list", f"{GRAPH_JOBS_MIN} to {GRAPH_JOBS_MAX} objects")
    tenant = text(fields, "tenant")
    jobs = tuple(_decode_graph_job(each, number, schedule) for number, each in enumerate(stored))
    for number, job in enumerate(jobs):
        if job.template.tenant != tenant:
            raise InvalidInput(("job", "jobs", number, "tenant"), quoted(job.template.tenant), quoted(tenant))
    try:
        return JobGraph(jobs, graph_order([(job.ref, job.depends_on) for job in jobs]))
    except InvalidInput as error:
        raise InvalidInput(("job", *error.path), error.problem, error.expected) from None


def _decode_graph_job(fields: object, number: int, schedule: str) -> GraphJob:
    path = ("job", "jobs", number)
    if not isinstance(fields, Mapping):
        raise InvalidInput(path, "not an object")
    ref, depends_on = text(fields, "ref"), fields.get("depends_on")
    if not is_ref(ref):
        raise InvalidInput((*path, "ref"), f"{quoted(ref)} is not a valid ref", REF_EXPECTED)
    if not isinstance(depends_on, list) or not all(isinstance(each, str) for each in depends_on):
        raise InvalidInput((*path, "depends_on"), f"{str(depends_on)[:64]}", "a list of refs")
    return GraphJob(ref, tuple(depends_on), decode_template(fields, schedule), bool(fields.get("render")))


_SHARED_FIELDS = ("definition", "tenant", "lane", "fairness_key", "priority", "mode", "expires_in_ms")


@lru_cache(_SHARED_MAX, typed=True)  # True equals 1, but is no priority
def _shared_template(*values: Any) -> JobTemplate:
    return _decode_template(dict(zip(_SHARED_FIELDS, values, strict=True)), None)
