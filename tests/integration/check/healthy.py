"""A database without defects, as a running deployment leaves it: for defects to be planted in."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hascheduler.check.finding import CheckConfig
from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, encode_decisions
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.leadership import encode_journal_head, encode_lease
from hascheduler.model.documents.processor import encode_processor
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.documents.verdict import verdict_document
from hascheduler.model.job import fire_job_id
from hascheduler.model.leadership import EntryKind, JournalHead
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.mongo.check.context import server_now_ms
from hascheduler.mongo.check.scan import Deployment, MongoInvariantScan
from hascheduler.mongo.connection import Database
from hascheduler.ports.invariant_scan import THOROUGH, ScanBounds
from hascheduler.schema.definition import Definition
from hascheduler.schema.noun import document_of
from hascheduler.schema.schedule import Basis
from hascheduler.schema.trigger import Interval, Trigger
from tests.factories import TEMPLATE, make_job, make_lease, make_processor, make_replica, make_tenant, make_token

RETENTION_MS = 86_400_000
EVERY_MS = 1_000
TIMES = 120
"""Nominal times of ``tick`` that were decided."""
SKIPPED = (40, 44)
"""Those from here through there did not fire."""
CONFIG = CheckConfig(RETENTION_MS, RETENTION_MS, heartbeat_timeout_ms=5_000, start_timeout_ms=5_000)
AT_ONCE: ScanBounds = replace(THOROUGH, recheck_after_s=0.0)
"""Nothing stored here changes by itself, so a second scan needs no pause."""

Document = dict[str, Any]


class Healthy:
    """Owner of the instant that all others are relative to: the database's time at its creation."""

    def __init__(self, database: Database, now: int) -> None:
        self.database = database
        self.now = now
        self.cursor_ms = (now - 2_000) // EVERY_MS * EVERY_MS
        self.created_ms = self.cursor_ms - TIMES * EVERY_MS

    @classmethod
    async def make(cls, database: Database) -> "Healthy":
        healthy = cls(database, await server_now_ms(database))
        for collection, stored in healthy._documents().items():
            await database[collection.value].insert_many(stored)
        return healthy

    def scan(self, **deployment: Any) -> MongoInvariantScan:
        return MongoInvariantScan(self.database, replace(Deployment(CONFIG, "default"), **deployment))

    def time(self, number: int) -> WallMs:
        """The nominal time of ``tick`` by its number, from 1 on."""
        return WallMs(self.created_ms + number * EVERY_MS)

    def expire_at(self, in_ms: int) -> datetime:
        return datetime.fromtimestamp(self.now / 1_000, UTC) + timedelta(milliseconds=in_ms)

    # Documents

    def job(self, id: str, state: str = "pending", ago_ms: int = 1_000, **fields: Any) -> Document:
        """One that was submitted ``ago_ms`` ago and came to its state at once."""
        at_ms = self.now - ago_ms
        document = new_job_document(make_job(id, submitted_at_ms=WallMs(at_ms), tenant="acme"))
        document["state"] = state
        if state in ("dispatched", "running"):
            document |= {"attempt": 1, "processor": "p1", "dispatched_at_ms": at_ms, "rev": 2}
        if state == "running":
            document |= {"started_at_ms": at_ms, "first_started_at_ms": at_ms}
        if state in ("succeeded", "failed", "cancelled"):
            document |= {"finished_at_ms": at_ms, "attempt": 1, "expire_at": self.expire_at(RETENTION_MS - ago_ms)}
        return document | fields

    def fired(self, number: int) -> Document:
        at_ms = self.time(number)
        id = fire_job_id("tick", at_ms)
        return self.job(id, "succeeded", self.now - at_ms, schedule="tick", nominal_ms=at_ms)

    def run(self, first: int, last: int, verdict: Verdict = Verdict.SKIPPED) -> Document:
        run = VerdictRun("tick", verdict, self.time(first), self.time(last), last - first + 1)
        return verdict_document(run, self.time(last)) | {"expire_at": self.expire_at(RETENTION_MS)}

    def schedule(self, name: str = "tick", **fields: Any) -> Document:
        new = NewSchedule(name, Trigger(Interval(EVERY_MS, WallMs(0))), TEMPLATE, {"n": 1}, {}, WallMs(self.created_ms))
        return new_schedule_document(new) | {"cursor_ms": self.cursor_ms} | fields

    def past(self, through_ms: int, *, paused: bool = False, **trigger: Any) -> Document:
        """What was in force of a schedule before an edit."""
        every_second = {"type": "interval", "every_ms": EVERY_MS, "anchor_ms": 0, **trigger}
        return {"trigger": every_second, "since_ms": self.created_ms, "through_ms": through_ms, "paused": paused}

    def stands(self, name: str = "stands", **fields: Any) -> Document:
        """A schedule of which nothing was decided for five minutes."""
        behind_ms = self.now - 300_000
        times = {"created_at_ms": behind_ms, "since_ms": behind_ms, "cursor_ms": behind_ms}
        return self.schedule(name, **times, **fields)

    def entry(
        self, seq: int, term: int, *decisions: Decision, ago_ms: int = 100_000, through: int | None = None
    ) -> Document:
        """Without decisions it begins the term."""
        kind = EntryKind.DECISIONS if decisions else EntryKind.TERM_BEGAN
        head = JournalHead("default", seq, term, kind, f"r{term}", seq - 1 if through is None else through)
        at_ms = self.now - ago_ms + seq
        return encode_journal_head(head) | {"at_ms": at_ms, "decisions": encode_decisions(decisions)}

    def fire(self, number: int, **fields: Any) -> Fire:
        basis = Basis(self.time(number - 1), WallMs(self.created_ms))
        return replace(Fire("tick", self.time(number), basis), **fields)

    def processor(self, id: str = "p1", *, silent_ms: int = -60_000, **fields: Any) -> Document:
        """A live processor; its last heartbeat is a minute ahead, so that it stays live on a slow machine."""
        document = encode_processor(make_processor(id, slots=8))
        return document | {"expire_at": self.expire_at(600_000 - silent_ms)} | fields

    def replica(self, id: str, *, ago_ms: int = 3_600_000, **fields: Any) -> Document:
        """One that lives, and began so long ago."""
        replica = make_replica(id, started_at_ms=WallMs(self.now - ago_ms))
        return document_of(replica) | {"expire_at": self.expire_at(59_000)} | fields

    def _documents(self) -> dict[Collection, list[Document]]:
        lease = make_lease("r3", term=3, acquired_at_ms=WallMs(self.now - 90_000), renewed_at_ms=WallMs(self.now))
        fires = [number for number in range(1, TIMES + 1) if not SKIPPED[0] <= number <= SKIPPED[1]]
        return {
            Collection.LEASES: [encode_lease(lease)],
            Collection.REPLICAS: [self.replica("r3")],
            Collection.PROCESSORS: [self.processor()],
            Collection.DEFINITIONS: [document_of(Definition(name="log", rev=1))],
            Collection.TENANTS: [document_of(make_tenant("acme").model_copy(update={"rev": 1}))],
            Collection.TOKENS: [dict(document_of(make_token()))],
            Collection.SCHEDULES: [self.schedule()],
            Collection.VERDICTS: [self.run(*SKIPPED)],
            Collection.JOBS: [
                *(self.fired(number) for number in fires),
                self.job("job:waits"),
                self.job("job:dispatched", "dispatched"),
                self.job("job:runs", "running", 30_000),
                self.job("job:done", "succeeded", 40_000),
                self.job("job:failed", "failed", 40_000),
                self.job("job:follows", waits_for=["job:done", "job:runs", "job:forgotten"]),
            ],
            Collection.JOURNAL: [
                self.entry(1, 2),
                self.entry(2, 2, self.fire(1)),
                self.entry(3, 3),
                self.entry(4, 3, self.fire(2), Dispatch("job:done", 1, "p1")),
                # The newest are not known as applied, as nothing came after them to say so.
                self.entry(5, 3, Dispatch("job:runs", 1, "p1"), self.fire(TIMES), through=3),
            ],
        }
