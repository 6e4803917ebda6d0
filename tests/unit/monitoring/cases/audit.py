"""Whether what should always hold does."""

from tests.unit.monitoring.cases.case import NAMESPACE, Case, Fires, told

FINDINGS = "hascheduler_audit_findings"
DIFFER = "hascheduler_mirrors_differ"
ZONE_DATA = "hascheduler_zone_data_info"


def found(kind: str, process: int = 0) -> str:
    """The series of that kind of finding; `told` has another use for the label's name."""
    return told(FINDINGS, process).replace("{", f'{{kind="{kind}", ', 1)


CASES = (
    Case(
        "SchedulesAhead",
        "three schedules fired by a clock that was wrong, and no other alert says so",
        "5m",
        {found("cursor_ahead"): "3x60"},
        (Fires("3 schedules fired ahead of time and are silent now in hascheduler", {"namespace": NAMESPACE}),),
    ),
    Case("SchedulesAhead", "another finding", "5m", {found("overdue"): "2x60"}),
    Case("AuditFindings", "schedules that are ahead have an alert of their own", "5m", {found("cursor_ahead"): "3x60"}),
    Case(
        "AuditFindings",
        "two of a kind",
        "5m",
        {found("overdue"): "2x60", found("journal_gap"): "0x60"},
        (Fires("The audit finds 2 overdue in hascheduler", {"namespace": NAMESPACE, "kind": "overdue"}),),
    ),
    Case(
        "AuditFindings",
        "the leader that found it has gone, and the next has yet to look",
        "12m",
        {found("overdue", 0): "1x20 stale", found("overdue", 1): "_x20 _x60"},
        (Fires("The audit finds 1 overdue in hascheduler", {"namespace": NAMESPACE, "kind": "overdue"}),),
    ),
    Case("AuditFindings", "none", "5m", {found("overdue"): "0x60"}),
    Case(
        "AuditFindings",
        "what it found is mended",
        "25m",
        {found("overdue"): "1x20 0x99"},
    ),
    Case(
        "MirrorsDiffer",
        "for a moment",
        "8m",
        {told(DIFFER, 0): "0x10 1x3 0x60", told(DIFFER, 1): "0x10 1x3 0x60"},
        (Fires("The mirrors of replicas differ at one point of the stream in hascheduler"),),
    ),
    Case("MirrorsDiffer", "never", "8m", {told(DIFFER, 0): "0x60", told(DIFFER, 1): "0x60"}),
    Case("MirrorsDiffer", "a while ago", "20m", {told(DIFFER, 0): "0x10 1x3 0x99"}),
    Case(
        "ZoneDataDiffer",
        "one of three replicas has older data",
        "32m",
        {told(ZONE_DATA, n, version=version): "1x160" for n, version in enumerate(("2026f", "2025b", "2026f"))},
        (Fires("Replicas have 2 releases of time-zone data in hascheduler"),),
    ),
    Case(
        "ZoneDataDiffer",
        "while an upgrade rolls out",
        "32m",
        {
            told(ZONE_DATA, 0, version="2025b"): "1x40 stale",
            told(ZONE_DATA, 1, version="2026f"): "1x160",
            told(ZONE_DATA, 2, version="2026f"): "_x20 1x140",
        },
    ),
    Case("ZoneDataDiffer", "never", "32m", {told(ZONE_DATA, n, version="2026f"): "1x160" for n in range(3)}),
)
