"""Makes a `Scenario` of a text. Strict: what is not understood is refused, with its place.

The keys, with their defaults; seconds may also be durations such as ``"1m30s"``::

    note               ""            a line for people
    policy             "balanced"    a preset or a list of criteria
    idle_key_start     "zero" under the preset fair, else "min"
    on_demand_bonus_max  none under the preset affinity, else 20480000 (null: none)
    max_concurrency    no cap
    learn_cost         true
    cost_alpha         0.3           in thousandths
    until              until nothing is left to happen
    learned_costs      []            definition, target, cost
    definitions        {}            by name: tier, max_concurrency, conflict_group, conflict_scope
                                     (tenant, or "shared"), default_cost, resources, rate_limit {count, per}
    lanes              {}            by name: weight, promote_after (one, or 11 by priority), policy
    tenants            {}            by name: max_running
    processors         []            id, types ("*" or names), slots, resources, join_at, leave_at, drain_at
    jobs               []            see `hascheduler.simulate.submissions`
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.definition import DEFAULT_COST_MS_DEFAULT, ConflictScope, Definition, RateLimit
from hascheduler.model.lane import (
    PRIORITY_MAX,
    PROMOTE_AFTER_MS_DEFAULT,
    PROMOTE_AFTER_MS_MIN,
    WEIGHT_MAX,
    Lane,
)
from hascheduler.model.policy import DEFAULT_PRESET, Criteria, IdleKeyStart, criteria
from hascheduler.model.processor import ANY_DEFINITION
from hascheduler.model.tenant import Tenant
from hascheduler.simulate.fields import Path, a_list, amounts, an_object, flag, integer, names, shown, span, text
from hascheduler.simulate.reading import read_text
from hascheduler.simulate.scenario import LearnedCost, Scenario, ScenarioPolicy, ScenarioProcessor
from hascheduler.simulate.submissions import parse_jobs

NAMES_MAX = 10_000
LEARNED_MAX = 100_000
SLOTS_MAX = 1_000_000

_SCENARIO = (
    "note", "policy", "idle_key_start", "on_demand_bonus_max", "max_concurrency", "learn_cost", "cost_alpha", "until",
    "learned_costs", "definitions", "lanes", "tenants", "processors", "jobs",
)  # fmt: skip
_DEFINITION = ("tier", "max_concurrency", "conflict_group", "conflict_scope", "default_cost", "rate_limit", "resources")
_LANE = ("weight", "promote_after", "policy")
_PROCESSOR = ("id", "types", "slots", "resources", "join_at", "leave_at", "drain_at")


def parse_scenario(text: str) -> Scenario:
    """The scenario that ``text``, YAML or JSON, describes; an `InvalidInput` says where it does not."""
    return scenario_of(read_text(text))


def scenario_of(document: object) -> Scenario:
    """The scenario of a document that was read already."""
    found = an_object(document, (), _SCENARIO)
    definitions = {
        name: _definition(name, value, ("definitions", name))
        for name, value in names(found.get("definitions"), ("definitions",), NAMES_MAX).items()
    }
    processors = tuple(
        _processor(value, ("processors", index))
        for index, value in enumerate(a_list(found.get("processors"), ("processors",), NAMES_MAX))
    )
    _demand_unique(processors)
    lanes = names(found.get("lanes"), ("lanes",), NAMES_MAX)
    tenants = names(found.get("tenants"), ("tenants",), NAMES_MAX)
    learned = a_list(found.get("learned_costs"), ("learned_costs",), LEARNED_MAX)
    return Scenario(
        policy=_policy(found),
        definitions=tuple(definitions.values()),
        lanes=tuple(_lane(name, value, ("lanes", name)) for name, value in lanes.items()),
        tenants=tuple(_tenant(name, value, ("tenants", name)) for name, value in tenants.items()),
        processors=processors,
        learned_costs=tuple(
            _learned_cost(value, ("learned_costs", index), definitions) for index, value in enumerate(learned)
        ),
        jobs=parse_jobs(found.get("jobs"), definitions, processors),
        until_ms=None if found.get("until") is None else span(found["until"], ("until",)),
        note="" if found.get("note") is None else text(found["note"], ("note",), empty=True),
    )


def _policy(found: Mapping[str, Any]) -> ScenarioPolicy:
    name, order = _criteria(found.get("policy"), ("policy",))
    start = found.get("idle_key_start")
    if start is not None and start not in set(IdleKeyStart):
        raise InvalidInput(("idle_key_start",), shown(start), " or ".join(IdleKeyStart))
    limit = found.get("max_concurrency")
    bonus = found.get("on_demand_bonus_max")
    return ScenarioPolicy(
        name=name,
        criteria=order,
        max_concurrency=None if limit is None else integer(limit, ("max_concurrency",), 1),
        idle_key_start=None if start is None else IdleKeyStart(start),
        has_bonus_max="on_demand_bonus_max" in found,
        on_demand_bonus_max=None if bonus is None else integer(bonus, ("on_demand_bonus_max",), 0),
        learn_cost=True if found.get("learn_cost") is None else flag(found["learn_cost"], ("learn_cost",)),
        cost_alpha=_thousandths(found.get("cost_alpha"), ("cost_alpha",)),
    )


def _criteria(value: object, path: Path) -> tuple[str, Criteria]:
    """A policy's name, which is the list of its criteria where it has none, and its criteria."""
    where = ".".join(str(part) for part in path)
    if value is None:
        return DEFAULT_PRESET, criteria(DEFAULT_PRESET)
    if isinstance(value, str):
        return value, criteria(value, where)
    if not isinstance(value, list) or len(value) > 16 or not all(isinstance(each, str) for each in value):
        raise InvalidInput(path, shown(value), "a preset or a list of criteria")
    return ",".join(value), criteria(value, where)


def _thousandths(value: object, path: Path) -> int:
    if value is None:
        return 300
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(path, shown(value), "a number from 0 to 1")
    thousandths = Fraction(str(value)) * 1_000
    if thousandths.denominator != 1:
        raise InvalidInput(path, shown(value), "at most three decimals")
    return int(thousandths)


def _definition(name: str, value: object, path: Path) -> Definition:
    found = an_object({} if value is None else value, path, _DEFINITION)
    tier, limit, group = found.get("tier"), found.get("max_concurrency"), found.get("conflict_group")
    cost = found.get("default_cost")
    return Definition(
        name=name,
        max_concurrency=None if limit is None else integer(limit, (*path, "max_concurrency"), 1),
        default_cost_ms=DEFAULT_COST_MS_DEFAULT if cost is None else span(cost, (*path, "default_cost")),
        conflict_group=None if group is None else text(group, (*path, "conflict_group")),
        conflict_scope=_conflict_scope(found.get("conflict_scope"), (*path, "conflict_scope")),
        tier=None if tier is None else integer(tier, (*path, "tier"), 1),
        rate_limit=_rate_limit(found.get("rate_limit"), (*path, "rate_limit")),
        resources=amounts(found.get("resources"), (*path, "resources")),
    )


def _conflict_scope(value: object, path: Path) -> ConflictScope:
    if value is None:
        return ConflictScope.SHARED  # what files from before there were scopes mean
    if not isinstance(value, str) or value not in set(ConflictScope):
        raise InvalidInput(path, shown(value), " or ".join(ConflictScope))
    return ConflictScope(value)


def _rate_limit(value: object, path: Path) -> RateLimit | None:
    if value is None:
        return None
    found = an_object(value, path, ("count", "per"))
    return RateLimit(integer(found.get("count"), (*path, "count"), 1), span(found.get("per"), (*path, "per"), 1))


def _lane(name: str, value: object, path: Path) -> Lane:
    found = an_object({} if value is None else value, path, _LANE)
    weight, policy = found.get("weight"), found.get("policy")
    return Lane(
        name=name,
        weight=1 if weight is None else integer(weight, (*path, "weight"), 1, WEIGHT_MAX),
        promote_after_ms=_promote_after(found.get("promote_after"), (*path, "promote_after")),
        criteria=None if policy is None else _criteria(policy, (*path, "policy"))[1],
    )


def _promote_after(value: object, path: Path) -> tuple[int, ...]:
    if value is None:
        return (PROMOTE_AFTER_MS_DEFAULT,)
    if not isinstance(value, list):
        return (span(value, path, PROMOTE_AFTER_MS_MIN),)
    if len(value) != PRIORITY_MAX + 1:
        raise InvalidInput(path, f"{len(value)} values", f"one, or {PRIORITY_MAX + 1}: one for each priority")
    return tuple(span(each, (*path, index), PROMOTE_AFTER_MS_MIN) for index, each in enumerate(value))


def _tenant(name: str, value: object, path: Path) -> Tenant:
    found = an_object({} if value is None else value, path, ("max_running",))
    limit = found.get("max_running")
    return Tenant(name, max_running=None if limit is None else integer(limit, (*path, "max_running"), 1))


def _learned_cost(value: object, path: Path, definitions: Mapping[str, Definition]) -> LearnedCost:
    found = an_object(value, path, ("definition", "target", "cost"))
    definition = text(found.get("definition"), (*path, "definition"))
    if definition not in definitions:
        raise InvalidInput((*path, "definition"), f"{definition[:64]!r} is not defined", "a name in definitions")
    target = text(found.get("target"), (*path, "target"), empty=True)
    return LearnedCost(definition, target, span(found.get("cost"), (*path, "cost")))


def _processor(value: object, path: Path) -> ScenarioProcessor:
    found = an_object(value, path, _PROCESSOR)
    join_at, leave_at, drain_at = (
        None if found.get(key) is None else span(found[key], (*path, key))
        for key in ("join_at", "leave_at", "drain_at")
    )
    for key, at in (("leave_at", leave_at), ("drain_at", drain_at)):
        if at is not None and at < (join_at or 0):
            raise InvalidInput((*path, key), f"{shown(found[key])} is before it joins", "a time after join_at")
    return ScenarioProcessor(
        id=text(found.get("id"), (*path, "id")),
        definitions=_types(found.get("types"), (*path, "types")),
        slots=1 if found.get("slots") is None else integer(found["slots"], (*path, "slots"), 1, SLOTS_MAX),
        resources=amounts(found.get("resources"), (*path, "resources")),
        join_at_ms=join_at or 0,
        leave_at_ms=leave_at,
        drain_at_ms=drain_at,
    )


def _types(value: object, path: Path) -> frozenset[str]:
    if value is None:
        return frozenset({ANY_DEFINITION})
    if isinstance(value, str):
        return frozenset({text(value, path)})
    listed = a_list(value, path, NAMES_MAX)
    if not listed:
        raise InvalidInput(path, "an empty list", 'the definitions that it runs, or "*"')
    return frozenset(text(each, (*path, index)) for index, each in enumerate(listed))


def _demand_unique(processors: tuple[ScenarioProcessor, ...]) -> None:
    seen: dict[str, int] = {}
    for index, processor in enumerate(processors):
        if processor.id in seen:
            where = f"processors.{seen[processor.id]}"
            raise InvalidInput(("processors", index, "id"), f"{processor.id[:64]!r} is the id of {where}", "another id")
        seen[processor.id] = index
