"""At one point of the stream all mirrors are the same, by the digests that replicas wrote into the database there."""

from hascheduler.model.collection import Collection
from tests.checkers.evidence import Evidence


def mirrors_agree(evidence: Evidence) -> list[str]:
    said: dict[str, tuple[str, str]] = {}
    wrong = []
    for commit in evidence.of(Collection.REPLICAS):
        marks = (commit.after or {}).get("marks") or ""
        for mark in marks.split():
            point, _, digest = mark.partition("=")
            first, first_digest = said.setdefault(point, (commit.id, digest))
            if digest != first_digest:
                wrong.append(f"at {point} {commit.id} has {digest}, {first} has {first_digest}")
    return sorted(set(wrong))
