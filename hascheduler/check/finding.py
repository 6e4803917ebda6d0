"""The settings and graces of a check, its findings, their collector and their report."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from hascheduler.model.values.instants import LATEST_MS, format_instant

MINUTE_MS = 60_000
FINDINGS_KEPT_MAX = 100
"""How many findings of each kind are kept with their texts; others are only counted."""
SUSPECTS_MAX = 1_000
"""How many suspects of each kind get a second scan."""


@dataclass(frozen=True, slots=True)
class CheckConfig:
    """The settings of the replicas, which must be the same here, and the graces that are added to them.

    ``motion_ms`` covers what a leader does at once and the difference of clocks; ``patience_ms`` covers a failover, a
    restart or an outage of the broker; ``expiry_ms`` is how late the database may delete expired documents.
    """

    job_retention_ms: int
    journal_retention_ms: int
    heartbeat_timeout_ms: int
    start_timeout_ms: int
    motion_ms: int = MINUTE_MS
    patience_ms: int = 10 * MINUTE_MS
    expiry_ms: int = 60 * MINUTE_MS


class FindingKind(StrEnum):
    VERDICT_MISSING = "verdict_missing"
    VERDICT_DOUBLED = "verdict_doubled"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    OVERDUE = "overdue"
    CURSOR_AHEAD = "cursor_ahead"
    NOT_STARTED = "not_started"
    ORPHAN_ATTEMPT = "orphan_attempt"
    CANCEL_IGNORED = "cancel_ignored"
    OVERTIME = "overtime"
    EXPIRED = "expired"
    WAITING_IN_VAIN = "waiting_in_vain"
    DEPENDENT_STRANDED = "dependent_stranded"
    IDEMPOTENCY_DOUBLED = "idempotency_doubled"
    JOURNAL_GAP = "journal_gap"
    JOURNAL_ORDER = "journal_order"
    JOURNAL_UNAPPLIED = "journal_unapplied"
    LEASE_TERM = "lease_term"
    NOBODY_LEADS = "nobody_leads"
    UNKNOWN_SHARD = "unknown_shard"
    ZONE_DATA_DIFFER = "zone_data_differ"
    MISPLACED = "misplaced"
    NAME_UNRESERVED = "name_unreserved"
    UNKNOWN_STATE = "unknown_state"
    UNKNOWN_FORM = "unknown_form"
    UNREADABLE = "unreadable"
    INDEX = "index"
    NOT_EXPIRED = "not_expired"


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken document.

    ``document`` is ``collection/id``, or names several; ``what`` holds the numbers. ``witness`` is the version that was
    scanned: a finding that motion could explain holds only if a later scan finds the same version. None if motion can't
    explain it.
    """

    kind: FindingKind
    document: str
    what: str
    hint: str
    since_ms: int | None = None
    witness: str | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[FindingKind, str]:
        return self.kind, self.document


@dataclass(frozen=True, slots=True)
class CheckReport:
    """At most `FINDINGS_KEPT_MAX` ``findings`` of each kind, and the ``counts`` of all.

    ``complete`` is True if the whole scan was done.
    """

    at_ms: int
    findings: tuple[Finding, ...]
    counts: Mapping[str, int]
    looked_at: Mapping[str, int]
    complete: bool


def merged_report(reports: Mapping[str, CheckReport]) -> CheckReport:
    """Return one report of several shards, whose names precede the documents."""
    counts: Counter[str] = Counter()
    looked_at: Counter[str] = Counter()
    for report in reports.values():
        counts.update(report.counts)
        looked_at.update(report.looked_at)
    return CheckReport(
        max(report.at_ms for report in reports.values()),
        tuple(
            replace(finding, document=f"{shard}: {finding.document}")
            for shard, report in reports.items()
            for finding in report.findings
        ),
        dict(counts),
        dict(looked_at),
        all(report.complete for report in reports.values()),
    )


Report = Callable[[Iterable[Finding | None]], None]
"""Called with the findings of a rule; None stands for a sound document."""


class FindingCollector:
    """Owner of the findings so far, certain ones and suspects; bounded, however much is broken."""

    def __init__(self) -> None:
        self._kept: dict[FindingKind, dict[str, Finding]] = {}
        self._counts: Counter[FindingKind] = Counter()
        self._suspects: dict[FindingKind, dict[str, Finding]] = {}
        self.overflowed = False
        """True if there were more suspects than the second scan covers."""

    @property
    def suspects(self) -> Mapping[FindingKind, Mapping[str, Finding]]:
        """Return the findings that motion could explain, by kind, then by document."""
        return self._suspects

    @property
    def counts(self) -> Mapping[str, int]:
        return {kind.value: self._counts[kind] for kind in FindingKind if self._counts[kind]}

    def listed(self) -> tuple[Finding, ...]:
        """Return the findings by kind, in the order of `FindingKind`."""
        return tuple(finding for kind in FindingKind for finding in self._kept.get(kind, {}).values())

    def add(self, found: Iterable[Finding | None]) -> None:
        for finding in found:
            if finding is None:
                continue
            if finding.witness is None:
                self._keep(finding)
                continue
            of_kind = self._suspects.setdefault(finding.kind, {})
            if len(of_kind) < SUSPECTS_MAX:
                of_kind[finding.document] = finding
            else:
                self.overflowed = True

    def confirm(self, found: Iterable[Finding]) -> None:
        """Add ``found``, the result of the second scan: a suspect whose document is unchanged is a finding."""
        for finding in found:
            suspect = self._suspects.get(finding.kind, {}).pop(finding.document, None)
            if suspect is not None and suspect.witness == finding.witness:
                self._keep(finding)

    def _keep(self, finding: Finding) -> None:
        of_kind = self._kept.setdefault(finding.kind, {})
        if finding.document in of_kind:
            return
        self._counts[finding.kind] += 1
        if len(of_kind) < FINDINGS_KEPT_MAX:
            of_kind[finding.document] = finding


def instant_or_ms(at_ms: int) -> str:
    """Return the instant as RFC 3339, or as bare milliseconds if the stored value is out of range."""
    return format_instant(at_ms) if 0 <= at_ms < LATEST_MS else f"{at_ms} ms"


def short_id(id: object) -> str:
    """Return an ``_id`` of any stored type in at most 200 characters."""
    text = id if isinstance(id, str) else repr(id)
    return text if len(text) <= 200 else text[:199] + "…"
