"""Check that the journal is one sequence without unapplied entries, that the lease agrees, and that somebody leads.

The sequence has no gap, terms only rise, and each term begins once. Every shard that a processor serves has a leader,
and all replicas have the same time-zone data.
"""

from collections.abc import Collection as SomeOf
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hascheduler.check.finding import MINUTE_MS, CheckConfig, Finding, FindingKind, instant_or_ms
from hascheduler.check.jobs import RegisteredProcessor
from hascheduler.dispatch import decisions
from hascheduler.dispatch.schedules.planner import is_current
from hascheduler.dispatch.settlements import classify_outcome
from hascheduler.model.leadership import EntryKind, JournalHead, LeaseRecord
from hascheduler.schema.replica import ReplicaStatus


@dataclass(frozen=True, slots=True)
class DatedHead:
    """An entry's head and when it was written, by its leader's clock; None if it has no time."""

    head: JournalHead
    at_ms: int | None


class JournalOrder:
    """Follows the entries of one journal in order. Trimming deletes the oldest, so any entry may be the first."""

    def __init__(self, now: int, config: CheckConfig) -> None:
        self._kept_since_ms = now - config.journal_retention_ms + 5 * MINUTE_MS
        self.last: DatedHead | None = None
        self.began: DatedHead | None = None
        """The first entry of the highest term so far."""

    def follow(self, entry: DatedHead) -> Iterator[Finding]:
        before, self.last = self.last, entry
        if self.began is None or entry.head.term > self.began.head.term:
            self.began = entry
        if entry.head.applied_through >= entry.head.seq:
            what = f"entry {entry.head.seq} already records entries through {entry.head.applied_through} as applied"
            yield _order(entry, what)
        if before is None:
            return
        if entry.head.seq != before.head.seq + 1 and self._was_not_trimmed(before, entry):
            lost = entry.head.seq - before.head.seq - 1
            undone = before.head.seq + 1 > entry.head.applied_through
            yield Finding(
                FindingKind.JOURNAL_GAP,
                f"journal/{entry.head.name}/{before.head.seq + 1}",
                f"{lost} entries between {before.head.seq} and {entry.head.seq} are missing"
                + (", and no entry records them as applied" if undone else "; they had been applied"),
                "only the oldest entries are ever deleted: find out what deleted these, and compare a backup",
                since_ms=entry.at_ms,
            )
        yield from self._judge_terms(before, entry)

    def _was_not_trimmed(self, before: DatedHead, entry: DatedHead) -> bool:
        """Return False if trimming explains the gap: it compares leaders' clocks, which may disagree."""
        if before.at_ms is None or entry.at_ms is None:
            return True
        return self._kept_since_ms < before.at_ms <= entry.at_ms

    def _judge_terms(self, before: DatedHead, entry: DatedHead) -> Iterator[Finding]:
        old, new = before.head, entry.head
        if new.term < old.term:
            yield _order(entry, f"entry {new.seq} of term {new.term} follows entry {old.seq} of term {old.term}")
        elif new.term == old.term:
            if new.kind is EntryKind.TERM_BEGAN:
                yield _order(entry, f"term {new.term} begins in entry {new.seq}, but already had entry {old.seq}")
            elif new.holder != old.holder:
                what = f"entries {old.seq} and {new.seq} of term {new.term} are by {old.holder} and {new.holder}"
                yield _order(entry, what)
        elif new.kind is not EntryKind.TERM_BEGAN and new.seq == old.seq + 1:
            yield _order(entry, f"entry {new.seq} of term {new.term} follows term {old.term}, but begins no term")


def check_decisions(
    entry: DatedHead,
    made: tuple[decisions.Decision, ...],
    jobs: Mapping[str, Mapping[str, Any]],
    schedules: Mapping[str, Mapping[str, Any]],
) -> Finding | None:
    """Return a finding if decisions of an entry were never applied, judged by their documents."""
    undone = [decision for decision in made if _is_undone(decision, jobs, schedules)]
    if not undone:
        return None
    head = entry.head
    return Finding(
        FindingKind.JOURNAL_UNAPPLIED,
        f"journal/{head.name}/{head.seq}",
        f"{len(undone)} of {len(made)} decisions of term {head.term} have not been applied"
        + (f" since {instant_or_ms(entry.at_ms)}" if entry.at_ms is not None else "")
        + f": {_shown(undone[0])}"
        + (" and others" if len(undone) > 1 else ""),
        "the leader applies them again; if it does not, restart it: the next leader begins with them",
        since_ms=entry.at_ms,
        witness="",
    )


def _is_undone(
    decision: decisions.Decision, jobs: Mapping[str, Mapping[str, Any]], schedules: Mapping[str, Mapping[str, Any]]
) -> bool:
    match decision:
        case decisions.Fire() | decisions.RecordVerdict():
            return _is_open(decision, schedules.get(decision.schedule))
        case decisions.CountFailures() | decisions.ResetCursor() | decisions.ReleaseHold():
            return False  # a later one replaces it
        case _:
            return classify_outcome(decision, jobs.get(decision.job_id)) is decisions.Settlement.UNKNOWN


def _is_open(outcome: decisions.TimeOutcome, schedule: Mapping[str, Any] | None) -> bool:
    cursor_ms = None if schedule is None else schedule.get("cursor_ms")
    if schedule is None or not isinstance(cursor_ms, int) or not is_current(schedule, outcome):
        return False  # gone or edited since: a decision that was not applied is decided again
    return cursor_ms < outcome.nominal_ms


def _shown(decision: decisions.Decision) -> str:
    match decision:
        case decisions.Fire():
            return f"fire {decision.job_id}"
        case decisions.RecordVerdict(run):
            return f"{run.verdict} {run.schedule} through {instant_or_ms(run.last_ms)}"
        case decisions.CountFailures(schedule):
            return f"count the failures of {schedule}"
        case decisions.ResetCursor(schedule):
            return f"reset the cursor of {schedule}"
        case decisions.ReleaseHold(key):
            return f"release the hold {key}"
        case _:
            return f"{type(decision).__name__.lower()} {decision.job_id}, attempt {decision.attempt}"


def _order(entry: DatedHead, what: str) -> Finding:
    return Finding(
        FindingKind.JOURNAL_ORDER,
        f"journal/{entry.head.name}/{entry.head.seq}",
        what,
        "the fence was bypassed: find out what else writes to the journal, and keep a copy of the journal",
        since_ms=entry.at_ms,
    )


def check_lease(lease: LeaseRecord, began: DatedHead | None, now: int, config: CheckConfig) -> Iterator[Finding]:
    """Return a finding about the lease; ``began`` is an entry of the journal's highest term. Motion may explain any."""
    newest = 0 if began is None else began.head.term
    document, witness, since_ms = f"leases/{lease.name}", f"{lease.term}", None
    what = hint = ""
    if lease.term < newest:
        what = f"the lease is at term {lease.term}, but the journal has reached term {newest}"
        hint = "it was deleted or edited by hand; the next leader takes a term above the journal's"
    elif lease.holder and lease.term > newest and now - lease.acquired_at_ms > config.motion_ms:
        since_ms = lease.acquired_at_ms
        what = (
            f"{lease.holder} has held term {lease.term} since {instant_or_ms(since_ms)}, but the journal is at term"
            f" {newest}: it has not begun"
        )
        hint = "it decides nothing: check its log, then end it; another replica takes over"
    elif lease.holder and began is not None and lease.term == newest and began.head.holder != lease.holder:
        what = f"{lease.holder} holds term {lease.term}, but {began.head.holder} wrote its journal entries"
        hint = "the lease was edited by hand: end that replica, and the next one takes a new term"
        witness = f"{lease.term} {lease.holder}"
    if what:
        yield Finding(FindingKind.LEASE_TERM, document, what, hint, since_ms, witness)
    silent_ms = now - lease.renewed_at_ms
    if silent_ms > 3 * lease.lease_duration_ms + config.motion_ms:
        yield Finding(
            FindingKind.NOBODY_LEADS,
            document,
            f"it was last renewed {silent_ms // 1_000} s ago, in term {lease.term}"
            + (f", by {lease.holder}" if lease.holder else ", and then released"),
            "nothing fires or is dispatched: check that replicas run and that MongoDB accepts writes",
            since_ms=lease.renewed_at_ms,
            witness=f"{lease.term} {lease.renewals}",
        )


def check_is_led(registered: RegisteredProcessor, led: SomeOf[str]) -> Iterator[Finding]:
    """Return a finding for a shard without a leader, whose processors get no jobs.

    ``led`` are the shards with a lease or a journal.
    """
    processor = registered.processor
    if led and processor.shard not in led:
        yield Finding(
            FindingKind.UNKNOWN_SHARD,
            f"processors/{processor.id}",
            f"it serves the shard {processor.shard!r}, which has no leader; known shards: {', '.join(sorted(led))}",
            "start a replica of that shard, or correct HASCHEDULER_SHARD of the processor",
            witness=f"{processor.shard}",
        )


def check_zone_data(replicas: Iterable[ReplicaStatus], now: int, config: CheckConfig) -> Iterator[Finding]:
    """Return replicas whose time-zone data differ from others' for longer than a rolling upgrade takes."""
    names: dict[str, list[str]] = {}
    for replica in replicas:
        if replica.zone_data is not None and now - replica.started_at_ms > config.patience_ms:
            names.setdefault(replica.zone_data, []).append(replica.name)
    if len(names) > 1:
        data = "; ".join(f"{version}: {', '.join(sorted(named))}" for version, named in sorted(names.items()))
        yield Finding(
            FindingKind.ZONE_DATA_DIFFER,
            "replicas",
            f"their time-zone data differ ({data}): when a local time is due depends on which one leads",
            "finish the upgrade or the rollback, so that all replicas run one image; compare with hascheduler cluster",
            witness=data,
        )
