"""How many slots schedules are going to need: future fires times learned cost, in buckets of ten minutes.

Only jobs made by schedules count, all jobs of a fire from its time on. Work that finds no slot is not carried over. A
schedule whose fires do not overlap needs no more slots than one fire has jobs.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import add

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.schedule import JobTemplate, Overlap, ScheduleRef
from hascheduler.schema.trigger import Interval, Once, Trigger
from hascheduler.triggers import count_firing, next_firing, on_calendars

BUCKET_MS = 600_000
BUCKETS = 144
TRIGGERS_MAX = 4_000
"""The most different triggers that are read, as reading a cron expression is slow."""
_MINUTE_MS = 60_000
_SLICE = 64


@dataclass(frozen=True, slots=True)
class Load:
    """How many of the ``slots`` of ``definition`` each bucket needs; None stands for all slots and all jobs."""

    definition: str | None
    slots: int
    needed: Sequence[int]

    def too_much(self, from_ms: int) -> Iterator[tuple[int, int, int]]:
        """Yield the spans that need more slots than exist, each with the most that it needs."""
        for is_too_much, run in groupby(enumerate(self.needed), lambda each: each[1] > self.slots):
            if is_too_much:
                buckets, needed = zip(*run, strict=True)
                yield from_ms + buckets[0] * BUCKET_MS, from_ms + (buckets[-1] + 1) * BUCKET_MS, max(needed)


@dataclass(frozen=True, slots=True)
class LoadAhead:
    """The load of all slots, then of definitions with a cap, the fullest first; without ``left_out`` schedules."""

    from_ms: int
    loads: Sequence[Load]
    left_out: int


_Times = tuple[Trigger, int, int | None]
"""A trigger, the instant after which it fires, and how often it still may."""


def load_ahead(
    now: int,
    schedules: Sequence[ScheduleRef],
    slots: int,
    caps: Mapping[str, int],
    calendars: Mapping[str, Calendar],
    *,
    cost_ms: Callable[[JobTemplate, str], int],
) -> Generator[None, None, LoadAhead]:
    """Compute the load from the bucket of ``now`` on; ``cost_ms`` returns the cost of a schedule's job."""
    from_ms = now - now % BUCKET_MS
    to_ms = from_ms + BUCKETS * BUCKET_MS
    left_out = 0
    alike: dict[tuple[_Times, bool], tuple[list[ScheduleRef], dict[str, list[int]]]] = {}
    for place, schedule in enumerate(schedules):
        if place % _SLICE == _SLICE - 1:
            yield
        times = _times(schedule, now, to_ms)
        if times is None:
            continue
        key = times, schedule.policy.overlap is Overlap.ALLOW
        if len(alike) == TRIGGERS_MAX and key not in alike:
            left_out += 1
            continue
        members, jobs = alike.setdefault(key, ([], {}))
        members.append(schedule)
        graph = schedule.graph
        for template in [schedule.template] if graph is None else [job.template for job in graph.jobs]:
            known = jobs.setdefault(template.definition, [0, 0])
            known[0] += 1
            known[1] += cost_ms(template, schedule.name)
    work: dict[str | None, list[int]] = {None: [0] * BUCKETS}
    for (times, overlaps), (members, jobs) in alike.items():
        yield
        try:
            fires = list(_fires(*times, to_ms, calendars))
        except InvalidInput:
            left_out += len(members)
            continue
        for definition, (count, total_ms) in jobs.items():
            lasts_ms = times[0].jitter_ms + max(total_ms // count, 1)
            own = [0] * BUCKETS
            for at_ms, span_ms, often in fires:
                _spread(own, at_ms - from_ms, span_ms + lasts_ms, total_ms * often)
            if not overlaps:
                own = [min(each, count * BUCKET_MS) for each in own]
            for name in (None, definition) if definition in caps else (None,):
                work[name] = list(map(add, work.get(name, [0] * BUCKETS), own))
    needed = {name: [-(-each // BUCKET_MS) for each in buckets] for name, buckets in work.items()}
    capped = [Load(name, caps[name], each) for name, each in needed.items() if name is not None]
    capped.sort(key=lambda load: (-max(load.needed) / load.slots, load.definition))
    return LoadAhead(from_ms, [Load(None, slots, needed[None]), *capped], left_out)


def _times(schedule: ScheduleRef, now: int, to_ms: int) -> _Times | None:
    """Return what its fires depend on, to the minute so that many schedules share it; None if it does not fire."""
    trigger, after_ms = schedule.trigger, max(now, schedule.cursor_ms, schedule.since_ms)
    left = None if trigger.max_fires is None else trigger.max_fires - schedule.tally.fired
    if schedule.paused_at_ms is not None or after_ms >= to_ms or (left is not None and left <= 0):
        return None
    match trigger.pattern:
        case Interval(every_ms, anchor_ms):
            phase_ms = anchor_ms % every_ms // _MINUTE_MS * _MINUTE_MS
            trigger = replace(trigger, pattern=Interval(every_ms, WallMs(phase_ms)))
        case Once(at_ms):
            if not after_ms < at_ms < to_ms:
                return None
            trigger = replace(trigger, pattern=Once(WallMs(-(-at_ms // _MINUTE_MS) * _MINUTE_MS)))
    return trigger, after_ms, left


def _fires(
    trigger: Trigger, after_ms: int, left: int | None, to_ms: int, calendars: Mapping[str, Calendar]
) -> Iterator[tuple[int, int, int]]:
    """Yield spans with a number of fires: an instant for each fire, or a bucket if there are many."""
    trigger = on_calendars(trigger, calendars)
    count = count_firing(trigger, after_ms + 1, to_ms - 1)
    left = count if left is None else min(count, left)
    is_rare = left <= BUCKETS
    while left > 0 and after_ms < to_ms - 1:
        if is_rare:
            first_ms = after_ms = next_firing(trigger, after_ms) or to_ms
            here = 1
        else:
            first_ms = after_ms + 1
            after_ms = first_ms - first_ms % BUCKET_MS + BUCKET_MS - 1
            here = min(count_firing(trigger, first_ms, after_ms), left)
        yield first_ms, after_ms - first_ms, here
        left -= here


def _spread(buckets: list[int], begin_ms: int, span_ms: int, work_ms: int) -> None:
    """Add work evenly to the buckets that ``span_ms`` from ``begin_ms`` on overlaps."""
    end_ms = begin_ms + span_ms
    for bucket in range(begin_ms // BUCKET_MS, min(-(-end_ms // BUCKET_MS), BUCKETS)):
        overlap_ms = min(end_ms, (bucket + 1) * BUCKET_MS) - max(begin_ms, bucket * BUCKET_MS)
        buckets[bucket] += work_ms * overlap_ms // span_ms
