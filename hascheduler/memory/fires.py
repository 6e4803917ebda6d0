"""Inserts the job of a nominal time and advances the cursor of its schedule.

A schedule that was made at or after a nominal time is another one by the same name: it neither fires for it nor has
its cursor moved.
"""

from hascheduler.dispatch.decisions import Fire, Settlement
from hascheduler.memory.database import MemoryDatabase
from hascheduler.model.documents import Collection, fired_job_document


def fire(database: MemoryDatabase, decision: Fire) -> Settlement:
    """DONE when the job is there, now or before; LOST when its schedule is gone or makes no job."""
    schedule = database.find(Collection.SCHEDULES, decision.schedule)
    is_its_own = schedule is not None and _is_before(schedule.get("created_at_ms"), decision)
    document = schedule and fired_job_document(decision.schedule, schedule, decision.nominal_ms)
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
