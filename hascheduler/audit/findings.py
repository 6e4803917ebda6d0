"""Gathers findings: what is certain at once, and what only a second look makes certain."""

from collections import Counter
from collections.abc import Iterable, Mapping

from hascheduler.audit.finding import Finding, FindingKind

KEPT_MAX = 100
"""Of each kind, with all their words; the others are counted."""
SUSPECTS_MAX = 1_000
"""Of each kind, to be looked at again."""


class Findings:
    """Owner of what was found so far; bounded, however much is broken."""

    def __init__(self) -> None:
        self._kept: dict[FindingKind, dict[str, Finding]] = {}
        self._counts: Counter[FindingKind] = Counter()
        self._suspects: dict[FindingKind, dict[str, Finding]] = {}
        self.overflowed = False
        """Whether there were more suspects than are looked at again."""

    @property
    def suspects(self) -> Mapping[FindingKind, Mapping[str, Finding]]:
        """What motion could explain, by kind, then by document."""
        return self._suspects

    @property
    def counts(self) -> Mapping[str, int]:
        return {kind.value: self._counts[kind] for kind in FindingKind if self._counts[kind]}

    def listed(self) -> tuple[Finding, ...]:
        """By kind, in their order."""
        return tuple(finding for kind in FindingKind for finding in self._kept.get(kind, {}).values())

    def add(self, found: Iterable[Finding]) -> None:
        for finding in found:
            if finding.witness is None:
                self._keep(finding)
                continue
            of_kind = self._suspects.setdefault(finding.kind, {})
            if len(of_kind) < SUSPECTS_MAX:
                of_kind[finding.document] = finding
            else:
                self.overflowed = True

    def looked_again(self, found: Iterable[Finding]) -> None:
        """What a second look at the suspects shows: those whose documents stand as they stood are findings."""
        for finding in found:
            suspect = self._suspects.get(finding.kind, {}).pop(finding.document, None)
            if suspect is not None and suspect.witness == finding.witness:
                self._keep(finding)

    def _keep(self, finding: Finding) -> None:
        of_kind = self._kept.setdefault(finding.kind, {})
        if finding.document in of_kind:
            return
        self._counts[finding.kind] += 1
        if len(of_kind) < KEPT_MAX:
            of_kind[finding.document] = finding
