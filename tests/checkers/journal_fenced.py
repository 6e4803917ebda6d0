"""Terms only rise, one holder a term; entries are without gaps; after a ``term_began`` nothing of an older term."""

from hascheduler.model.collection import Collection
from hascheduler.model.leadership import EntryKind
from tests.checkers.evidence import Evidence


def journal_fenced(evidence: Evidence) -> list[str]:
    wrong = []
    seq, term, holder = 0, 0, ""
    for commit in evidence.of(Collection.JOURNAL):
        entry = commit.after
        if entry is None:
            if not evidence.is_retired(commit) or commit.id["seq"] == seq:
                wrong.append(f"entry {commit.id} was deleted")
            continue
        if commit.before is not None:
            wrong.append(f"entry {commit.id} was changed")
            continue
        if entry["_id"]["seq"] != seq + 1:
            wrong.append(f"entry {entry['_id']['seq']} follows {seq}")
        seq = entry["_id"]["seq"]
        if entry["kind"] == EntryKind.TERM_BEGAN:
            if entry["term"] <= term:
                wrong.append(f"term {entry['term']} began after term {term}")
            term, holder = entry["term"], entry["holder"]
        elif (entry["term"], entry["holder"]) != (term, holder):
            wrong.append(f"entry {seq} of term {entry['term']} ({entry['holder']}) in term {term} ({holder})")
    leases = 0
    for commit in evidence.of(Collection.LEASES):
        if commit.after is not None:
            if commit.after["term"] < leases:
                wrong.append(f"the lease went back from term {leases} to {commit.after['term']}")
            leases = max(leases, commit.after["term"])
    return wrong
