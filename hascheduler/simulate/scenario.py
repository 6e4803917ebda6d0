"""A scenario: a cluster and its load, in whole milliseconds from its beginning."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hascheduler.dispatch.config import PolicyConfig
from hascheduler.model.limit_keys import LimitKeys
from hascheduler.model.policy import criteria
from hascheduler.model.resources import Resources
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.tenant import Tenant

JOB_FIELDS = ("id", "definition", "target", "tenant", "lane", "fairness_key", "priority", "mode", "resources")
"""The fields that a job has both in a scenario and in the stream."""


@dataclass(frozen=True, slots=True)
class ScenarioJob:
    """One job, which runs for ``duration_ms`` on any processor and fails unless it begins by ``expires_at_ms``."""

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


@dataclass(frozen=True, slots=True)
class ScenarioProcessor:
    """A processor, whose jobs run again elsewhere if it leaves before they end."""

    id: str
    definitions: frozenset[str]
    slots: int
    resources: Resources
    join_at_ms: int = 0
    leave_at_ms: int | None = None
    drain_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ScenarioPolicy:
    """A preset, or criteria with commas, and the settings of `PolicyConfig` that the file itself sets."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def config(self) -> PolicyConfig:
        return replace(PolicyConfig.of(self.name), **self.settings)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A cluster and its jobs, in the order of the file; without ``until_ms`` it ends when nothing is left to happen.

    A scenario from a recording lasts at least ``recorded_ms``. After that it ends when nothing runs and only expiries
    are left, which may be years ahead. ``left_out`` are the ids of recorded jobs that it does not have, by reason.
    """

    policy: ScenarioPolicy
    definitions: tuple[Definition, ...]
    lanes: tuple[Lane, ...]
    tenants: tuple[Tenant, ...]
    processors: tuple[ScenarioProcessor, ...]
    learned_costs: tuple[tuple[str, str, int], ...]
    jobs: tuple[ScenarioJob, ...]
    until_ms: int | None = None
    note: str = ""
    recorded_ms: int | None = None
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def under(self, policy: str, path: str = "policy") -> "Scenario":
        """Return the scenario under another policy; raise `InvalidInput` if there is none of that name."""
        criteria(policy, path)
        return replace(self, policy=replace(self.policy, name=policy))


def account_names(jobs: Iterable[ScenarioJob]) -> Callable[[str, str], str]:
    """Return how to name the account of a tenant and a fairness key: the key, or ``tenant/key`` of several tenants.

    Names are unique, as a slash in a tenant becomes ``%2F``, and a percent sign ``%25``.
    """
    if len({job.tenant for job in jobs}) < 2:
        return lambda tenant, key: key
    return lambda tenant, key: f"{tenant.replace('%', '%25').replace('/', '%2F')}/{key}"
