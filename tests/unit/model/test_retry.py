"""The back-off between attempts, and the end of retries."""

from hypothesis import given
from hypothesis import strategies as st

from hascheduler.model.definition import Definition
from hascheduler.model.retry import JITTER_THOUSANDTHS, RetryPolicy

POLICY = RetryPolicy(attempts_max=6, backoff_ms=2_000, backoff_factor=2_000, backoff_max_ms=10_000)


def test_the_pause_doubles_up_to_its_maximum_and_is_shortened_by_a_fifth_at_most() -> None:
    for failures, most_ms in enumerate([2_000, 4_000, 8_000, 10_000, 10_000], start=1):
        assert most_ms * (1_000 - JITTER_THOUSANDTHS) // 1_000 <= POLICY.pause_ms("job:1", failures) <= most_ms


def test_the_jitter_is_the_same_in_every_process_and_differs_between_jobs() -> None:
    pauses = [POLICY.pause_ms(f"job:{n}", 1) for n in range(100)]
    assert pauses == [POLICY.pause_ms(f"job:{n}", 1) for n in range(100)]
    assert len(set(pauses)) > 50
    assert max(pauses) - min(pauses) > 300


@given(st.integers(0, 10**7), st.integers(0, 10_000), st.integers(0, 10**7), st.integers(1, 10**6), st.text())
def test_no_policy_makes_the_pause_longer_than_its_maximum_or_slow_to_compute(
    backoff_ms: int, factor: int, max_ms: int, failures: int, job_id: str
) -> None:
    assert 0 <= RetryPolicy(10**7, backoff_ms, factor, max_ms).pause_ms(job_id, failures) <= max_ms


def test_retries_end_with_the_tries_or_with_the_time() -> None:
    assert POLICY.retry_at_ms("j", 6, 0, None) is None
    at_ms = POLICY.retry_at_ms("j", 5, 1_000, None)
    assert at_ms == 1_000 + POLICY.pause_ms("j", 5)
    assert POLICY.retry_at_ms("j", 5, 1_000, at_ms) is None
    assert POLICY.retry_at_ms("j", 5, 1_000, at_ms + 1) == at_ms
    assert POLICY.retry_at_ms("j", 1, 1_000, None, pause_ms=7) == 1_007


def test_the_total_timeout_counts_from_the_first_start() -> None:
    assert Definition("d").end_of(5) is None
    assert Definition("d", total_timeout_ms=10).end_of(None) is None
    assert Definition("d", total_timeout_ms=10).end_of(5) == 15
