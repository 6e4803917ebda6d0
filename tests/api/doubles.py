"""The smallest world the API can live in: stores that keep documents in dictionaries, a clock that stands still."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from hascheduler.api.services import ApiServices
from hascheduler.errors import StoreUnavailable
from hascheduler.model.definition import Definition
from hascheduler.model.documents import encode_definition, encode_template, encode_trigger, new_job_document
from hascheduler.model.instants import MonoMs, WallMs
from hascheduler.model.job import OCCUPYING, TERMINAL, JobState, NewJob
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.replica import ReplicaStatus
from hascheduler.ports import CancelAnswer, Cluster, JobFilter, NewSchedule, StoredDocument

NOW = WallMs(1_893_456_000_000)  # 2030-01-01T00:00:00Z


class StandingClock:
    def wall_ms(self) -> WallMs:
        return NOW

    def mono_ms(self) -> MonoMs:
        return MonoMs(0)


@dataclass
class Documents:
    """What is stored; ``writes`` counts every change, ``away`` makes every call fail."""

    by_id: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: int = 0
    away: bool = False

    def put(self, document: dict[str, Any]) -> StoredDocument:
        self.writes += 1
        self.by_id[document["_id"]] = document
        return deepcopy(document)

    def read(self, id: str) -> dict[str, Any] | None:
        if self.away:
            raise StoreUnavailable("away")
        return deepcopy(self.by_id.get(id))

    def after(self, after: str | None, limit: int, *, newest_first: bool = False) -> list[StoredDocument]:
        if self.away:
            raise StoreUnavailable("away")
        ids = sorted(self.by_id, reverse=newest_first)
        rest = [id for id in ids if after is None or (id < after if newest_first else id > after)]
        return [deepcopy(self.by_id[id]) for id in rest[:limit]]

    def remove(self, id: str) -> bool:
        self.writes += id in self.by_id
        return self.read(id) is not None and self.by_id.pop(id) is not None


class DictScheduleStore:
    def __init__(self) -> None:
        self.documents = Documents()
        self.lost_races = 0

    async def create(self, schedule: NewSchedule) -> StoredDocument | None:
        if self.documents.read(schedule.name) is not None:
            return None
        fields = {"rev": 1, "cursor_ms": schedule.now, "created_at_ms": schedule.now}
        return self.documents.put({"_id": schedule.name, **fields, **_written(schedule)})

    async def replace(self, schedule: NewSchedule, expected_rev: int | None = None) -> StoredDocument | None:
        stored = self.documents.read(schedule.name)
        if self.lost_races:
            self.lost_races -= 1
            return None
        if stored is None or (expected_rev is not None and stored["rev"] != expected_rev):
            return None
        written = _written(schedule)
        if written["trigger"] != stored["trigger"]:
            stored["cursor_ms"] = max(stored["cursor_ms"], schedule.now)
        return self.documents.put({**stored, **written, "rev": stored["rev"] + 1})

    async def get(self, name: str) -> StoredDocument | None:
        return self.documents.read(name)

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        return self.documents.after(after, limit)

    async def delete(self, name: str) -> bool:
        return self.documents.remove(name)


class DictDefinitionStore:
    def __init__(self) -> None:
        self.documents = Documents()

    async def put(self, definition: Definition) -> tuple[StoredDocument, bool]:
        stored = self.documents.read(definition.name)
        rev = 1 if stored is None else stored["rev"] + 1
        return self.documents.put({**encode_definition(definition), "rev": rev}), stored is None

    async def get(self, name: str) -> StoredDocument | None:
        return self.documents.read(name)

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        return self.documents.after(after, limit)

    async def delete(self, name: str) -> bool:
        return self.documents.remove(name)


class DictJobStore:
    def __init__(self) -> None:
        self.documents = Documents()
        self.asked: list[JobFilter] = []

    async def submit(self, job: NewJob) -> StoredDocument:
        self.documents.read(job.id)
        return self.documents.put(new_job_document(job))

    async def get(self, job_id: str) -> StoredDocument | None:
        return self.documents.read(job_id)

    async def list(self, which: JobFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        self.asked.append(which)
        return self.documents.after(after, limit, newest_first=True)

    async def cancel(self, job_id: str, at_ms: WallMs) -> CancelAnswer | None:
        job = self.documents.read(job_id)
        if job is None:
            return None
        if job["state"] in TERMINAL:
            return CancelAnswer.ALREADY_DONE
        if job["state"] in OCCUPYING:
            self.documents.put({**job, "cancel_requested_at_ms": at_ms})
            return CancelAnswer.ALREADY_RUNNING
        self.documents.put({**job, "state": JobState.CANCELLED.value, "finished_at_ms": at_ms})
        return CancelAnswer.CANCELLED


@dataclass
class StandingView:
    """A small cluster that never changes, but for the two switches."""

    ready: bool = True
    alive: bool = True
    holder: str = "replica-1.aa"
    broken: bool = False

    @property
    def unready_reason(self) -> str:
        return "" if self.ready else "the mirror is not complete yet"

    def cluster(self) -> Cluster:
        if self.broken:
            raise RuntimeError("a secret detail")
        processor = ProcessorRef("p-1.bb", "p-1", "default", frozenset({"sleep", "log"}), 8, 3, False, 0)
        status = ReplicaStatus(
            "replica-1.aa", "replica-1", 4, NOW, "127.0.0.1:8080", "127.0.0.1:9", True, 3, "7.1", "d", 1
        )
        return Cluster(
            replica_id="replica-1.aa",
            lease=LeaseRecord("default", self.holder, 7, 2, "127.0.0.1:9", NOW, NOW, 10_000, 6),
            journal=JournalHead("default", 41, 7, EntryKind.DECISIONS, "replica-1.aa", 40),
            leading=True,
            ready=self.ready,
            replicas=[status],
            processors=[(processor, 2, True)],
            counts={"pending": 1, "schedules": 2},
            quarantine=[("jobs", "bad", "state: missing")],
            stream_lag_ms=3,
            position="7.1",
            digest="d",
        )


@dataclass
class World:
    schedules: DictScheduleStore = field(default_factory=DictScheduleStore)
    definitions: DictDefinitionStore = field(default_factory=DictDefinitionStore)
    jobs: DictJobStore = field(default_factory=DictJobStore)
    view: StandingView = field(default_factory=StandingView)
    job_count: int = 0

    def new_job_id(self) -> str:
        self.job_count += 1
        return f"job:{self.job_count:04d}"

    @property
    def writes(self) -> int:
        return self.schedules.documents.writes + self.definitions.documents.writes + self.jobs.documents.writes

    def go_away(self) -> None:
        for store in (self.schedules, self.definitions, self.jobs):
            store.documents.away = True

    def services(self) -> ApiServices:
        return ApiServices(self.schedules, self.definitions, self.jobs, self.view, StandingClock(), self.new_job_id)


def _written(schedule: NewSchedule) -> dict[str, Any]:
    return {
        "trigger": encode_trigger(schedule.trigger),
        "job": encode_template(schedule.template),
        "payload": schedule.payload,
        "labels": dict(schedule.labels),
    }
