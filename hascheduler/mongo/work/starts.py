"""Start attempts, many in one exchange: dispatched → running, for jobs that this processor still holds.

A lone start is one command, which returns the job that it has started. For several, the jobs are read during the write.
Only its holder changes a held job. So if the write matched every requested start, the jobs that were read are the jobs
that were started; otherwise they are read again after the write, and then with a majority, as a deposed primary may
still show writes that will be rolled back.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import Int64
from pymongo import UpdateMany

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.job import JobState, Move
from hascheduler.model.values.instants import WallMs, from_datetime
from hascheduler.mongo.connection import LOCAL_READ, MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.state_updates import BY_ID, NEXT_REV, AttemptTimes, source_states
from hascheduler.ports import StartedJob, rules_of
from hascheduler.schema.definition import Definition

STARTED_ATTEMPTS_MAX = 20_000


class StartedAttempts:
    """Owner of the times of this process's newest `STARTED_ATTEMPTS_MAX` attempts, which end without a pipeline.

    The record of an attempt is made of fields that its end clears, which in general takes a pipeline; that costs the
    server twice as much as a plain update. Remembered times are part of the filter, so with wrong ones the write
    matches nothing, and the pipeline is used after all. A job that a key keeps for longer than ``job_retention_ms`` is
    not remembered.
    """

    def __init__(self, job_retention_ms: int) -> None:
        self._job_retention_ms = job_retention_ms
        self._times: dict[tuple[str, int], AttemptTimes] = {}

    def remember(self, job: Mapping[str, Any], started_at_ms: int) -> None:
        """Remember the times of ``job`` as it was read when its attempt was started."""
        dispatched_at_ms, kept_until = job.get("dispatched_at_ms"), job.get("kept_until")
        expires_at_ms = started_at_ms + self._job_retention_ms
        is_kept_longer = kept_until is not None and (
            not isinstance(kept_until, datetime) or from_datetime(kept_until) > expires_at_ms
        )
        if isinstance(dispatched_at_ms, int) and not is_kept_longer:
            self._times[(job["_id"], job["attempt"])] = AttemptTimes(dispatched_at_ms, started_at_ms)
            if len(self._times) > STARTED_ATTEMPTS_MAX:
                del self._times[next(iter(self._times))]

    def take(self, job_id: str, attempt: int) -> AttemptTimes | None:
        return self._times.pop((job_id, attempt), None)


DEFINITION_AGE_MAX_S = 2.0
_DEFINITIONS_KEPT_MAX = 1_000
_FIELDS = (
    "state", "attempt", "processor", "definition", "target", "payload", "tenant", "labels", "schedule", "nominal_ms",
    "submitted_at_ms", "dispatched_at_ms", "started_at_ms", "first_started_at_ms", "failures", "losses", "trace",
    "kept_until",
)  # fmt: skip
# A running job matches too and stays as it is: the repeat after an unknown answer. Even a write that changes nothing
# waits for the majority, so the success of the first write is then certain.
_STATES = sorted({*source_states(Move.START), JobState.RUNNING.value})
_Read = dict[str, Mapping[str, Any]]
"""Jobs by id, with `_FIELDS`."""


@dataclass(frozen=True, slots=True)
class Start:
    job_id: str
    attempt: int
    processor_id: str
    at_ms: WallMs


class Starts:
    """The part of the work store that starts attempts; ``started`` remembers their times."""

    def __init__(self, database: Database, started: StartedAttempts) -> None:
        self._started_attempts = started
        self._database = database
        self._jobs = database[Collection.JOBS.value].with_options(write_concern=MAJORITY)
        # A majority read may lag behind the message that announced the job to the processor.
        self._newest = self._jobs.with_options(read_concern=LOCAL_READ)
        self._definitions_cache = DefinitionCache(database)

    async def carry_out(self, starts: Sequence[Start]) -> Sequence[StartedJob | Exception | None]:
        """Start the attempts, and return each running job; None for a duplicate, or if the processor lost the job."""
        # All starts of one exchange have one instant, whatever their callers' clocks show.
        at_ms = max(start.at_ms for start in starts)
        with faults("start the attempts"):
            jobs, matched = await (self._start_many if len(starts) > 1 else self._start_one)(starts, at_ms)
        held = [start for start in starts if _is_held(jobs.get(start.job_id), start)]
        if matched != len(starts) or len(held) != len(starts):
            with faults("start the attempts again"):
                await self._write(starts, at_ms, again=True)
                jobs = await _read(self._jobs, starts)
            running = {id for id, job in jobs.items() if job["state"] == JobState.RUNNING.value}
        else:
            running = set(jobs)
        return [await self._answer(start, jobs.get(start.job_id), running, at_ms) for start in starts]

    async def _answer(
        self, start: Start, job: Mapping[str, Any] | None, running: set[str], at_ms: WallMs
    ) -> StartedJob | Exception | None:
        if job is None or start.job_id not in running or not _is_held(job, start):
            return None
        try:
            rules = await self._definitions_cache.of(job["definition"])
            started = StartedJob.of(job, _plain(job.get("payload")), rules, at_ms)
            self._started_attempts.remember(job, started.started_at_ms)
            return started
        except Exception as error:  # an unreadable document must not fail the other starts
            return error

    async def _start_one(self, starts: Sequence[Start], at_ms: WallMs) -> tuple[_Read, int]:
        [start] = starts
        states, update = first_start(at_ms) if start.attempt == 1 else _any_start(at_ms)
        # Not the driver's method, which repeats the command after a break: for that the server keeps an image of each
        # job, in two more writes. Here the caller repeats, as it does for an exchange of many.
        answer = await self._database.command(
            {
                "findAndModify": Collection.JOBS.value,
                "query": {
                    "_id": start.job_id,
                    "attempt": start.attempt,
                    "processor": start.processor_id,
                    "state": {"$in": states},
                },
                "update": update,
                "fields": dict.fromkeys(_FIELDS, 1),
                "new": True,
                "hint": BY_ID,
                "writeConcern": MAJORITY.document,
            },
            codec_options=self._database.codec_options,
        )
        if answer.get("writeConcernError"):
            raise StoreUnavailable("start the attempts: no majority in time")
        job = answer["value"]
        return ({}, 0) if job is None else ({job["_id"]: job}, 1)

    async def _start_many(self, starts: Sequence[Start], at_ms: WallMs) -> tuple[_Read, int]:
        # No TaskGroup: it would wrap the error, and leave this task marked as cancelled.
        reading, writing = _read(self._newest, starts), self._write(starts, at_ms)
        return _both(await asyncio.gather(reading, writing, return_exceptions=True))

    async def _write(self, starts: Sequence[Start], at_ms: WallMs, *, again: bool = False) -> int:
        """Return how many jobs matched; with ``again`` running jobs match too, and stay as they are."""
        groups: dict[tuple[int, str], list[str]] = defaultdict(list)
        for start in starts:
            groups[(start.attempt, start.processor_id)].append(start.job_id)
        writes = [
            UpdateMany(
                {"_id": {"$in": ids}, "attempt": attempt, "processor": processor_id, "state": {"$in": states}},
                update,
                hint=BY_ID,
            )
            for (attempt, processor_id), ids in groups.items()
            for states, update in [first_start(at_ms) if attempt == 1 and not again else _any_start(at_ms)]
        ]
        return (await self._jobs.bulk_write(writes, ordered=False)).matched_count


class DefinitionCache:
    """Definitions for processors: timeouts and retries of the jobs they start, at most `DEFINITION_AGE_MAX_S` old.

    Owner of the recently read definitions.
    """

    def __init__(self, database: Database) -> None:
        self._definitions = database[Collection.DEFINITIONS.value]
        self._read: dict[str, tuple[Definition, float]] = {}

    async def of(self, name: str) -> Definition:
        """Return `rules_of` that name."""
        now = asyncio.get_running_loop().time()
        known = self._read.get(name)
        if known is not None and now - known[1] < DEFINITION_AGE_MAX_S:
            return known[0]
        with faults("read the definition"):
            document = await self._definitions.find_one({"_id": name}, list(LEAN_FIELDS[Collection.DEFINITIONS]))
        if len(self._read) >= _DEFINITIONS_KEPT_MAX:
            self._read.clear()
        rules = rules_of(name, document)
        self._read[name] = (rules, now)
        return rules


def first_start(at_ms: WallMs) -> tuple[list[str], dict[str, Any]]:
    """Return source states and update of a first start: no pipeline, which costs the server twice as much."""
    fields = {"state": JobState.RUNNING.value, "started_at_ms": at_ms, "first_started_at_ms": at_ms, "progress": None}
    return source_states(Move.START), {"$set": fields, "$inc": {"rev": 1}}


def _any_start(at_ms: WallMs) -> tuple[list[str], list[dict[str, Any]]]:
    """Return source states and update of the start of any job; they leave a running one as it is."""
    starting = {"$in": ["$state", source_states(Move.START)]}
    fields = {
        "state": JobState.RUNNING.value,
        "started_at_ms": {"$cond": [starting, at_ms, "$started_at_ms"]},
        "first_started_at_ms": {"$ifNull": ["$first_started_at_ms", at_ms]},
        "progress": {"$cond": [starting, None, "$progress"]},
        "rev": {"$cond": [starting, NEXT_REV, "$rev"]},
    }
    return _STATES, [{"$set": fields}]


def _both(answers: tuple[_Read | BaseException, int | BaseException]) -> tuple[_Read, int]:
    """Return both answers, or raise the error of either; both exchanges have ended by then."""
    jobs, matched = answers
    if isinstance(matched, BaseException):
        raise matched
    if isinstance(jobs, BaseException):
        raise jobs
    return jobs, matched


async def _read(jobs: Any, starts: Sequence[Start]) -> _Read:
    found = await jobs.find({"_id": {"$in": [start.job_id for start in starts]}}, _FIELDS).to_list(None)
    return {job["_id"]: job for job in found}


def _is_held(job: Mapping[str, Any] | None, start: Start) -> bool:
    return (
        job is not None
        and job.get("state") in _STATES
        and job.get("attempt") == start.attempt
        and job.get("processor") == start.processor_id
    )


def _plain(value: Any) -> Any:
    """Return ``value`` without the driver's own type of integer, which handlers should not have to know."""
    match value:
        case Int64():
            return int(value)
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case _:
            return value
