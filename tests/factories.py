"""Nouns with only what matters spelled out: ``make_job("a", priority=9)``."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hascheduler.dispatch.decisions import Decision
from hascheduler.model.definition import Definition
from hascheduler.model.instants import WallMs
from hascheduler.model.job import NewJob
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.replica import ReplicaStatus
from hascheduler.model.schedule import JobTemplate
from hascheduler.model.trigger import IntervalTrigger
from hascheduler.ports import JournalEntry, NewSchedule

NOW = WallMs(1_893_456_000_000)  # 2030-01-01T00:00:00Z
TEMPLATE = JobTemplate("log", "target", "tenant", "default", "", 5, "queued")


def make_job(id: str = "a", **only_what_matters: Any) -> NewJob:
    plain = NewJob(id, "log", "target", {"n": 1}, "tenant", "default", "", 5, "queued", {"of": "test"}, NOW)
    return replace(plain, **only_what_matters)


def make_template(**only_what_matters: Any) -> JobTemplate:
    return replace(TEMPLATE, **only_what_matters)


def make_schedule(name: str = "tick", **only_what_matters: Any) -> NewSchedule:
    plain = NewSchedule(name, IntervalTrigger(1_000, WallMs(0)), TEMPLATE, {"n": 1}, {"of": "test"}, NOW)
    return replace(plain, **only_what_matters)


def make_definition(name: str = "log", **only_what_matters: Any) -> Definition:
    return replace(Definition(name), **only_what_matters)


def make_lease(holder: str = "r1", **only_what_matters: Any) -> LeaseRecord:
    plain = LeaseRecord("default", holder, 1, 0, "127.0.0.1:1", NOW, NOW, 10_000, 0)
    return replace(plain, **only_what_matters)


def make_entry(
    seq: int, *decisions: Decision, shard: str = "default", term: int = 1, holder: str = "r1", at_ms: int = NOW
) -> JournalEntry:
    head = JournalHead(shard, seq, term, EntryKind.DECISIONS, holder, applied_through=0)
    return JournalEntry(head, WallMs(at_ms), decisions)


def make_processor(id: str = "p1", definitions: Sequence[str] = ("log",), **only_what_matters: Any) -> ProcessorRef:
    plain = ProcessorRef(id, id, "default", frozenset(definitions), 8, 1, draining=False, parked=0)
    return replace(plain, **only_what_matters)


def make_replica(id: str = "r1", **only_what_matters: Any) -> ReplicaStatus:
    plain = ReplicaStatus(
        id, id, 1, NOW, "127.0.0.1:80", "127.0.0.1:1", ready=True, stream_lag_ms=3, position="1", digest="d",
        quarantined=0,
    )  # fmt: skip
    return replace(plain, **only_what_matters)
