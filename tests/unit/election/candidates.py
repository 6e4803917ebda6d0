"""Candidates and leases with only what matters spelled out. Spans are milliseconds of a candidate's own clock."""

from dataclasses import replace

from hascheduler.election.elector import ElectionConfig, Elector, LeaseAnswer, LeaseAttempt
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.values.instants import MonoMs, WallMs

LEASE_MS, DEADLINE_MS, RETRY_MS = 10_000, 6_000, 1_000
WALL = WallMs(1_700_000_000_000)
START = MonoMs(50_000)


def config(candidate_id: str = "me") -> ElectionConfig:
    return ElectionConfig("default", candidate_id, f"{candidate_id}:1", LEASE_MS, DEADLINE_MS, RETRY_MS)


def lease(holder: str = "other", term: int = 5, renewals: int = 0, **more: int) -> LeaseRecord:
    plain = LeaseRecord("default", holder, term, renewals, f"{holder}:1", WALL, WALL, LEASE_MS, 3)
    return replace(plain, **more)  # type: ignore[arg-type]


def at(span_ms: int) -> MonoMs:
    return MonoMs(START + span_ms)


def candidate(record: LeaseRecord | None = None, *, seen_at: int = 0) -> Elector:
    elector = Elector(config(), START)
    elector.observe(record, at(seen_at))
    return elector


def attempt_of(elector: Elector, span_ms: int) -> LeaseAttempt:
    attempt = elector.next_attempt(at(span_ms), WALL)
    assert attempt is not None
    return attempt


def leader(*, since: int = 0) -> Elector:
    elector = candidate(None, seen_at=since)
    elector.concluded(attempt_of(elector, since), LeaseAnswer.WON, at(since), at(since + 5))
    return elector
