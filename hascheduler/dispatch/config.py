"""The core's limits and times."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DispatchConfig:
    """``fires_max`` and ``dispatches_max`` bound one step, so that one journal entry stays small.

    A dispatched job that has not started is sent again every ``start_timeout_ms`` and moved after three of them, in
    which this leader could tell its processor. A
    promise that has not come back for ``echo_timeout_ms`` is decided again. A job whose claim was lost is left alone
    for ``doubt_ms``, unless the stream brings news of it first.
    """

    fires_max: int = 1_000
    dispatches_max: int = 1_000
    repairs_max: int = 1_000
    start_timeout_ms: int = 5_000
    echo_timeout_ms: int = 5_000
    doubt_ms: int = 1_000

    @property
    def move_after_ms(self) -> int:
        return 3 * self.start_timeout_ms
