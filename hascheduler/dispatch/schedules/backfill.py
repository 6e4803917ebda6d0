"""The jobs that a backfill makes: one for each nominal time of a span that has no job and is not about to get one.

A nominal time is backfilled at most once, as the id of its job is made of it. A span has at most a thousand nominal
times, however long it is.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from hascheduler.dispatch.schedules.trigger_periods import may_still_fire
from hascheduler.errors import InvalidInput
from hascheduler.model.job import ScheduleId, backfill_job_id, fire_job_id
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.trigger import Trigger
from hascheduler.triggers import count_firing, excluded_until, next_nominal

BACKFILL_TIMES_MAX = 1_000
BACKFILL_EARLIEST_MS = 1_000_000_000_000
"""2001-09-09T01:46:40Z. From here on the ids of jobs sort by their nominal times, as all have the same length."""
_STEP = 100
_COUNTED_AT_ONCE_MS = 365 * 86_400_000


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """What a backfill does with the nominal times of its span.

    ``job_ids`` holds the job that each settled time has or gets, oldest first; ``missing`` are the settled times that
    have none yet. ``undecided`` counts the times that a leader has yet to decide: they are left alone, so that none
    gets a second job when it fires.
    """

    job_ids: Mapping[WallMs, str]
    missing: Sequence[WallMs]
    undecided: int


def backfill_times(
    trigger: Trigger, from_ms: int, to_ms: int, times_max: int = BACKFILL_TIMES_MAX
) -> Generator[None, None, list[WallMs]]:
    """Return the nominal times from ``from_ms`` through ``to_ms`` that are not excluded; ignore ``max_fires``.

    Yield after every few. If there are too many, raise `InvalidInput` with their number and the instant up to which
    they are few enough.
    """
    times: list[WallMs] = []
    nominal_ms = next_nominal(trigger, from_ms - 1)
    steps = 0
    while nominal_ms is not None and nominal_ms <= to_ms:
        until_ms = excluded_until(trigger, nominal_ms)
        if until_ms is None:
            times.append(nominal_ms)
            if len(times) > times_max:
                break
        nominal_ms = next_nominal(trigger, nominal_ms if until_ms is None else until_ms - 1)
        steps += 1
        if steps % _STEP == 0:
            yield
    if len(times) > times_max:
        count = yield from count_in_steps(trigger, from_ms, to_ms)
        problem = f"{count} nominal times, but at most {times_max} at once"
        last_instant = format_instant(times[times_max] - 1)
        raise InvalidInput(("to",), problem, f"at most {last_instant} ({times_max} times)")
    return times


def count_in_steps(
    trigger: Trigger, from_ms: int, through_ms: int, enough: int | None = None
) -> Generator[None, None, int]:
    """Count as `count_firing` does, a year at a time, until there are ``enough``."""
    count = 0
    for begin_ms in range(from_ms, through_ms + 1, _COUNTED_AT_ONCE_MS):
        if enough is not None and count >= enough:
            break
        yield
        count += count_firing(trigger, begin_ms, min(begin_ms + _COUNTED_AT_ONCE_MS - 1, through_ms))
    return count


def possible_job_ids(schedule: ScheduleId, times: Sequence[WallMs]) -> list[str]:
    """Return the ids under which ``times`` may have a job, made by a fire or a backfill."""
    fires = [fire_job_id(schedule.name, nominal_ms) for nominal_ms in times]
    return [*fires, *(id for nominal_ms in times for id in _backfill_ids(schedule, nominal_ms))]


def plan_backfill(
    schedule: ScheduleRef, times: Sequence[WallMs], makers: Mapping[str, ScheduleId | None], now: WallMs
) -> BackfillPlan:
    """Return what a backfill of ``times`` (ascending) does at ``now``.

    ``makers`` maps the id of each job that is kept under one of the `possible_job_ids` to the schedule that made it.
    Jobs of an earlier schedule of the same name do not count. Such a job may have the id that a backfill would take:
    then the new job gets an id that names the schedule's creation.
    """
    identity = schedule.identity
    own = {id for id, made_by in makers.items() if made_by is not None and made_by.is_same(identity)}
    job_ids: dict[WallMs, str] = {}
    missing: list[WallMs] = []
    undecided = 0
    may_fire = may_still_fire(schedule, times, now)
    for nominal_ms in times:
        fire_id, (first_id, second_id) = fire_job_id(identity.name, nominal_ms), _backfill_ids(identity, nominal_ms)
        known_id = next((id for id in (fire_id, second_id, first_id) if id in own), None)
        # A fire that is committed but not counted yet already has its job.
        if nominal_ms in may_fire and known_id != fire_id:
            undecided += 1
            continue
        job_ids[nominal_ms] = known_id or (second_id if first_id in makers else first_id)
        if known_id is None:
            missing.append(nominal_ms)
    return BackfillPlan(job_ids, missing, undecided)


def _backfill_ids(schedule: ScheduleId, nominal_ms: WallMs) -> tuple[str, str]:
    """Return the id of a backfill's job, and the id it gets if a job of an earlier schedule has the first."""
    name, created_at_ms = schedule.name, schedule.created_at_ms
    return backfill_job_id(name, nominal_ms), backfill_job_id(name, nominal_ms, created_at_ms)
