"""How long a request is repeated, and how long it waits in between: as the replica says, else longer each time, with a
jitter, so that clients that failed together do not come back together."""

from typing import Any

from tenacity import RetryCallState, retry_if_exception_type, stop_before_delay, wait_random_exponential

from hascheduler.client.failures import Refused, Retryable

_grown = wait_random_exponential(multiplier=0.1, max=5.0)


def retry_policy(patience_s: float, held_s: float, replicas: int) -> dict[str, Any]:
    """The arguments of tenacity's ``Retrying`` and ``AsyncRetrying``.

    It gives up before a pause that would end after ``patience_s``, and the ``held_s`` for which the replica may hold
    the request back, and raises what the last try met. Without patience there is one try at each of the ``replicas``,
    however long it may take.
    """

    def has_been_everywhere(state: RetryCallState) -> bool:
        # After a refusal (429) the same replica would be asked.
        return isinstance(_met(state).failure, Refused) or state.attempt_number >= replicas

    return {
        "retry": retry_if_exception_type(Retryable),
        "wait": _pause_s,
        "stop": stop_before_delay(patience_s + held_s) if patience_s else has_been_everywhere,
        "retry_error_callback": _give_up,
    }


def _pause_s(state: RetryCallState) -> float:
    met = _met(state)
    grown_s = _grown(state)
    return grown_s if met.after_s is None else met.after_s + grown_s


def _give_up(state: RetryCallState) -> Any:
    raise _met(state).failure from None


def _met(state: RetryCallState) -> Retryable:
    assert state.outcome is not None
    met = state.outcome.exception()
    assert isinstance(met, Retryable)
    return met
