"""The table of a job's life, the back-off between its attempts, and the values that limits look at."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.model.job import TERMINAL, TRANSITIONS, JobState, Move
from hascheduler.model.limit_keys import limit_keys
from hascheduler.schema.retry import JITTER_THOUSANDTHS, RetryPolicy
from tests.checkers.jobs import may_follow


def test_nothing_follows_a_terminal_state_but_a_new_life_of_a_job_that_did_not_succeed() -> None:
    again = [row for row in TRANSITIONS.values() if row.sources & TERMINAL]
    assert [(row.move, row.sources, row.targets, row.who) for row in again] == [
        (Move.REVIVE, frozenset({JobState.FAILED, JobState.CANCELLED}), frozenset({JobState.PENDING}), "API")
    ]


@pytest.mark.parametrize(
    ("before", "after", "may"),
    [
        ("pending", "dispatched", True),
        ("pending", "running", False),
        ("dispatched", "pending", True),
        ("dispatched", "succeeded", False),
        ("running", "pending", True),
        ("running", "dispatched", False),
        ("succeeded", "pending", False),
    ],
)
def test_which_state_may_follow_which(before: str, after: str, may: bool) -> None:
    assert may_follow(JobState(before), JobState(after)) is may


POLICY = RetryPolicy(attempts_max=6, backoff_ms=2_000, backoff_factor=2_000, backoff_max_ms=10_000)


def test_the_pause_doubles_up_to_its_maximum_and_is_shortened_by_a_fifth_at_most() -> None:
    for failures, most_ms in enumerate([2_000, 4_000, 8_000, 10_000, 10_000], start=1):
        assert most_ms * (1_000 - JITTER_THOUSANDTHS) // 1_000 <= POLICY.pause_ms("job:1", failures) <= most_ms


@given(st.integers(0, 10**7), st.integers(0, 10_000), st.integers(0, 10**7), st.integers(1, 10**6), st.text())
def test_no_policy_makes_the_pause_longer_than_its_maximum_or_slow_to_compute(
    backoff_ms: int, factor: int, max_ms: int, failures: int, job_id: str
) -> None:
    assert (
        0
        <= RetryPolicy(
            attempts_max=10**7, backoff_ms=backoff_ms, backoff_factor=factor, backoff_max_ms=max_ms
        ).pause_ms(job_id, failures)
        <= max_ms
    )


def test_retries_end_with_the_tries_or_with_the_time() -> None:
    assert POLICY.retry_at_ms("j", 6, 0, None) is None
    at_ms = POLICY.retry_at_ms("j", 5, 1_000, None)
    assert at_ms == 1_000 + POLICY.pause_ms("j", 5)
    assert POLICY.retry_at_ms("j", 5, 1_000, at_ms) is None
    assert POLICY.retry_at_ms("j", 5, 1_000, at_ms + 1) == at_ms
    assert POLICY.retry_at_ms("j", 1, 1_000, None, pause_ms=7) == 1_007


PAYLOAD: dict[str, Any] = {
    "customer": "acme", "number": 5, "text": "5", "exact": 5.0, "half": 0.5, "yes": True, "empty": "", "null": None,
    "list": ["acme"], "object": {"id": "inner", "deep": {"er": 7}}, "long": "x" * 999, "longer": "x" * 1_000,
    "huge": 10**5_000, "a-b_c": "dashed",
}  # fmt: skip


def value(key: str, payload: Any = PAYLOAD) -> str:
    [(named, found)] = limit_keys((key,), payload, "the target", {"team": "red", "a.b": "dotted"})
    assert named == key
    return found


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("payload.customer", "acme"), ("payload.number", "5"), ("payload.text", "5"), ("payload.exact", "5"),
        ("payload.half", "0.5"), ("payload.yes", "true"), ("payload.object.id", "inner"),
        ("payload.object.deep.er", "7"), ("payload.a-b_c", "dashed"), ("label.team", "red"), ("label.a.b", "dotted"),
        ("target", "the target"),
    ],
)  # fmt: skip
def test_a_scalar_is_its_text(key: str, found: str) -> None:
    assert value(key) == found


@pytest.mark.parametrize("field", ["nothing", "empty", "null", "list", "object", "customer.name", "list.0"])
def test_jobs_without_a_value_are_one_group(field: str) -> None:
    assert value(f"payload.{field}") == ""
    payloads: list[Any] = [None, [], "acme", 7]
    assert [value("payload.customer", payload) for payload in payloads] == [""] * 4
