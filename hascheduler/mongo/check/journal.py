"""Read the journal for the check: heads in order, and decisions not known to be applied."""

from collections.abc import Collection as SomeOf
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from pymongo import ASCENDING, DESCENDING

from hascheduler.check.documents import unreadable
from hascheduler.check.finding import CheckConfig, Report
from hascheduler.check.journal import DatedHead, JournalOrder, check_decisions
from hascheduler.dispatch.decisions import (
    EXTRA_FIELDS,
    CountFailures,
    Decision,
    Fire,
    JobMove,
    RecordVerdict,
    ReleaseHold,
    ResetCursor,
    decode_decisions,
)
from hascheduler.dispatch.settlements import CLASSIFIED_FIELDS
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import decode_journal_head, journal_id
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.values.fields import is_integer
from hascheduler.mongo.check.context import ScanPace
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.journal import entries_of

_HEAD = [*LEAN_FIELDS[Collection.JOURNAL], "at_ms"]
_UNSETTLED_MAX = 1_000
_AT_ONCE = 20
_BASIS = ["job", "created_at_ms", "since_ms", "paused_at_ms", "cursor_ms"]


class JournalScan:
    """Owner of the newest entry and term of each journal, complete once `follow` has ended."""

    def __init__(self, database: Database, pace: ScanPace, now: int, config: CheckConfig, report: Report) -> None:
        self._database = database
        self._journal = database[Collection.JOURNAL.value]
        self._pace = pace
        self._now = now
        self._config = config
        self._report = report
        self._journals: dict[str, JournalOrder] = {}

    @property
    def tails(self) -> Mapping[str, DatedHead]:
        """Return the newest entry of each journal."""
        return {name: journal.last for name, journal in self._journals.items() if journal.last is not None}

    @property
    def beginnings(self) -> Mapping[str, DatedHead]:
        """Return for each journal an entry of its highest term."""
        return {name: journal.began for name, journal in self._journals.items() if journal.began is not None}

    async def follow(self, names: SomeOf[str], entries_max: int | None) -> None:
        """Report on the order of the entries: of all, or of the newest ``entries_max`` of each of ``names``."""
        if entries_max is None:
            cursors = [self._journal.find({}, _HEAD).sort("_id", ASCENDING)]
        else:
            cursors = []
            for name in sorted(names):
                newest = self._journal.find({"_id": entries_of(name)}, {"_id": True}).sort("_id", DESCENDING)
                with faults("read the heads of the journal"):
                    found = await newest.skip(entries_max).limit(1).to_list(None)
                span = entries_of(name) | ({"$gt": found[0]["_id"]} if found else {})
                cursors.append(self._journal.find({"_id": span}, _HEAD).sort("_id", ASCENDING))
        for cursor in cursors:
            async with aclosing(self._pace.batches("journal", cursor)) as batches:
                async for documents in batches:
                    for document in documents:
                        self._follow_one(document)

    async def unapplied(self, only: SomeOf[str] | None = None) -> None:
        """Report decisions not applied within the grace: of all entries, or of those named in ``only``."""
        for name, tail in self.tails.items():
            span = {"$gt": journal_id(name, tail.head.applied_through), "$lte": journal_id(name, tail.head.seq)}
            cursor = self._journal.find({"_id": span}).sort("_id", ASCENDING).limit(_UNSETTLED_MAX)
            async with aclosing(self._pace.batches("unsettled entries", cursor, _AT_ONCE)) as batches:
                async for documents in batches:
                    await self._unapplied(documents, only)

    def _follow_one(self, document: Mapping[str, Any]) -> None:
        try:
            entry = _dated(document)
        except InvalidInput as error:
            self._report([unreadable(Collection.JOURNAL, document["_id"], error)])
            return
        self._report(self._journals.setdefault(entry.head.name, JournalOrder(self._now, self._config)).follow(entry))

    async def _unapplied(self, documents: list[dict[str, Any]], only: SomeOf[str] | None) -> None:
        entries: list[tuple[DatedHead, tuple[Decision, ...]]] = []
        for document in documents:
            try:
                entry = _dated(document)
                if only is not None and f"journal/{entry.head.name}/{entry.head.seq}" not in only:
                    continue
                if entry.at_ms is None or self._now - entry.at_ms > self._config.motion_ms:
                    entries.append((entry, _decisions(document)))
            except InvalidInput as error:
                # `follow` has reported unreadable heads already.
                if error.path == ("decisions",):
                    self._report([unreadable(Collection.JOURNAL, document["_id"], error)])
        jobs, schedules = await self._concerned([decision for _, decisions in entries for decision in decisions])
        self._report(check_decisions(entry, decisions, jobs, schedules) for entry, decisions in entries)

    async def _concerned(
        self, decisions: list[Decision]
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        moved = sorted({decision.job_id for decision in decisions if isinstance(decision, JobMove)})
        named = sorted({decision.schedule for decision in decisions if isinstance(decision, Fire | RecordVerdict)})
        with faults("read the documents of the decisions"):
            found = self._database[Collection.JOBS.value].find({"_id": {"$in": moved}}, CLASSIFIED_FIELDS)
            jobs = await found.to_list(None)
            found = self._database[Collection.SCHEDULES.value].find({"_id": {"$in": named}}, _BASIS)
            schedules = await found.to_list(None)
        return {job["_id"]: job for job in jobs}, {schedule["_id"]: schedule for schedule in schedules}


def _dated(document: Mapping[str, Any]) -> DatedHead:
    at_ms = document.get("at_ms")
    return DatedHead(decode_journal_head(document["_id"], document), at_ms if is_integer(at_ms) else None)


def _decisions(document: Mapping[str, Any]) -> tuple[Decision, ...]:
    rows = document.get("decisions")
    if not isinstance(rows, list):
        raise InvalidInput(("decisions",), f"a {type(rows).__name__}", "a list")
    try:
        decisions = decode_decisions(rows, *map(document.get, EXTRA_FIELDS))
    except (InvalidInput, ValueError, TypeError) as error:
        raise InvalidInput(("decisions",), f"{str(error)[:200]}", "decisions of this release") from None
    for decision in decisions:
        if not _is_sound(decision):
            raise InvalidInput(("decisions",), f"{str(decision)[:200]}", "decisions of this release")
    return decisions


def _is_sound(decision: Decision) -> bool:
    """Check the types of the fields: decoding trusts the leader that wrote them."""
    match decision:
        case Fire() | RecordVerdict():
            named: tuple[object, object] = (decision.schedule, decision.nominal_ms)
        case CountFailures() | ResetCursor():
            return True
        case ReleaseHold():
            named = (decision.key, decision.rev)
        case _:
            named = (decision.job_id, decision.attempt)
    return isinstance(named[0], str) and is_integer(named[1])
