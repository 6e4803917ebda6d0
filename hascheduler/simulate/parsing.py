"""Makes a `Scenario` of a text: the nouns of `hascheduler.wire`, and around them what only a scenario says.

Strict: what is not understood is refused, with its place. Definitions, lanes and tenants have the fields, bounds and
defaults that a replica gives them, as far as they decide when jobs start; names are any texts here, and a file from
before there were scopes means ``shared``. Spans are seconds or durations such as ``"1m30s"``.

With ``count`` an item of ``jobs`` is a group of so many jobs, ``every`` so many seconds. In a group ``{n}`` in the id
is the number of the job, from 1 on (an id without it gets ``-{n}``), and where a value is a list, the jobs take its
items in turn::

    {"id": "clone-{n}", "definition": "clone", "count": 40, "every": [0, 0, 30], "duration": [4, 9]}
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    FailFast,
    Field,
    JsonValue,
    PlainValidator,
    SkipValidation,
    Tag,
)

from hascheduler.errors import InvalidInput
from hascheduler.model.definition import ConflictScope, Definition
from hascheduler.model.limit_keys import limit_keys
from hascheduler.model.policy import DEFAULT_PRESET, Criteria, IdleKeyStart, criteria
from hascheduler.model.processor import ANY_DEFINITION
from hascheduler.model.resources import RESOURCE_NAMES_MAX, SLOTS, resources
from hascheduler.model.values.durations import LONGEST_MS
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import INTEGER_MAX
from hascheduler.simulate.reading import read_text
from hascheduler.simulate.scenario import (
    JOBS_MAX,
    LearnedCost,
    Scenario,
    ScenarioJob,
    ScenarioPolicy,
    ScenarioProcessor,
)
from hascheduler.wire.definition import StartLimits
from hascheduler.wire.fields import DurationMs, NullIs, StrictModel, between, invalid_value
from hascheduler.wire.job import Mode, Priority
from hascheduler.wire.lane import LaneBody
from hascheduler.wire.tenant import RunningLimit
from hascheduler.wire.validation import ONE, TURNS, Path, validated

NAMES_MAX = 10_000
LEARNED_MAX = 100_000
SLOTS_MAX = 1_000_000
_CRITERIA_MAX = 16
_FIELDS_MAX = 64
_TURNS_MAX = 10_000
_Value = TypeVar("_Value")


# The types of single fields


def _amount_name(name: str) -> str:
    if name == SLOTS:
        raise invalid_value("no name for a resource", "another name: every job takes one slot")
    return name


def _nothing_said(value: Any) -> Any:
    """A noun of which only the name is said has the defaults."""
    return {} if value is None else value


def _named_policy(value: Any) -> tuple[str, Criteria]:
    """A policy's name, which is the list of its criteria where it has none, and its criteria."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or len(names) > _CRITERIA_MAX or not all(isinstance(each, str) for each in names):
        raise invalid_value(f"{quoted(value)} is no policy", "a preset or a list of criteria")
    try:
        return ",".join(names), criteria(value)
    except InvalidInput as error:
        raise invalid_value(error.problem, error.expected) from None


def _thousandths(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise invalid_value(f"{quoted(value)} is out of range", "a number from 0 to 1")
    thousandths = Fraction(str(value)) * 1_000
    if thousandths.denominator != 1:
        raise invalid_value(f"{quoted(value)} is too exact", "at most three decimals")
    return int(thousandths)


_AnyText = Annotated[str, Field(max_length=512)]
_SomeText = Annotated[_AnyText, Field(min_length=1)]
_Default = Annotated[_SomeText, NullIs("default")]
_Count = Annotated[int, Field(ge=1, le=INTEGER_MAX)]
_Start = Annotated[DurationMs, NullIs(0)]
_Amounts = Annotated[
    dict[Annotated[_SomeText, AfterValidator(_amount_name)], Annotated[int, Field(ge=0, le=INTEGER_MAX)]],
    Field(max_length=RESOURCE_NAMES_MAX),
]
_Fields = Annotated[dict[_SomeText, SkipValidation[JsonValue]], Field(max_length=_FIELDS_MAX)]
_Named = Annotated[dict[_SomeText, Annotated[_Value, BeforeValidator(_nothing_said)]], Field(max_length=NAMES_MAX)]
_ListOf = Annotated[list[_Value], FailFast(), NullIs([])]


def _one_or_list(value: object) -> str:
    return TURNS if isinstance(value, list) else ONE


_Turns = Annotated[
    Annotated[_Value, Tag(ONE)] | Annotated[list[_Value], Field(min_length=1, max_length=_TURNS_MAX), Tag(TURNS)],
    Discriminator(_one_or_list),
]


# The parts of a file


class FileDefinition(StartLimits):
    conflict_group: _SomeText | None = None
    resources: Annotated[_Amounts, NullIs({})] = Field(default={})

    def resource(self, name: str, rev: int = 0) -> Definition:
        return replace(
            super().resource(name, rev), conflict_scope=ConflictScope(self.conflict_scope or ConflictScope.SHARED)
        )


class FileProcessor(StrictModel):
    id: _SomeText
    types: (
        Annotated[
            Annotated[_SomeText, Tag(ONE)]
            | Annotated[list[_SomeText], Field(min_length=1, max_length=NAMES_MAX), Tag(TURNS)],
            Discriminator(_one_or_list),
        ]
        | None
    ) = None
    slots: Annotated[int, Field(ge=1, le=SLOTS_MAX), NullIs(1)] = 1
    resources: Annotated[_Amounts, NullIs({})] = Field(default={})
    join_at: _Start = 0
    leave_at: DurationMs | None = None
    drain_at: DurationMs | None = None

    def processor(self, path: Path) -> ScenarioProcessor:
        for key, at in (("leave_at", self.leave_at), ("drain_at", self.drain_at)):
            if at is not None and at < self.join_at:
                raise InvalidInput((*path, key), f"{at / 1_000:g} s is before it joins", "a time after join_at")
        types = ANY_DEFINITION if self.types is None else self.types
        return ScenarioProcessor(
            id=self.id,
            definitions=frozenset({types} if isinstance(types, str) else types),
            slots=self.slots,
            resources=resources(self.resources),
            join_at_ms=self.join_at,
            leave_at_ms=self.leave_at,
            drain_at_ms=self.drain_at,
        )


class FileLearnedCost(StrictModel):
    definition: _SomeText
    target: _AnyText
    cost: DurationMs


class FileJobs(StrictModel):
    """One job, or a group: a job that has not begun ``expires_after`` its submission fails."""

    id: _SomeText
    definition: _Turns[_SomeText]
    target: _Turns[_AnyText | None] = None
    tenant: _Turns[_Default] = "default"
    lane: _Turns[_Default] = "default"
    fairness_key: _Turns[Annotated[_AnyText, NullIs("")]] = ""
    priority: _Turns[Annotated[Priority, NullIs(5)]] = 5
    mode: _Turns[Annotated[Mode, NullIs("queued")]] = "queued"
    resources: _Turns[_Amounts | None] = None
    payload: _Turns[_Fields | None] = None
    labels: _Turns[_Fields | None] = None
    submit_at: _Start = 0
    expires_after: _Turns[Annotated[DurationMs, between(1, LONGEST_MS)] | None] = None
    duration: _Turns[DurationMs]
    count: Annotated[int, Field(ge=1, le=INTEGER_MAX)] | None = None
    every: _Turns[_Start] | None = None

    def jobs(
        self, path: Path, room: int, jobs_max: int, definitions: Mapping[str, Definition]
    ) -> Iterator[ScenarioJob]:
        """One by one, if of ``jobs_max`` there is ``room`` for them. Of payload and labels only what limits per key
        look at is kept."""
        if self.count is None:
            self._demand_single(path)
        if (self.count or 1) > room:
            where = path if self.count is None else (*path, "count")
            raise InvalidInput(
                where, "one more" if self.count is None else f"{self.count:,}", f"at most {jobs_max:,} jobs in all"
            )
        name = self.id if self.count is None or "{n}" in self.id else self.id + "-{n}"
        definition, target, tenant = _turns(self.definition), _turns(self.target), _turns(self.tenant)
        lane, key = _turns(self.lane), _turns(self.fairness_key)
        priority = _turns(self.priority)
        mode: Sequence[Mode] = _turns(self.mode)
        needs = [None if each is None else resources(each) for each in _turns(self.resources)]
        payload, labels = _turns(self.payload), _turns(self.labels)
        durations_ms, expiries_ms, gaps_ms = _turns(self.duration), _turns(self.expires_after), _turns(self.every or 0)
        at_ms = self.submit_at
        for n in range(self.count or 1):
            id = name if self.count is None else name.replace("{n}", str(n + 1))
            own_target = target[n % len(target)]
            expires_after_ms = expiries_ms[n % len(expiries_ms)]
            keys = definitions[definition[n % len(definition)]].keyed_by
            own_target = id if own_target is None else own_target
            yield ScenarioJob(
                id=id,
                definition=definition[n % len(definition)],
                target=own_target,
                tenant=tenant[n % len(tenant)],
                lane=lane[n % len(lane)],
                fairness_key=key[n % len(key)],
                priority=priority[n % len(priority)],
                mode=mode[n % len(mode)],
                resources=needs[n % len(needs)],
                submit_at_ms=at_ms,
                duration_ms=durations_ms[n % len(durations_ms)],
                expires_at_ms=None if expires_after_ms is None else at_ms + expires_after_ms,
                limit_keys=limit_keys(keys, payload[n % len(payload)], own_target, labels[n % len(labels)] or {}),
            )
            at_ms += gaps_ms[n % len(gaps_ms)]

    def _demand_single(self, path: Path) -> None:
        if self.every is not None:
            raise InvalidInput((*path, "every"), "without count", "count: how many jobs there are")
        for name, value in self:
            if isinstance(value, list):
                raise InvalidInput((*path, name), "a list", "one value, or count: how many jobs take them in turn")


class ScenarioFile(StrictModel):
    note: Annotated[_AnyText, NullIs("")] = ""
    policy: Annotated[tuple[str, Criteria], PlainValidator(_named_policy)] | None = None
    idle_key_start: Literal["zero", "min"] | None = None
    on_demand_bonus_max: Annotated[int, Field(ge=0, le=INTEGER_MAX)] | None = None
    max_concurrency: _Count | None = None
    learn_cost: Annotated[bool, NullIs(True)] = True  # the value of a null
    cost_alpha: Annotated[int, PlainValidator(_thousandths), NullIs(300)] = 300
    until: DurationMs | None = None
    learned_costs: _ListOf[FileLearnedCost] = Field(default=[], max_length=LEARNED_MAX)
    definitions: Annotated[_Named[FileDefinition], NullIs({})] = Field(default={})
    lanes: Annotated[_Named[LaneBody], NullIs({})] = Field(default={})
    tenants: Annotated[_Named[RunningLimit], NullIs({})] = Field(default={})
    processors: _ListOf[FileProcessor] = Field(default=[], max_length=NAMES_MAX)
    jobs: _ListOf[FileJobs] = Field(default=[], max_length=JOBS_MAX)

    def scenario_policy(self) -> ScenarioPolicy:
        name, order = self.policy or (DEFAULT_PRESET, criteria(DEFAULT_PRESET))
        return ScenarioPolicy(
            name=name,
            criteria=order,
            max_concurrency=self.max_concurrency,
            idle_key_start=None if self.idle_key_start is None else IdleKeyStart(self.idle_key_start),
            has_bonus_max="on_demand_bonus_max" in self.model_fields_set,
            on_demand_bonus_max=self.on_demand_bonus_max,
            learn_cost=self.learn_cost,
            cost_alpha=self.cost_alpha,
        )


# From a text to a scenario


def parse_scenario(text: str, jobs_max: int = JOBS_MAX) -> Scenario:
    """The scenario that ``text``, YAML or JSON, describes; an `InvalidInput` says where it does not."""
    return scenario_of(read_text(text), jobs_max)


def scenario_of(document: object, jobs_max: int = JOBS_MAX) -> Scenario:
    """The scenario of a document that was read already."""
    file = validated(ScenarioFile, document)
    definitions = {name: body.resource(name) for name, body in file.definitions.items()}
    processors = tuple(body.processor(("processors", index)) for index, body in enumerate(file.processors))
    _demand_unique(processors)
    for index, cost in enumerate(file.learned_costs):
        _demand_defined(cost.definition, definitions, ("learned_costs", index, "definition"))
    return Scenario(
        policy=file.scenario_policy(),
        definitions=tuple(definitions.values()),
        lanes=tuple(body.resource(name) for name, body in file.lanes.items()),
        tenants=tuple(body.resource(name) for name, body in file.tenants.items()),
        processors=processors,
        learned_costs=tuple(LearnedCost(each.definition, each.target, each.cost) for each in file.learned_costs),
        jobs=tuple(_jobs(file.jobs, jobs_max, definitions)),
        until_ms=file.until,
        note=file.note,
    )


def _jobs(items: Sequence[FileJobs], jobs_max: int, definitions: Mapping[str, Definition]) -> Iterator[ScenarioJob]:
    """All jobs, groups unfolded, in the order of the file; an `InvalidInput` names the first that is wrong."""
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        path: Path = ("jobs", index)
        for place, definition in enumerate(_turns(item.definition)):
            where = (*path, "definition", place) if isinstance(item.definition, list) else (*path, "definition")
            _demand_defined(definition, definitions, where)
        for job in item.jobs(path, jobs_max - len(seen), jobs_max, definitions):
            if seen.setdefault(job.id, index) != index:
                raise InvalidInput((*path, "id"), f"{job.id[:64]!r} is the id of jobs.{seen[job.id]}", "another id")
            yield job


def _turns(value: _Value | list[_Value]) -> Sequence[_Value]:
    return value if isinstance(value, list) else (value,)


def _demand_defined(name: str, definitions: Mapping[str, Definition], path: Path) -> None:
    if name not in definitions:
        raise InvalidInput(path, f"{name[:64]!r} is not defined", "a name in definitions")


def _demand_unique(processors: Sequence[ScenarioProcessor]) -> None:
    seen: dict[str, int] = {}
    for index, processor in enumerate(processors):
        if processor.id in seen:
            where = f"processors.{seen[processor.id]}"
            raise InvalidInput(("processors", index, "id"), f"{processor.id[:64]!r} is the id of {where}", "another id")
        seen[processor.id] = index
