"""What is promised of leaders: one at a time, fenced, with the same mirrors, and nothing decided twice."""

from collections.abc import Iterator
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.job import fire_job_id
from hascheduler.model.leadership import EntryKind
from hascheduler.schema.pause import EVERYTHING
from tests.checkers.evidence import Evidence


def journal_fenced(evidence: Evidence) -> list[str]:
    """Terms only rise, one holder a term; entries are without gaps; after a ``term_began`` nothing of an older term."""
    wrong = []
    seq, term, holder = 0, 0, ""
    for commit in evidence.of(Collection.JOURNAL):
        entry = commit.after
        if entry is None:
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


def decided_once(evidence: Evidence) -> list[str]:
    """A term decides nothing that was decided and carried out before it began: it knows everything up to its
    beginning."""
    wrong = []
    attempts: dict[str, int] = {}
    # By shard: each has terms of its own.
    attempts_at_beginning: dict[str, dict[str, int]] = {}
    for commit in evidence.commits:
        if commit.collection is Collection.JOBS and commit.after is not None:
            attempts[commit.id] = max(attempts.get(commit.id, 0), commit.after["attempt"])
        if commit.collection is not Collection.JOURNAL or commit.after is None or commit.before is not None:
            continue
        if commit.after["kind"] == EntryKind.TERM_BEGAN:
            attempts_at_beginning[commit.after["_id"]["shard"]] = dict(attempts)
            continue
        known = attempts_at_beginning.get(commit.after["_id"]["shard"], {})
        for job_id, attempt in claims_in(commit.after["decisions"]):
            if known.get(job_id, -1) >= attempt:
                wrong.append(
                    f"{job_id}, attempt {attempt}, was decided again in term {commit.after['term']},"
                    f" entry {commit.after['_id']['seq']}"
                )
    return wrong


def claims_in(decisions: Any) -> Iterator[tuple[str, int]]:
    """The jobs and attempts of an entry's decisions. A fire makes attempt 0."""
    for kind, *fields in decisions:
        if kind == "fire":
            yield fire_job_id(fields[0], fields[1]), 0
        elif kind == "dispatch":
            yield fields[0], fields[1]


def lease_moves(evidence: Evidence) -> list[str]:
    """The lease changes only as a compare-and-set allows: renewed or released by its holder, or taken with a new
    term."""
    wrong = []
    for commit in evidence.of(Collection.LEASES):
        before, after = commit.before, commit.after
        if before is None or after is None:
            continue
        was = (before["holder"], before["term"], before["renewals"])
        became = (after["holder"], after["term"], after["renewals"])
        is_next = after["renewals"] == before["renewals"] + 1
        is_own = after["term"] == before["term"] and after["holder"] in (before["holder"], "")
        is_taken = after["term"] > before["term"] and after["holder"] != ""
        if not (is_next and (is_own or is_taken)):
            wrong.append(f"the lease went from {was} to {became} at {commit.at_s:.3f} s")
    return wrong


def one_leader(evidence: Evidence) -> list[str]:
    """No two replicas that are awake believe at once that they lead, and none leads on a mirror that hears nothing, or
    on a lease that it could not renew in time.

    The second wall would keep two leaders from doing harm; that there are none is the first one's promise. It holds for
    clocks that run at one rate, as the trust of a leader and the patience of a follower are both measured. And it does
    not hold for a leader that stood still, or was cut off, and was followed for that: it may still trust its lease when
    it goes on, until it looks at it.
    """
    wrong = []
    for sighting in evidence.sightings:
        leaders = [id for id in sighting.leaders if id not in sighting.overtaken]
        if len(leaders) > 1 and not sighting.clocks_differ:
            wrong.append(f"{' and '.join(leaders)} lead at {sighting.at_s:.3f} s")
        wrong += [f"{id} leads at {sighting.at_s:.3f} s and has long heard nothing" for id in sighting.deaf]
        if not sighting.clocks_differ:
            wrong += [f"{id} leads at {sighting.at_s:.3f} s on a lease long not renewed" for id in sighting.lapsed]
    return wrong


_WITHIN_S = 600.0
_AT_MOST = 2


def followed_rightly(evidence: Evidence) -> list[str]:
    """Leaders that are awake and connected are hardly ever followed early: at most twice in ten minutes, and in no
    circle.

    Once is the promise for a cluster that is known to be short of CPU. The first stop of a leader that was on time
    until then shows nothing of that, so it may come on top.
    """
    at_s = [at_s for at_s, _ in evidence.needless]
    return [
        f"{_AT_MOST + 1} leaders were followed needlessly by {last_s:.3f} s: "
        + ", ".join(f"{id} at {when_s:.3f} s" for when_s, id in evidence.needless)
        for first_s, last_s in zip(at_s, at_s[_AT_MOST:], strict=False)
        if last_s - first_s <= _WITHIN_S
    ]


def mirrors_agree(evidence: Evidence) -> list[str]:
    """At one point of the stream all mirrors are the same, by the digests that replicas wrote into the database
    there."""
    digests: dict[str, tuple[str, str]] = {}
    wrong = []
    for commit in evidence.of(Collection.REPLICAS):
        marks = (commit.after or {}).get("marks") or ""
        for mark in marks.split():
            point, _, digest = mark.partition("=")
            first, first_digest = digests.setdefault(point, (commit.id, digest))
            if digest != first_digest:
                wrong.append(f"at {point} {commit.id} has {digest}, {first} has {first_digest}")
    return sorted(set(wrong))


HEEDED_S = 9.0
"""A process or a stream stands still for 8 s at most."""
_OF_TIMES = frozenset({"fire", "pass_over"})


def pauses_kept(evidence: Evidence) -> list[str]:
    """While everything is paused nothing is decided about nominal times, and no job is dispatched.

    A leader heeds a pause once its stream has shown it, and a process may stand still between a decision and its entry:
    so only entries count that came long after the pause began. What is decided again was promised before.
    """
    wrong: list[str] = []
    paused_s: float | None = None
    held = frozenset[str]()
    promised: set[str] = set()
    for commit in evidence.commits:
        if commit.collection is Collection.PAUSES and commit.id == EVERYTHING:
            if commit.after is None:
                paused_s = None
            elif commit.before is None:
                paused_s = commit.at_s
                held = _OF_TIMES if commit.after["schedules_only"] else _OF_TIMES | {"dispatch"}
        if commit.collection is not Collection.JOURNAL or commit.before is not None or commit.after is None:
            continue
        for row in commit.after["decisions"] or ():
            is_new = str(row[:4]) not in promised
            promised.add(str(row[:4]))
            if is_new and paused_s is not None and commit.at_s > paused_s + HEEDED_S and row[0] in held:
                wrong.append(f"{row[:4]} at {commit.at_s:.3f} s, and all is paused since {paused_s:.3f} s")
    return wrong
