"""The work store remembers the times of started attempts."""

from hascheduler.model.values.instants import to_datetime
from hascheduler.mongo.state_updates import AttemptTimes
from hascheduler.mongo.work.starts import STARTED_ATTEMPTS_MAX, StartedAttempts


def test_remembered_attempts_are_bounded_and_taken_once() -> None:
    begun = StartedAttempts(600_000)
    for number in range(STARTED_ATTEMPTS_MAX + 2):
        begun.remember({"_id": str(number), "attempt": 1, "dispatched_at_ms": 2, "kept_until": None}, 3)
    begun.remember({"_id": "kept", "attempt": 1, "dispatched_at_ms": 2, "kept_until": 9}, 3)
    begun.remember({"_id": "odd", "attempt": 1, "dispatched_at_ms": "2"}, 3)
    assert [begun.take(id, 1) for id in ("0", "1", "kept", "odd")] == [None] * 4
    assert begun.take("2", 2) is None
    assert [begun.take("2", 1), begun.take("2", 1)] == [AttemptTimes(2, 3), None]


def test_a_job_that_its_key_keeps_for_longer_than_its_end_does_is_not_remembered() -> None:
    begun = StartedAttempts(600_000)
    for id, kept_until in (("equal", to_datetime(600_003)), ("longer", to_datetime(600_004))):
        begun.remember({"_id": id, "attempt": 1, "dispatched_at_ms": 2, "kept_until": kept_until}, 3)
    assert [begun.take(id, 1) for id in ("equal", "longer")] == [AttemptTimes(2, 3), None]
