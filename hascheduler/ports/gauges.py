"""What a replica can be asked at any time for the sake of its operators: figures of the moment, cheap to give."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gauges:
    """How this replica sees the whole now. The mappings are its own: read at once, and left as they are.

    Times are in milliseconds, None where there is nothing to tell.
    """

    leading: bool
    ready: bool
    term: int | None
    stream_lag_ms: int | None
    loop_age_ms: int
    """Since the loop that decides last came round."""
    quarantined: int
    broker_accepting: bool
    jobs: Mapping[str, int]
    """Live jobs by state; the next three by name, then by state, without names that have none."""
    jobs_of_definition: Mapping[str, Mapping[str, int]]
    jobs_of_lane: Mapping[str, Mapping[str, int]]
    jobs_of_tenant: Mapping[str, Mapping[str, int]]
    definitions: Collection[str]
    """Those that are defined; whoever submits may name others. So too the next two."""
    lanes: Collection[str]
    tenants: Collection[str]
    unschedulable: int
    waited_ms: Mapping[str, int]
    """By lane, how long the job has waited that is due the longest."""
    wait_bound_ms: int | None
    """A job that waits longer is overtaken by none that comes after it; None: there is no such bound."""
    schedules: Mapping[str, int]
    """By state: active, paused."""
    processors: Mapping[str, int]
    """By state: live, draining, lost."""
    slots: Mapping[str, int]
    """Of the processors that live: occupied, free."""
    findings: Mapping[str, int] | None = None
    """By kind, what the last look through the database found; None where this replica does not lead, or has not looked.
    """
    mirrors_differ: int = 0
    """Replicas whose mirrors differ from this one's, or did a moment ago."""
