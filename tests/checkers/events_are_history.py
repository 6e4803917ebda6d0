"""The events that a follower got are what was committed of the jobs, in the same order: none more, none less."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from hascheduler.model.collection import Collection
from hascheduler.model.event import EventType
from hascheduler.model.job import TERMINAL, JobState
from tests.checkers.evidence import Commit, Evidence, SeenEvent

_ENTERED = {
    JobState.PENDING: EventType.RETURNED,
    JobState.DISPATCHED: EventType.DISPATCHED,
    JobState.RUNNING: EventType.STARTED,
    **{state: EventType(state.value) for state in TERMINAL},
}


def events_are_history(evidence: Evidence) -> list[str]:
    history = [
        SeenEvent(commit.id, type.value) for commit in evidence.of(Collection.JOBS) for type in _types_of(commit)
    ]
    wrong = [_first_difference(run, history) for run in evidence.events if run]
    return [text for text in wrong if text]


def _first_difference(run: Sequence[SeenEvent], history: Sequence[SeenEvent]) -> str:
    """Return where ``run`` leaves the history that begins with its first event; "" if it never does."""
    begins = [place for place, event in enumerate(history) if event == run[0]]
    if not begins:
        return f"an event says {run[0]}, and the history does not"
    differ = []
    for begin in begins:
        # A run ends before the history does: its follower was the first to stop.
        pairs = enumerate(zip_longest(run, history[begin : begin + len(run)]))
        differ.append(next(((place, seen, was) for place, (seen, was) in pairs if seen != was), None))
    if None in differ:
        return ""
    place, seen, was = max(each for each in differ if each is not None)
    return f"event {place} of {len(run)} says {seen}, the history {was}"


def _types_of(commit: Commit) -> Iterator[EventType]:
    before, after = commit.before, commit.after
    if after is None:
        return
    became = JobState(after["state"])
    if before is None:
        yield EventType.SUBMITTED
        if became is JobState.DISPATCHED:
            yield EventType.DISPATCHED
    elif after["state"] != before["state"]:
        is_revived = became is JobState.PENDING and after["attempt"] != before["attempt"]
        yield EventType.REVIVED if is_revived else _ENTERED[became]
    elif after.get("cancel_requested_at_ms") is not None and before.get("cancel_requested_at_ms") is None:
        yield EventType.CANCEL_REQUESTED
    elif after["priority"] != before["priority"]:
        yield EventType.REPRIORITIZED
