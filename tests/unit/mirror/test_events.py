"""The events of a job's changes: every step of its life, by patches and whole documents, and nothing made up."""

from typing import Any

import pytest

from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import REVIVED_FIELDS
from hascheduler.model.event import Event, EventType, position
from hascheduler.model.job import fire_job_id
from hascheduler.model.partition import with_partition
from tests.unit.mirror.nouns import delete, held, job_fields, patch, put, schedule_fields

JOBS = Collection.JOBS
FIRE = fire_job_id("tick", 1_000)
AT_MS = 7_000_123

LIFE: list[tuple[str, dict[str, Any]]] = [
    ("dispatched", {"state": "dispatched", "attempt": 1, "processor": "p", "dispatched_at_ms": 20}),
    ("started", {"state": "running", "started_at_ms": 30, "first_started_at_ms": 30}),
    ("returned", {"state": "pending", "processor": None, "failures": 1, "retry_at_ms": 90, "started_at_ms": None}),
    ("reprioritized", {"priority": 9}),
    ("dispatched", {"state": "dispatched", "attempt": 2, "processor": "q", "dispatched_at_ms": 95}),
    ("started", {"state": "running", "started_at_ms": 96}),
    ("cancel_requested", {"cancel_requested_at_ms": 97}),
    ("cancelled", {"state": "cancelled", "processor": None, "finished_at_ms": 99}),
]


class Stream:
    """Changes as a stream numbers them, one a second, folded into ``mirror``."""

    def __init__(self) -> None:
        self.mirror = Mirror()
        self.seconds = 0

    def fold(self, change: Change) -> list[Event]:
        self.seconds += 1
        positioned = Change(change.collection, change.operation, change.id, change.fields, self.position, AT_MS)
        return self.mirror.fold([positioned]).events

    @property
    def position(self) -> str:
        return position(self.seconds, 1)


def change_as(operation: Operation, id: str, rev: int, whole: dict[str, Any], changed: dict[str, Any]) -> Change:
    if operation is Operation.PATCH:
        return patch(JOBS, id, rev=rev, **changed)
    return put(JOBS, id, {**whole, "rev": rev})


def types(events: list[Event]) -> list[str]:
    return [event.type.value for event in events]


@pytest.mark.parametrize("operation", [Operation.PATCH, Operation.PUT])
def test_every_step_of_a_life_is_one_event(operation: Operation) -> None:
    """A server may report an update by the fields that changed or, of a small document, whole."""
    stream = Stream()
    whole = job_fields()
    events = stream.fold(put(JOBS, FIRE, whole))
    for rev, (_, changed) in enumerate(LIFE, start=2):
        whole |= changed
        events += stream.fold(change_as(operation, FIRE, rev, whole, changed))
    assert types(events) == ["submitted", *(type for type, _ in LIFE)]
    assert [event.id for event in events] == [position(second, 1) for second in range(1, 10)]
    assert [(event.attempt, event.processor) for event in events] == [
        (0, None), (1, "p"), (1, "p"), (1, "p"), (1, None), (2, "q"), (2, "q"), (2, "q"), (2, "q"),
    ]  # fmt: skip
    assert {(event.job, event.schedule, event.tenant, event.definition, event.at_ms) for event in events} == {
        (FIRE, "tick", "tenant", "log", AT_MS)
    }
    assert [(event.failures, event.retry_at_ms, event.priority) for event in events[3:5]] == [
        (1, 90, None),
        (None, None, 9),
    ]


@pytest.mark.parametrize(
    "change",
    [
        delete(JOBS, "j"),
        patch(JOBS, "j", rev=2),
        patch(JOBS, "j", rev=2, waits_for=[]),
        patch(JOBS, "j", rev=2, failures=3),
        patch(JOBS, "j", rev=2, state="odd"),
        patch(JOBS, "j", rev=2, state=7),
        patch(JOBS, "j", rev=2, cancel_requested_at_ms=None),
        put(JOBS, "j", job_fields(rev=2)),
        put(JOBS, "j", job_fields(rev=2, waits_for=["k"])),
        put(JOBS, "j", {}),
        put(JOBS, {"an": "object"}, job_fields()),
        put(JOBS, "new", job_fields(rev=7)),
        put(JOBS, "new", job_fields(rev=7, state="running", attempt=1)),
        put(Collection.DEFINITIONS, "log", {"rev": 1}),
    ],
)
def test_what_is_no_step_is_no_event(change: Change) -> None:
    stream = Stream()
    stream.fold(put(JOBS, "j", job_fields()))
    assert stream.fold(change) == []


@pytest.mark.parametrize("operation", [Operation.PATCH, Operation.PUT])
def test_a_failure_tells_the_beginning_of_its_error_without_secrets(operation: Operation) -> None:
    stream = Stream()
    whole = job_fields(state="running", attempt=1, processor="p")
    stream.fold(put(JOBS, "job:1", whole))
    error = f"no answer of http://me:secret@there/ {'x' * 1_000}"
    changed = {"state": "failed", "processor": None, "finished_at_ms": 99, "failures": 1, "error": error}
    [event] = stream.fold(change_as(operation, "job:1", 2, whole | changed, changed))
    assert (event.type, len(event.error or "")) == (EventType.FAILED, 501 - len("me:secret") + len("***"))
    assert (event.error or "").startswith("no answer of http://***@there/ xxx")


@pytest.mark.parametrize("operation", [Operation.PATCH, Operation.PUT])
@pytest.mark.parametrize(
    ("last_error", "shown"),
    [("2 no answer of http://me:secret@there", "no answer of http://***@there"), ("1 of the try before", None),
     ("2", None), ("2 ", None), ("nonsense", None), (7, None), (None, None)],
)  # fmt: skip
def test_a_try_that_ends_tells_its_own_error(operation: Operation, last_error: object, shown: str | None) -> None:
    stream = Stream()
    whole = job_fields(state="running", attempt=2, processor="p")
    stream.fold(put(JOBS, "job:1", whole))
    changed = {"state": "pending", "processor": None, "last_error": last_error}
    [event] = stream.fold(change_as(operation, "job:1", 2, whole | changed, changed))
    assert (event.type, event.error) == (EventType.RETURNED, shown)
    assert "job:1" in stream.mirror.nouns(JOBS)


def schedule_moved(to_ms: int, missed: object = None, **more: Any) -> Change:
    fields = {} if missed is None else {"missed": missed}
    return patch(Collection.SCHEDULES, "tick", cursor_ms=to_ms, tally=[0, 0, 3, 0, 0, 0], **fields, **more)


def test_times_that_were_missed_are_one_event_of_their_schedule() -> None:
    stream = Stream()
    known = schedule_fields()
    cursor_ms = known["cursor_ms"]
    assert stream.fold(put(Collection.SCHEDULES, "tick", known)) == []
    first, last = cursor_ms + 1_000, cursor_ms + 3_000
    [event] = stream.fold(schedule_moved(last + 1_000, [first, last, 3]))
    assert (event.type, event.id, event.at_ms, event.job) == (EventType.SCHEDULE_MISSED, stream.position, AT_MS, None)
    assert (event.schedule, event.tenant, event.definition) == (
        "tick",
        known["job"]["tenant"],
        known["job"]["definition"],
    )
    assert (event.count, event.nominal_ms, event.through_ms) == (3, first, last)
    assert stream.fold(schedule_moved(last + 2_000)) == []
    whole = {**known, "cursor_ms": last + 3_000, "missed": [first, last, 3]}
    assert stream.fold(put(Collection.SCHEDULES, "tick", whole)) == [], "an earlier change told them"
    later = last + 4_000
    [event] = stream.fold(put(Collection.SCHEDULES, "tick", {**whole, "cursor_ms": later, "missed": [later, later, 1]}))
    assert (event.count, event.nominal_ms) == (1, later)
    [schedule] = stream.mirror.nouns(Collection.SCHEDULES).values()
    assert schedule.cursor_ms == later


@pytest.mark.parametrize(
    "missed", [None, [], [1, 2], [2, 1, 1], [1, 2, 0], ["1", 2, 3], [1.0, 2, 3], {"count": 1}, "x"]
)
def test_what_is_unreadable_about_missed_times_is_no_event_and_harms_nothing(missed: object) -> None:
    stream = Stream()
    stream.fold(put(Collection.SCHEDULES, "tick", schedule_fields()))
    cursor_ms = schedule_fields()["cursor_ms"] + 5_000
    assert stream.fold(schedule_moved(cursor_ms, missed)) == []
    assert stream.mirror.nouns(Collection.SCHEDULES)["tick"].cursor_ms == cursor_ms


def test_nothing_of_a_silently_held_partition_is_an_event_until_the_hold_is_lifted() -> None:
    stream, known, ended = Stream(), with_partition("known", "tenant"), with_partition("ended", "tenant")
    stream.fold(put(JOBS, known, job_fields()))
    stream.fold(put(Collection.SCHEDULES, "tick", schedule_fields(cursor_ms=1_000)))
    missed = patch(Collection.SCHEDULES, "tick", cursor_ms=9_000, missed=[2_000, 9_000, 3])
    stream.fold(held("tenant", 1))
    for change in (
        put(JOBS, "copy", job_fields()),
        put(JOBS, "late", job_fields(state="succeeded", rev=4)),
        patch(JOBS, known, rev=2, priority=9),
        patch(JOBS, ended, rev=7, **REVIVED_FIELDS),
        missed,
        delete(JOBS, "copy"),
    ):
        assert stream.fold(change) == []
    assert types(stream.fold(put(JOBS, "theirs", job_fields(tenant="other")))) == ["submitted"]
    assert stream.fold(held("tenant", 2, is_held=False)) == []
    assert types(stream.fold(patch(JOBS, known, rev=3, priority=7))) == ["reprioritized"]


@pytest.mark.parametrize("operation", [Operation.PATCH, Operation.PUT])
def test_a_failed_job_that_begins_anew_is_revived(operation: Operation) -> None:
    """No mirror has it any more, so a patch does not say whose it is; the document is read anyway."""
    stream = Stream()
    changed = {**REVIVED_FIELDS, "attempt": 4}
    [event] = stream.fold(change_as(operation, "j", 9, {**job_fields(), **changed}, changed))
    assert (event.type, event.attempt, event.is_identified) == (EventType.REVIVED, 4, operation is Operation.PUT)
    assert bool(stream.mirror.fold([]).wanted) is (operation is Operation.PATCH)
