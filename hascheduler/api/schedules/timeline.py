"""``/v1/timeline``: a row for each schedule, with its recent times and those to come.

The past comes from jobs and verdicts, by schedule along their ids, the newest `_RECORDS_MAX` of a page at most. The
times to come are computed, and only counted if there are more than `TIMES_MAX`. The load of all schedules is added.
"""

import asyncio
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Caller, Viewer
from hascheduler.api.routing.queries import PAGE_SIZE_MAX, LabelsQuery, NextPage, PageQuery, run_in_slices
from hascheduler.api.schedules.selection import first_names, page_of_schedules
from hascheduler.api.services import ApiServices, Services
from hascheduler.dispatch.schedules.load_ahead import BUCKET_MS, Load, LoadAhead, load_ahead
from hascheduler.dispatch.schedules.trigger_periods import decided_through_ms
from hascheduler.errors import InvalidInput
from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.model.job import LIVE, JobState
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.model.verdict import FireCounts, Verdict
from hascheduler.ports import ClusterView, VerdictRecord
from hascheduler.schema.definition import DEFAULT_COST_MS
from hascheduler.schema.filters import ScheduleFilter
from hascheduler.schema.forms import instant_text, span
from hascheduler.schema.noun import AS_REQUEST
from hascheduler.schema.schedule import JobTemplate, ScheduleRef
from hascheduler.triggers import count_firing, due_ms, next_firing, with_calendars

router = APIRouter(prefix="/timeline", tags=["schedules"])

TIMES_MAX = 50
"""Times ahead that are listed one by one."""
BUCKETS = 96
_DAY_MS = 86_400_000
_PAGE_DEFAULT = 50
_RECORDS_MAX = 20_000
_RECORDS_OF_ONE_MAX = 1_000
_READERS = 4
_ROWS_SLICE = 4
_LOADS_MAX = 20
_LOAD_EVERY_MS = 60_000
_FIRED = frozenset({Verdict.FIRED, Verdict.UNSTORABLE})
_NOT_FIRED = frozenset(Verdict) - _FIRED
_EXAMPLE: JsonDict = {
    "items": [
        {
            "name": "backup",
            "paused": False,
            "expected_ms": 900_000,
            "fired": [[32, 1, 0, 0], [80, 1, 1, 1]],
            "passed_over": [
                {"verdict": "missed", "from_ms": 1_893_420_000_000, "to_ms": 1_893_423_600_000, "count": 2}
            ],
            "known_since_ms": 1_893_369_600_000,
            "ahead_ms": [1_893_466_800_000],
            "ahead_count": 1,
            "note": None,
        }
    ],
    "now": "2030-01-01T00:00:00.000Z",
    "from_ms": 1_893_369_600_000,
    "to_ms": 1_893_542_400_000,
    "bucket_ms": 900_000,
    "load": {
        "items": [],
        "too_much": [],
        "used": [3, 5],
        "from_ms": 1_893_456_000_000,
        "bucket_ms": BUCKET_MS,
        "left_out": 0,
    },
    "next": None,
}


class TimelineQuery(LabelsQuery, PageQuery):
    limit: int = Field(default=_PAGE_DEFAULT, ge=1, le=PAGE_SIZE_MAX, description="The most rows")
    behind: Annotated[int, span(0, 7 * _DAY_MS, of_query=True)] = Field(
        default="24h", validate_default=True, description="How far back to look, at most `7d`", examples=["24h"]
    )
    ahead: Annotated[int, span(0, 7 * _DAY_MS, of_query=True)] = Field(
        default="24h", validate_default=True, description="How far ahead to look, at most `7d`", examples=["24h"]
    )
    text: str | None = Field(
        default=None,
        min_length=1,
        max_length=128,
        description="Only schedules whose name contains this text, in upper or lower case",
    )


class PassedOver(BaseModel):
    """A run of nominal times that did not fire."""

    verdict: Verdict = Field(description="Their verdict")
    from_ms: int = Field(description="The first nominal time")
    to_ms: int = Field(description="The last nominal time")
    count: int = Field(description="How many nominal times")


class ScheduleTimeline(BaseModel):
    """A schedule. Instants are in milliseconds since 1970."""

    name: str = Field(description="The name of the schedule")
    paused: bool = Field(description="True if it is paused: it does not fire until it is resumed")
    expected_ms: int = Field(description="How long the job of a fire is expected to run; of several, the last of them")
    fired: list[list[int]] = Field(
        description="[bucket, fired, late, failed]: how many times of the bucket fired, how many of these started, or "
        "have not started yet, later than the misfire grace, and how many jobs failed"
    )
    passed_over: list[PassedOver] = Field(description="Runs of times that did not fire, newest first")
    known_since_ms: int = Field(description="The start of what is shown, if there is too much before it")
    ahead_ms: list[int] = Field(
        description=f"The due times to come, with jitter; empty if there are more than {TIMES_MAX} times"
    )
    ahead_count: int = Field(description="How many fires are to come")
    note: str | None = Field(description="Why its times to come are unknown")


class DefinitionLoad(BaseModel):
    definition: str | None = Field(description="The definition; null: all jobs")
    slots: int = Field(description="Its `max_concurrency`; for all jobs: the slots of live processors")
    needed: list[int] = Field(description="The slots needed in each bucket")


class ExcessResponse(BaseModel):
    from_ms: int = Field(description="When more slots start to be needed than there are")
    to_ms: int = Field(description="When that ends")
    summary: str = Field(description="A sentence such as: definition `log` needs 6 of its 4 slots")


class LoadResponse(BaseModel):
    """The expected load: fires of the next 24 hours times learned cost, without submitted, running or waiting jobs."""

    items: list[DefinitionLoad] = Field(description=f"All jobs, then the {_LOADS_MAX} fullest definitions with a cap")
    too_much: list[ExcessResponse] = Field(
        description="The periods in which they need more slots than there are, in order of time"
    )
    used: list[int] = Field(
        description="The most jobs that ran at once in each bucket before now, oldest first: at most a day, and none "
        "from before this replica started; empty for tokens of one tenant"
    )
    from_ms: int = Field(description="The start of the first bucket, which contains now")
    bucket_ms: int = Field(description="The length of a bucket")
    left_out: int = Field(
        description="How many schedules are not counted, because a calendar is missing or there are too many triggers"
    )


class TimelineResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    items: list[ScheduleTimeline] = Field(description="The schedules by name")
    now: str = Field(description="The instant between past and future")
    from_ms: int = Field(description="The start of the first bucket")
    to_ms: int = Field(description="The end of the future shown")
    bucket_ms: int = Field(description=f"The length of a bucket: there are {BUCKETS} from `from_ms` to now")
    load: LoadResponse = Field(description="The slots that the fires to come need, for all schedules")
    next: NextPage


@router.get("", responses=problem_responses(422))
async def get_timeline(
    query: Annotated[TimelineQuery, Query(), AS_REQUEST], services: Services, caller: Viewer
) -> TimelineResponse:
    """List all schedules on one time axis: what fired, was late or did not fire, and what is to come.

    A page may hold fewer than `limit` rows and have a `next`: go on until that is null.
    """
    now = services.clock.wall_ms()
    schedules, next = await _page(query, caller, services)
    from_ms = max(now - query.behind, 0)
    bucket_ms = max(-(-(now - from_ms) // BUCKETS), 1)
    known = await _known(schedules, from_ms, now, services)
    to_ms = min(now + query.ahead, LATEST_MS - 1)
    load: LoadAhead = await services.recent.get(
        "load", services.clock, lambda: run_in_slices(_load_ahead(services)), every_ms=_LOAD_EVERY_MS, is_limited=False
    )
    return TimelineResponse(
        items=await run_in_slices(_rows(known, services, from_ms=from_ms, bucket_ms=bucket_ms, now=now, to_ms=to_ms)),
        now=instant_text(now),
        from_ms=from_ms,
        to_ms=to_ms,
        bucket_ms=bucket_ms,
        load=shown_load(load, services.view.history().most_running() if caller.only is None else ()),
        next=next,
    )


# The page


async def _page(query: TimelineQuery, caller: Caller, services: ApiServices) -> tuple[list[ScheduleRef], str | None]:
    """Return the schedules of the page, and the cursor of the next one."""
    filter = ScheduleFilter(text=query.text, labels=query.labels())
    if not filter.labels:
        names = await first_names(filter, caller.only, services, query.limit + 1, after=query.after)
        shown = names[: query.limit]
        known = services.view.schedules()
        return [known[name] for name in shown if name in known], shown[-1] if len(names) > query.limit else None
    documents, _, next = await page_of_schedules(filter, query, caller, services)
    kept: list[ScheduleRef] = []
    for document in documents:
        await asyncio.sleep(0)  # a trigger may list ten thousand times
        with suppress(InvalidInput):  # an unreadable schedule never fires; the list of schedules names it
            kept.append(decode_schedule(document["_id"], document))
    return kept, next


# The past


@dataclass(frozen=True, slots=True)
class _Known:
    """The known past of a schedule: ``records``, newest first, since ``since_ms``."""

    schedule: ScheduleRef
    records: Sequence[VerdictRecord]
    since_ms: int

    def fired(self, from_ms: int, bucket_ms: int, now: int) -> list[list[int]]:
        fired: Counter[int] = Counter()
        late: Counter[int] = Counter()
        failed: Counter[int] = Counter()
        allowed_ms = self.schedule.policy.grace_ms + self.schedule.trigger.jitter_ms
        for record in self.records:
            if record.run.verdict is Verdict.FIRED:
                nominal_ms = record.run.first_ms
                bucket = min((nominal_ms - from_ms) // bucket_ms, BUCKETS - 1)
                fired[bucket] += 1
                began_ms = now if record.began_at_ms is None else record.began_at_ms
                never_began = record.began_at_ms is None and record.job_state not in LIVE
                late[bucket] += not never_began and began_ms - nominal_ms > allowed_ms
                failed[bucket] += record.job_state is JobState.FAILED
        return [[bucket, fired[bucket], late[bucket], failed[bucket]] for bucket in sorted(fired)]

    def passed_over(self) -> list[PassedOver]:
        runs = (record.run for record in self.records if record.run.verdict is not Verdict.FIRED)
        return [
            PassedOver(verdict=run.verdict, from_ms=run.first_ms, to_ms=run.last_ms, count=run.count) for run in runs
        ]


async def _known(schedules: Sequence[ScheduleRef], from_ms: int, now: WallMs, services: ApiServices) -> list[_Known]:
    """Return the known past of each."""
    most = min(_RECORDS_OF_ONE_MAX, max(_RECORDS_MAX // max(len(schedules), 1), 1))
    found = await read_past(schedules, from_ms, now, services, most)
    return [
        _Known(each, records, records[-1].run.first_ms if len(records) == most else from_ms)
        for each in schedules
        for records in (found[each.name],)
    ]


async def read_past(
    schedules: Sequence[ScheduleRef], from_ms: int, now: WallMs, services: ApiServices, most: int
) -> Mapping[str, Sequence[VerdictRecord]]:
    """Return the newest ``most`` decided times of each by name, read a few at a time, so that few connections wait."""
    found: dict[str, Sequence[VerdictRecord]] = {}

    async def read(left: Iterable[ScheduleRef]) -> None:
        for schedule in left:
            after_ms = WallMs(max(from_ms - 1, schedule.created_at_ms))
            decided = _decided(schedule) if schedule.cursor_ms > after_ms else frozenset[Verdict]()
            found[schedule.name] = (
                await services.verdicts.list(schedule.identity, decided, after_ms, WallMs(now + 1), most)
                if decided
                else []
            )

    left = iter(schedules)
    async with asyncio.TaskGroup() as readers:
        for _ in range(_READERS):
            readers.create_task(read(left))
    return found


def _decided(schedule: ScheduleRef) -> frozenset[Verdict]:
    """Return the verdicts that its times may have: each of the two kinds of records is read only if there are some."""
    tally = schedule.tally
    fired = _FIRED if tally.fired else frozenset[Verdict]()
    return fired | _NOT_FIRED if tally != FireCounts(fired=tally.fired) else fired


# Rows


def _rows(
    known: Sequence[_Known], services: ApiServices, *, from_ms: int, bucket_ms: int, now: WallMs, to_ms: int
) -> Generator[None, None, list[ScheduleTimeline]]:
    rows: list[ScheduleTimeline] = []
    for number, each in enumerate(known):
        if number % _ROWS_SLICE == 0:
            yield
        schedule = each.schedule
        note, ahead, count = None, list[int](), 0
        try:
            ahead, count = _ahead(with_calendars(schedule, services.view.calendars()), now, to_ms)
        except InvalidInput as error:
            note = f"it does not fire: {error.problem}"
        rows.append(
            ScheduleTimeline(
                name=schedule.name,
                paused=schedule.paused_at_ms is not None,
                expected_ms=_expected_ms(services.view, schedule.template, schedule.name),
                fired=each.fired(from_ms, bucket_ms, now),
                passed_over=each.passed_over(),
                known_since_ms=each.since_ms,
                ahead_ms=ahead,
                ahead_count=count,
                note=note,
            )
        )
    return rows


def _ahead(schedule: ScheduleRef, now: int, to_ms: int) -> tuple[list[int], int]:
    """Return the due times through ``to_ms``, none if there are too many, and their number."""
    trigger = schedule.trigger
    left = None if trigger.max_fires is None else max(trigger.max_fires - schedule.tally.fired, 0)
    if schedule.paused_at_ms is not None:
        return [], 0
    after_ms = max(now, decided_through_ms(schedule))
    count = count_firing(trigger, after_ms + 1, to_ms)
    if left is not None:
        count = min(count, left)
    found: list[int] = []
    nominal_ms: int | None = after_ms
    while count <= TIMES_MAX and len(found) < count and nominal_ms is not None:
        nominal_ms = next_firing(trigger, nominal_ms)
        if nominal_ms is not None:
            found.append(due_ms(schedule.name, trigger, nominal_ms))
    return found, count


def _expected_ms(view: ClusterView, template: JobTemplate, schedule: str) -> int:
    learned = view.learned_cost_ms(template.definition, template.target_of(schedule))
    if learned is not None:
        return learned
    definition = view.definitions().get(template.definition)
    return DEFAULT_COST_MS if definition is None else definition.default_cost_ms


def _load_ahead(services: ApiServices) -> Generator[None, None, LoadAhead]:
    now, view, cluster = services.clock.wall_ms(), services.view, services.view.cluster()
    takes = [each for each, _, is_live in cluster.processors if is_live and not each.draining]
    slots = sum(each.slots for each in takes if each.name not in cluster.drains)
    caps = {name: each.max_concurrency for name, each in view.definitions().items() if each.max_concurrency}
    schedules, cost_ms = list(view.schedules().values()), partial(_expected_ms, view)
    return load_ahead(now, schedules, slots, caps, view.calendars(), cost_ms=cost_ms)


def shown_load(found: LoadAhead, used: Sequence[int]) -> LoadResponse:
    """Return the load as the API shows it: all jobs, the fullest definitions, what was ``used``, what is too much."""
    loads = found.loads[: _LOADS_MAX + 1]
    too_much = [
        ExcessResponse(from_ms=from_ms, to_ms=to_ms, summary=_in_words(load, needed))
        for load in loads
        for from_ms, to_ms, needed in load.too_much(found.from_ms)
    ]
    return LoadResponse(
        items=[
            DefinitionLoad(definition=load.definition, slots=load.slots, needed=list(load.needed)) for load in loads
        ],
        too_much=sorted(too_much, key=lambda each: each.from_ms),
        used=list(used),
        from_ms=found.from_ms,
        bucket_ms=BUCKET_MS,
        left_out=found.left_out,
    )


def _in_words(load: Load, needed: int) -> str:
    whose = "all schedules need" if load.definition is None else f"definition `{load.definition}` needs"
    its = "the" if load.definition is None else "its"
    return f"{whose} {needed:,} of {its} {load.slots:,} slot{'' if load.slots == 1 else 's'}"
