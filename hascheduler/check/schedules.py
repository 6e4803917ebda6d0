"""A schedule's cursor follows the time: nothing is due for long and undecided, nothing is decided before its time.

And its jobs can be stored: releases before 0.2.0 accepted payloads that are too large once their placeholders are
filled.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hascheduler.check.config import CheckConfig
from hascheduler.check.finding import Finding, FindingKind, instant_or_ms, short_id
from hascheduler.dispatch.schedules.resets import reset_command
from hascheduler.dispatch.schedules.trigger_periods import undecided
from hascheduler.model.documents.fired_job import rendered_payload_bytes_max
from hascheduler.model.payload import PAYLOAD_BYTES_MAX
from hascheduler.model.schedule import ScheduleRef
from hascheduler.triggers import due_ms

PAYLOAD_FIELDS = ("job", "payload", "payloads", "render", "labels")


def check_cursor(schedule: ScheduleRef, now: int, config: CheckConfig, *, led: bool) -> Iterator[Finding]:
    """``led``: a replica leads, not paused, and should have decided. `InvalidInput` if the times can't be computed."""
    due_at_ms = _first_due(schedule, now - config.motion_ms) if led else None
    if due_at_ms is not None:
        behind_s = (now - due_at_ms) // 1_000
        yield Finding(
            FindingKind.OVERDUE,
            f"schedules/{schedule.name}",
            f"a nominal time has been due for {behind_s} s, and the cursor stands at"
            f" {instant_or_ms(schedule.cursor_ms)}",
            "look at the log of the leader (hascheduler cluster); if it decides nothing else either, restart it",
            since_ms=due_at_ms,
            witness=f"{schedule.rev} {schedule.cursor_ms}",
        )
    if schedule.cursor_ms > now + config.motion_ms:
        ahead_s = (schedule.cursor_ms - now) // 1_000
        yield Finding(
            FindingKind.CURSOR_AHEAD,
            f"schedules/{schedule.name}",
            f"its cursor stands {ahead_s} s in the future ({instant_or_ms(schedule.cursor_ms)}): until then it does"
            " not fire",
            "compare the clocks of the replicas and of MongoDB; times were decided too early. When the"
            f" clocks are right: {reset_command(schedule)}",
            witness=f"{schedule.rev}",
        )


def check_payload(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Findings about a schedule that renders its payload: ``document`` has the fields of `PAYLOAD_FIELDS`."""
    size = rendered_payload_bytes_max(document["_id"], document)
    if size > PAYLOAD_BYTES_MAX:
        yield Finding(
            FindingKind.PAYLOAD_TOO_LARGE,
            f"schedules/{short_id(document['_id'])}",
            f"its payload has up to {size} bytes with its placeholders filled, and no job can have more than"
            f" {PAYLOAD_BYTES_MAX}: its nominal times become unstorable",
            "replace its payload (hascheduler schedule edit), then make up for the jobs with a backfill",
        )


def _first_due(schedule: ScheduleRef, now: int) -> int | None:
    """When the first undecided time was due, if that is past. Times that don't fire are decided with their period."""
    for times in undecided(schedule, schedule.cursor_ms, now, schedule.offsets):
        fires_max = times.trigger.max_fires
        first_ms = times.first() if fires_max is None or schedule.tally.fired < fires_max else None
        if first_ms is None:
            continue
        if times.verdict is not None:
            # A period that goes on is cut off at now.
            return times.through_ms + 1 if times.through_ms < now else None
        at_ms = due_ms(schedule.name, times.trigger, first_ms)
        return at_ms if at_ms <= now else None
    return None
