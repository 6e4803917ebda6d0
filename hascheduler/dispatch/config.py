"""The core's limits and times, and the policy by which it chooses."""

from dataclasses import dataclass, field

from hascheduler.model.policy import (
    DEFAULT_PRESET,
    ON_DEMAND_BONUS_MAX_DEFAULT,
    PRESETS,
    Criteria,
    IdleKeyStart,
    bonus_max_of,
    criteria,
    idle_key_start_of,
)


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """The policy: which job goes first, and how many jobs may run.

    ``criteria`` are compared one after the other. ``max_concurrency`` caps all dispatched and running jobs together
    (None: no cap). ``on_demand_bonus_max`` is in milli-points (None: the bonus grows without bound). ``cost_alpha`` is
    the weight of the newest elapsed time in a learned cost, in thousandths. Accounts and learned costs that have been
    idle for ``idle_ttl_ms`` are forgotten. Recordings hold these names.
    """

    criteria: Criteria = PRESETS[DEFAULT_PRESET]
    max_concurrency: int | None = None
    on_demand_bonus_max: int | None = ON_DEMAND_BONUS_MAX_DEFAULT
    idle_key_start: IdleKeyStart = IdleKeyStart.MIN
    learn_cost: bool = True
    cost_alpha: int = 300
    idle_ttl_ms: int = 24 * 3_600_000

    @classmethod
    def of(cls, policy: str) -> "PolicyConfig":
        """Return the config with the criteria of ``policy``, and the values of its preset for the rest."""
        return cls(
            criteria=criteria(policy),
            on_demand_bonus_max=bonus_max_of(policy),
            idle_key_start=idle_key_start_of(policy),
        )


@dataclass(frozen=True, slots=True)
class DispatchConfig:
    """The limits and times of the core.

    ``fires_max`` and ``dispatches_max`` bound one step, so that one journal entry stays small. Fires cost most, and
    slots stand empty while the dispatches wait behind them: with twice as many fires due as could be done, 300 jobs a
    second started with 1,000 in an entry, and 750 with 200.

    A dispatched job that has not started is sent again every ``start_timeout_ms``, and moved after three of them in
    which the broker accepted this leader's messages. A promise that has not come back for ``echo_timeout_ms`` is
    decided again. A job whose claim was lost is left alone for ``doubt_ms``, unless the stream shows it first. A
    processor that has not ended an attempt ``timeout_grace_ms`` after its timeout never will. A processor that is not
    registered may live for ``unknown_spared_ms``. ``part`` is the index of this core and how many cores divide each cap
    and rate. Recordings hold these names.
    """

    fires_max: int = 200
    dispatches_max: int = 1_000
    repairs_max: int = 1_000
    start_timeout_ms: int = 5_000
    echo_timeout_ms: int = 5_000
    doubt_ms: int = 1_000
    timeout_grace_ms: int = 10_000
    unknown_spared_ms: int = 0
    part: tuple[int, int] = (0, 1)
    policy: PolicyConfig = field(default_factory=PolicyConfig)

    @property
    def move_after_ms(self) -> int:
        return 3 * self.start_timeout_ms
