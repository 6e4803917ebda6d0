"""Policies: the criteria that order jobs, by name, and the presets, which are named lists of criteria.

A policy is a list of criteria, compared one after the other; jobs that they leave equal are ordered by arrival, which
ends in the job's id. `hascheduler.dispatch` computes the criteria.
"""

from collections.abc import Sequence
from enum import StrEnum

from hascheduler.errors import InvalidInput


class Criterion(StrEnum):
    LANE = "lane"
    """The lane with the smallest weighted dominant share first."""
    TIER = "tier"
    """The highest tier first; definitions without one come last."""
    FAIRNESS = "fairness"
    """The tenant with the smallest accumulated cost first, and of its fairness keys the one with the smallest."""
    DEADLINE = "deadline"
    """The earliest ``expires_at`` first; jobs without one come last."""
    AGED_PRIORITY = "aged_priority"
    """The highest priority first, which grows while a job waits."""
    SCORE = "score"
    """The highest score first: priority, age, rarity of slots, and a bonus for on-demand jobs."""
    ARRIVAL = "arrival"
    """The oldest first."""


Criteria = tuple[Criterion, ...]

DEFAULT_PRESET = "balanced"
PRESETS: dict[str, Criteria] = {
    "affinity": (Criterion.SCORE, Criterion.ARRIVAL),
    "fair": (Criterion.TIER, Criterion.FAIRNESS, Criterion.ARRIVAL),
    "swimlanes": (Criterion.LANE, Criterion.AGED_PRIORITY, Criterion.ARRIVAL),
    "balanced": (Criterion.LANE, Criterion.TIER, Criterion.FAIRNESS, Criterion.SCORE, Criterion.ARRIVAL),
}


class IdleKeyStart(StrEnum):
    """The accumulated cost at which a tenant without jobs starts again, and a fairness key within its tenant."""

    ZERO = "zero"
    """Its own accumulated cost; 0 if that is unknown."""
    MIN = "min"
    """At least the smallest accumulated cost among those that have jobs: idling earns no credit."""


ON_DEMAND_BONUS_MAX_DEFAULT = 20_480_000
"""In milli-points; reached after 512 s."""


def criteria(policy: str | Sequence[str], path: str = "policy") -> Criteria:
    """Return the criteria of a preset, or of a list of their names (a text may list them with commas).

    A list ends with ``arrival`` even if it does not name it; an unknown or repeated name is an `InvalidInput`.
    """
    if isinstance(policy, str):
        if policy in PRESETS:
            return PRESETS[policy]
        names = [name.strip() for name in policy.split(",")]
    else:
        names = [str(name) for name in policy]
    known = set(Criterion)
    for name in names:
        if name not in known:
            expected = f"a preset ({', '.join(PRESETS)}) or a list of {', '.join(Criterion)}"
            raise InvalidInput((path,), f"{str(name)[:64]!r} is unknown", expected)
        if names.count(name) > 1:
            raise InvalidInput((path,), f"{name!r} is named twice", "each criterion once")
    listed = tuple(Criterion(name) for name in names)
    if Criterion.ARRIVAL in listed[:-1]:
        raise InvalidInput((path,), "no criterion may follow 'arrival'", "arrival last")
    return listed if listed[-1:] == (Criterion.ARRIVAL,) else (*listed, Criterion.ARRIVAL)


def policy_name(criteria: Criteria) -> str:
    """Return the name of the preset with these criteria, or their names with commas; `criteria` reads both."""
    names = [name for name, preset in PRESETS.items() if preset == criteria]
    return names[0] if names else ",".join(criteria)


def idle_key_start_of(policy: str) -> IdleKeyStart:
    """Return the default of a preset: ``ZERO`` in ``fair``, as that policy was published."""
    return IdleKeyStart.ZERO if policy == "fair" else IdleKeyStart.MIN


def bonus_max_of(policy: str) -> int | None:
    """Return the largest on-demand bonus of a preset: none in ``affinity``, as in the published formula."""
    return None if policy == "affinity" else ON_DEMAND_BONUS_MAX_DEFAULT
