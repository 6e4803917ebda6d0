"""What becomes of the stored job that holds a unique key, when another job is submitted under that key."""

from dataclasses import replace
from enum import Enum

from hascheduler.model.job import LIVE, JobState, NewJob
from hascheduler.model.uniqueness import OnDuplicate
from hascheduler.model.values.fields import Document, is_integer
from hascheduler.model.values.instants import WallMs


class HolderFate(Enum):
    KEEPS = "keeps"
    """The submit is answered with it."""
    REPLACED = "replaced"
    """It gives its key away and, if it is still not dispatched then, is cancelled."""
    RELEASES = "releases"
    """It gives its key away and goes on."""


def fate_of(holder: Document, job: NewJob) -> HolderFate:
    """The fate of ``holder`` as ``job`` is submitted under its key. It depends on the state and the attempt of the
    holder, so what is done about it compares both."""
    assert job.unique is not None
    rule, submitted_at_ms = job.unique, job.submitted_at_ms
    if rule.on_duplicate is OnDuplicate.KEEP_FIRST:
        until_ms = _submitted_at_ms(holder) + (rule.period_ms or 0)
        is_live = str(holder.get("state")) in LIVE
        return HolderFate.KEEPS if is_live or submitted_at_ms < until_ms else HolderFate.RELEASES
    if holder.get("state") != JobState.PENDING or holder.get("attempt") != 0:
        return HolderFate.RELEASES
    # Else a row that is submitted faster than its jobs start would go to the end of the queue for ever.
    is_over = rule.max_wait_ms is not None and submitted_at_ms >= _since_ms(holder) + rule.max_wait_ms
    return HolderFate.RELEASES if is_over else HolderFate.REPLACED


def replacing(job: NewJob, holder: Document) -> NewJob:
    """``job`` in the place of ``holder``: it has waited as long as that one."""
    unique = job.unique
    assert unique is not None
    since_ms = min(unique.since_ms or job.submitted_at_ms, _since_ms(holder))
    return replace(job, unique=replace(unique, since_ms=WallMs(since_ms)))


def _since_ms(holder: Document) -> int:
    since_ms = holder.get("unique_since_ms")
    return since_ms if is_integer(since_ms) else _submitted_at_ms(holder)


def _submitted_at_ms(holder: Document) -> int:
    submitted_at_ms = holder.get("submitted_at_ms")
    return submitted_at_ms if is_integer(submitted_at_ms) else 0
