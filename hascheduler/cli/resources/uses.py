"""What still uses a definition, a lane, a calendar or a tenant, so that ``apply --prune`` deletes none of those.

References are names, and nothing stops anybody from naming what is not there: what is found here held when it was asked
for. Schedules, jobs that have not ended, and a tenant's tokens count.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any

from hascheduler.client import Scheduler
from hascheduler.model.job import TERMINAL, JobState
from hascheduler.schema.lane import DEFAULT_LANE
from hascheduler.schema.tenant import DEFAULT_TENANT

Noun = tuple[str, str]
"""Its kind and its name."""
Planned = Mapping[str, Mapping[str, Any] | None]
"""By a schedule's name, what it will be; None where it goes."""

_LIVE = [state for state in JobState if state not in TERMINAL]
_OF_JOBS = ("definition", "lane", "tenant")
_UNSAID = {"lane": DEFAULT_LANE, "tenant": DEFAULT_TENANT}
LOOKED_AT_MAX = 10_000
"""How many live jobs are looked at to find one of a lane, as no list of jobs is by lane."""


def uses(scheduler: Scheduler, nouns: Sequence[Noun], planned: Planned) -> dict[Noun, str]:
    """Of those ``nouns`` that are used, by what: one line each."""
    if not nouns:
        return {}
    found = _schedules(scheduler, set(nouns), planned)
    for kind, name in nouns:
        if (kind, name) in found:
            continue
        if kind == "calendar":
            continue  # only schedules name one
        said = _live_job(scheduler, kind, name) or (_token(scheduler, name) if kind == "tenant" else None)
        if said is not None:
            found[kind, name] = said
    return found


def _schedules(scheduler: Scheduler, nouns: Set[Noun], planned: Planned) -> dict[Noun, str]:
    users: dict[Noun, list[str]] = {}
    for name, body in _bodies(scheduler, planned):
        jobs = body.get("jobs") or [body.get("job") or {}]
        named = {(kind, job.get(kind) or _UNSAID.get(kind, "")) for job in jobs for kind in _OF_JOBS}
        for noun in named & nouns:
            users.setdefault(noun, []).append(name)
        use = body["trigger"].get("calendars") or {}
        for calendar in {*(use.get("only") or ()), *(use.get("except") or ())}:
            if ("calendar", calendar) in nouns:
                users.setdefault(("calendar", calendar), []).append(name)
    return {noun: f"schedule {names[0]}{_more(len(names) - 1)} it" for noun, names in users.items()}


def _more(count: int) -> str:
    return " still uses" if not count else f" and {count} more still use"


def _bodies(scheduler: Scheduler, planned: Planned) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each schedule as it will be."""
    for stored in scheduler.schedules.list():
        if stored["name"] not in planned:
            yield stored["name"], stored
    for name, body in planned.items():
        if body is not None:
            yield name, body


def _live_job(scheduler: Scheduler, kind: str, name: str) -> str | None:
    said: dict[str, Any] = {kind: name} if kind in ("definition", "tenant") else {}  # no list is by lane
    live = scheduler.list(state=_LIVE, **said)
    looked_at = 0
    for job in islice(live, LOOKED_AT_MAX):
        looked_at += 1
        if getattr(job, kind) == name:
            return f"job {job.id}, which has not ended, uses it"
    if looked_at == LOOKED_AT_MAX:
        return f"{LOOKED_AT_MAX:,} jobs or more have not ended, which are too many to see whether one uses it"
    return None


def _token(scheduler: Scheduler, tenant: str) -> str | None:
    for token in scheduler.tokens.list():
        if token["tenant"] == tenant:
            return f"token {token['id']} ({token['name']}) is of it"
    return None
