"""The outcome of a run, in milliseconds from its beginning."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hascheduler.simulate.scenario import Scenario, ScenarioJob


@dataclass(frozen=True, slots=True)
class SimulatedAttempt:
    """One dispatch and how it ended; ``order`` numbers the dispatches of the run.

    ``ended_at_ms`` None: it was running at the end. ``lost``: its processor left while it ran. ``cost_ms`` is what its
    tenant and its fairness key were charged.
    """

    job: str
    processor: str
    order: int
    started_at_ms: int
    ended_at_ms: int | None
    lost: bool
    cost_ms: int


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job that was submitted.

    ``gave_up``: its attempts were used up, so it failed at ``finished_at_ms``. ``expired``: it had not begun by then.
    """

    job: ScenarioJob
    sequence: int
    attempts: tuple[SimulatedAttempt, ...]
    finished_at_ms: int | None
    gave_up: bool = False
    expired: bool = False

    @property
    def started_at_ms(self) -> int | None:
        """When it was dispatched first."""
        return self.attempts[0].started_at_ms if self.attempts else None

    @property
    def is_running(self) -> bool:
        """Whether it runs at the end of the simulation."""
        return bool(self.attempts) and self.attempts[-1].ended_at_ms is None

    @property
    def is_waiting(self) -> bool:
        """Whether it waits at the end of the simulation."""
        return self.finished_at_ms is None and not self.is_running


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """``jobs`` in the order in which they were submitted, ``attempts`` in that of their dispatches.

    ``completed`` are (at, job) of those that succeeded. ``costs`` are, by fairness key as `account_names` calls it, the
    (at, accumulated cost) at each change; ``accumulated_cost_ms`` is what stands at the end. ``tenant_cost_ms`` is that
    of the tenants, where there are several. ``unschedulable`` are those waiting jobs that no processor that was there
    at the end could run.
    """

    scenario: Scenario
    ended_at_ms: int
    jobs: tuple[JobRecord, ...]
    attempts: tuple[SimulatedAttempt, ...]
    completed: tuple[tuple[int, str], ...]
    accumulated_cost_ms: Mapping[str, int]
    costs: Mapping[str, tuple[tuple[int, int], ...]]
    unschedulable: tuple[str, ...]
    tenant_cost_ms: Mapping[str, int]

    @property
    def pending(self) -> tuple[str, ...]:
        """The ids of the jobs that wait at the end, in the order in which they were submitted."""
        return tuple(record.job.id for record in self.jobs if record.is_waiting)


def as_document(outcome: RunOutcome) -> dict[str, Any]:
    """The outcome as programs read it, in seconds.

    Jobs of several tenants: ``accumulated_cost`` is by ``tenant/key``, and there is ``accumulated_cost_by_tenant``.
    ``expired`` is there only where some did, ``unschedulable`` only where some of ``pending`` are, ``left_out`` only
    where jobs of a recording were.
    """
    expired = [[(each.finished_at_ms or 0) / 1_000, each.job.id] for each in outcome.jobs if each.expired]
    left_out = {why: list(ids) for why, ids in asdict(outcome.scenario.left_out).items() if ids}
    by_tenant = {name: cost_ms / 1_000 for name, cost_ms in outcome.tenant_cost_ms.items()}
    return {
        "dispatched": [[each.started_at_ms / 1_000, each.job, each.processor] for each in outcome.attempts],
        "completed": [[at_ms / 1_000, job] for at_ms, job in outcome.completed],
        "accumulated_cost": {key: cost_ms / 1_000 for key, cost_ms in outcome.accumulated_cost_ms.items()},
        "pending": list(outcome.pending),
        **({"expired": expired} if expired else {}),
        **({"unschedulable": list(outcome.unschedulable)} if outcome.unschedulable else {}),
        **({"accumulated_cost_by_tenant": by_tenant} if by_tenant else {}),
        **({"left_out": left_out} if left_out else {}),
    }
