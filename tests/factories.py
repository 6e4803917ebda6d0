"""Builders that need only what matters to a test: ``make_job("a", priority=9)``."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hascheduler.dispatch.decisions import Decision, Fire
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.job import NewJob
from hascheduler.model.leadership import EntryKind, JournalHead, LeaseRecord
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.token import Role, digest_of
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JournalEntry
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition
from hascheduler.schema.failover import Cause, Failover
from hascheduler.schema.lane import Lane
from hascheduler.schema.pause import EVERYTHING, StandingPause
from hascheduler.schema.replica import ReplicaStatus
from hascheduler.schema.schedule import Basis, JobTemplate
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.token import Token
from hascheduler.schema.trigger import Interval, Trigger

NOW = WallMs(1_893_456_000_000)  # 2030-01-01T00:00:00Z
TEMPLATE = JobTemplate("log", "target", "tenant", "default", "", 5, "queued")


def make_job(id: str = "a", **only_what_matters: Any) -> NewJob:
    plain = NewJob(id, "log", "target", {"n": 1}, "tenant", "default", "", 5, "queued", {"of": "test"}, NOW)
    return replace(plain, **only_what_matters)


def make_template(**only_what_matters: Any) -> JobTemplate:
    return replace(TEMPLATE, **only_what_matters)


def make_schedule(name: str = "tick", **only_what_matters: Any) -> dict[str, Any]:
    """Return the document of a new schedule."""
    plain = NewSchedule(name, Trigger(Interval(1_000, WallMs(0))), TEMPLATE, {"n": 1}, {"of": "test"}, NOW)
    return new_schedule_document(replace(plain, **only_what_matters))


def make_fire(second: int, after_second: int | None = None, schedule: str = "tick", **only_what_matters: Any) -> Fire:
    """The fire of a `make_schedule`, ``second`` after it was made, whose cursor is at the second before, or that."""
    after_ms = NOW + 1_000 * (second - 1 if after_second is None else after_second)
    plain = Fire(schedule, WallMs(NOW + 1_000 * second), Basis(WallMs(after_ms), NOW))
    return replace(plain, **only_what_matters)


def make_definition(name: str = "log", **only_what_matters: Any) -> Definition:
    return Definition(**{"name": name, **only_what_matters})


def make_lane(name: str = "slow", **only_what_matters: Any) -> Lane:
    return Lane(**{"name": name, **only_what_matters})


def make_pause(id: str = EVERYTHING, **only_what_matters: Any) -> StandingPause:
    return StandingPause(**{"id": id, "rev": 0, "since_ms": NOW, "by": "deployer", **only_what_matters})


def make_calendar(name: str = "business-days", **only_what_matters: Any) -> Calendar:
    return Calendar(**{"name": name, "weekdays": (0, 1, 2, 3, 4), **only_what_matters})


def make_tenant(name: str = "acme", **only_what_matters: Any) -> Tenant:
    return Tenant(**{"name": name, **only_what_matters})


def make_token(id: str = "token-1", **only_what_matters: Any) -> Token:
    fields = {"name": "ci", "role": Role.OPERATOR, "tenant": "acme", "created_at_ms": NOW, "created_by": "boss"}
    return Token(**{"digest": digest_of(id), "id": id, **fields, **only_what_matters})


def make_lease(holder: str = "r1", **only_what_matters: Any) -> LeaseRecord:
    plain = LeaseRecord("default", holder, 1, 0, "127.0.0.1:1", NOW, NOW, 10_000, 0)
    return replace(plain, **only_what_matters)


def make_entry(
    seq: int, *decisions: Decision, name: str = "default", term: int = 1, holder: str = "r1", at_ms: int = NOW
) -> JournalEntry:
    head = JournalHead(name, seq, term, EntryKind.DECISIONS, holder, applied_through=0)
    return JournalEntry(head, WallMs(at_ms), decisions)


def make_failover(term: int = 8, **only_what_matters: Any) -> Failover:
    """Return the failover after a leader was killed, with the given fields."""
    at = {"deciding_at_ms": NOW + 140, "gap_ms": 120, "first_decision_at_ms": NOW + 150}
    plain = {"shard": "default", "term": term, "holder": "r2", "cause": Cause.DIED}
    return Failover(**{**plain, **at, **only_what_matters})


def make_processor(id: str = "p1", definitions: Sequence[str] = ("log",), **only_what_matters: Any) -> ProcessorRef:
    plain = ProcessorRef(id, id, "default", frozenset(definitions), 8, 1, draining=False, parked=0)
    return replace(plain, **only_what_matters)


def make_replica(id: str = "r1", **only_what_matters: Any) -> ReplicaStatus:
    return ReplicaStatus(
        **{
            "id": id, "name": id, "beat": 1, "started_at_ms": NOW, "http_endpoint": "127.0.0.1:80",
            "liveness_endpoint": "127.0.0.1:1", "ready": True, "stream_lag_ms": 3, "position": "1", "digest": "d",
            "quarantined": 0, **only_what_matters,
        }
    )  # fmt: skip


ERRORS = (
    "timed out after 30 s", "timed out after 1.5 s", "timed out after 30 s again", "it timed out after 30 s",
    "timed out after 12345ab s", "timed out after <n> s", "timed   out\tafter 7 s\r\nsecond line", "timed out after  s",
    'no file "a b.png"', "no file `c`", "no file ''", "no file x", 'no file "a\nb"', 'no file "a b" or "c"',
    "object at 0x7f3a9c2d1e50", "object at 0x1", "object at 12345678", "object at 12345678-1234", "object at 1234-5678",
    "id 123e4567-e89b-12d3-a456-426614174000", "id deadbeef-e89b-42d3-a456-426614174001", "id deadbeef", "id 12:30,5.",
    "\x1b[31mred\x1b[0m", "red", "red $", "^red", "re.d", "first\nsecond 1", "\n \t\r\n first \n", "first", "firstly",
    "", " \n\t", "\x1b[2J", "ü 5 €", "a" * 300, "a" * 199 + "7", "1" * 200, "a\u00a0b", "a b", "5<6", "<n", "<",
)  # fmt: skip
"""Some of them have one pattern, others nearly."""
