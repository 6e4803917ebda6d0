"""A scenario: a cluster and its load. All times are whole milliseconds from its beginning."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hascheduler.dispatch.config import PolicyConfig
from hascheduler.model.definition import Definition
from hascheduler.model.lane import Lane
from hascheduler.model.limit_keys import LimitKeys
from hascheduler.model.policy import Criteria, IdleKeyStart, bonus_max_of, criteria, idle_key_start_of
from hascheduler.model.processor import supports
from hascheduler.model.resources import Resources
from hascheduler.model.tenant import Tenant

JOBS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class ScenarioJob:
    """``duration_ms`` is how long it runs, on whichever processor. ``resources`` None: what its definition says.

    It fails at ``expires_at_ms`` unless it has begun by then; None: it never expires.
    """

    id: str
    definition: str
    target: str
    tenant: str
    lane: str
    fairness_key: str
    priority: int
    mode: str
    resources: Resources | None
    submit_at_ms: int
    duration_ms: int
    expires_at_ms: int | None = None
    limit_keys: LimitKeys = ()


def account_names(jobs: Iterable[ScenarioJob]) -> Callable[[str, str], str]:
    """The name of the account of a tenant and its fairness key: the key, or, where there are several tenants,
    ``tenant/key``.

    Names are unique: a slash in a tenant is ``%2F`` then, and a percent sign ``%25``.
    """
    if len({job.tenant for job in jobs}) < 2:
        return lambda tenant, key: key
    return lambda tenant, key: f"{tenant.replace('%', '%25').replace('/', '%2F')}/{key}"


@dataclass(frozen=True, slots=True)
class ScenarioProcessor:
    """Takes jobs from ``join_at_ms`` until ``drain_at_ms``; the jobs that it runs at ``leave_at_ms`` run again
    elsewhere."""

    id: str
    definitions: frozenset[str]
    slots: int
    resources: Resources
    join_at_ms: int = 0
    leave_at_ms: int | None = None
    drain_at_ms: int | None = None

    def supports(self, definition: str) -> bool:
        return supports(self.definitions, definition)


@dataclass(frozen=True, slots=True)
class LearnedCost:
    definition: str
    target: str
    cost_ms: int


@dataclass(frozen=True, slots=True)
class ScenarioPolicy:
    """The policy of the file; what it leaves out has the policy's own defaults, which depend on its name.

    ``has_bonus_max``: the file names the maximum, which may be none.
    """

    name: str
    criteria: Criteria
    max_concurrency: int | None = None
    idle_key_start: IdleKeyStart | None = None
    has_bonus_max: bool = False
    on_demand_bonus_max: int | None = None
    learn_cost: bool = True
    cost_alpha: int = 300

    def config(self) -> PolicyConfig:
        """The policy as the core takes it."""
        return PolicyConfig(
            criteria=self.criteria,
            max_concurrency=self.max_concurrency,
            on_demand_bonus_max=self.on_demand_bonus_max if self.has_bonus_max else bonus_max_of(self.name),
            idle_key_start=self.idle_key_start or idle_key_start_of(self.name),
            learn_cost=self.learn_cost,
            cost_alpha=self.cost_alpha,
        )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The ids of recorded jobs that are in no scenario: not due by the recording's end, and cancelled unbegun."""

    due_later: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """``jobs`` in the order of the file. ``until_ms`` None: until nothing is left to happen. ``note`` is for people.

    One of a recording lasts at least ``recorded_ms``. After that it ends when nothing runs and the next to happen is
    that a job expires: one that no processor can run may have years until then.
    """

    policy: ScenarioPolicy
    definitions: tuple[Definition, ...]
    lanes: tuple[Lane, ...]
    tenants: tuple[Tenant, ...]
    processors: tuple[ScenarioProcessor, ...]
    learned_costs: tuple[LearnedCost, ...]
    jobs: tuple[ScenarioJob, ...]
    until_ms: int | None = None
    note: str = ""
    recorded_ms: int | None = None
    left_out: LeftOut = LeftOut()

    def under(self, policy: str, path: str = "policy") -> "Scenario":
        """The same under another policy: a preset, or criteria with commas; an unknown one is an `InvalidInput`.

        What the file says about idle keys and the on-demand bonus stays as it is.
        """
        return replace(self, policy=replace(self.policy, name=policy, criteria=criteria(policy, path)))
