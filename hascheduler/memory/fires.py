"""Inserts the job of a nominal time and advances the cursor of its schedule.

A schedule that was made at or after a nominal time is another one by the same name: it neither fires for it nor has
its cursor moved.
"""

from typing import Any

from hascheduler.dispatch.decisions import Fire, Settlement
from hascheduler.errors import InvalidInput
from hascheduler.memory.database import Document, MemoryDatabase
from hascheduler.model.documents import Collection, decode_template, new_job_document
from hascheduler.model.job import NewJob


def fire(database: MemoryDatabase, decision: Fire) -> Settlement:
    """DONE when the job is there, now or before; LOST when its schedule is gone or makes no job."""
    schedule = database.find(Collection.SCHEDULES, decision.schedule)
    is_its_own = schedule is not None and _is_before(schedule.get("created_at_ms"), decision)
    document = _job_document(schedule, decision) if schedule is not None and is_its_own else None
    if document is not None:
        database.insert(Collection.JOBS, document)
    elif database.find(Collection.JOBS, decision.job_id) is None:
        return Settlement.LOST
    if schedule is not None and is_its_own and _is_before(schedule.get("cursor_ms"), decision):
        # Not an edit, so rev stays.
        database.update(Collection.SCHEDULES, schedule, {"cursor_ms": decision.nominal_ms})
    return Settlement.DONE


def _is_before(at_ms: object, decision: Fire) -> bool:
    return isinstance(at_ms, int) and at_ms < decision.nominal_ms


def _job_document(schedule: Document, decision: Fire) -> dict[str, Any] | None:
    labels = schedule.get("labels")
    try:
        template = decode_template(schedule.get("job"))
    except InvalidInput:
        return None
    return new_job_document(
        NewJob(
            id=decision.job_id,
            definition=template.definition,
            target=template.target,
            payload=schedule.get("payload"),
            tenant=template.tenant,
            lane=template.lane,
            fairness_key=template.fairness_key,
            priority=template.priority,
            mode=template.mode,
            labels=labels if isinstance(labels, dict) else {},
            # The nominal time, not now: every leader inserts the same document.
            submitted_at_ms=decision.nominal_ms,
            schedule=decision.schedule,
            nominal_ms=decision.nominal_ms,
        )
    )
