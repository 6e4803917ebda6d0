"""Changes with only what matters spelled out."""

from typing import Any

from hascheduler.mirror.changes import Change, Operation
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.job_template import encode_template
from hascheduler.model.documents.leadership import encode_hold
from hascheduler.model.documents.trigger import encode_trigger
from hascheduler.model.job import NewJob
from hascheduler.model.partition import Hold, partition_key, partition_of
from hascheduler.model.values.fields import Document
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.schedule import JobTemplate
from hascheduler.schema.trigger import Interval, Trigger


def put(collection: Collection, id: object, fields: Document) -> Change:
    return Change(collection, Operation.PUT, id, {name: fields[name] for name in fields if name != "_id"})


def patch(collection: Collection, id: object, **fields: Any) -> Change:
    return Change(collection, Operation.PATCH, id, fields)


def delete(collection: Collection, id: object) -> Change:
    return Change(collection, Operation.DELETE, id, {})


def job_fields(**only_what_matters: Any) -> dict[str, Any]:
    plain = new_job_document(
        NewJob("j", "log", "target", None, "tenant", "default", "", 5, "queued", {}, WallMs(1_000))
    )
    return {**plain, **only_what_matters}


def schedule_fields(**only_what_matters: Any) -> dict[str, Any]:
    template = JobTemplate("log", "target", "tenant", "default", "", 5, "queued")
    trigger = encode_trigger(Trigger(Interval(1_000, WallMs(0))))
    plain = {
        "rev": 1,
        "trigger": trigger,
        "job": encode_template(template, "s"),
        "cursor_ms": 500,
        "created_at_ms": 500,
    }
    return {**plain, **only_what_matters}


def held(tenant: str, rev: int, *, is_held: bool = True, is_silent: bool = True) -> Change:
    hold = Hold(partition_key(partition_of(tenant)), rev, is_held, is_silent)
    return put(Collection.HOLDS, hold.key, encode_hold(hold))


def processor_fields(**only_what_matters: Any) -> dict[str, Any]:
    plain = {
        "name": "p", "shard": "default", "definitions": ["*"], "slots": 2, "beat": 1, "draining": False, "parked": 0,
    }  # fmt: skip
    return {**plain, **only_what_matters}


def lease_fields(**only_what_matters: Any) -> dict[str, Any]:
    plain = {
        "holder": "a", "term": 1, "renewals": 0, "endpoint": "", "acquired_at_ms": 0, "renewed_at_ms": 0,
        "lease_duration_ms": 10_000, "transitions": 0,
    }  # fmt: skip
    return {**plain, **only_what_matters}


def entry_fields(**only_what_matters: Any) -> dict[str, Any]:
    return {"term": 1, "kind": "decisions", "holder": "a", "applied_through": 0, **only_what_matters}
