"""Read a scenario: the nouns of `hascheduler.wire`, and around them what only a scenario has.

What is not understood is refused, with its place. Definitions, lanes and tenants have the fields, bounds and
defaults of a replica, as far as they decide when jobs start. Spans are seconds or durations such as ``"1m30s"``.

An item of ``jobs`` with ``count`` is a group of so many jobs, ``every`` so many seconds. In its id ``{n}`` is the
number of the job, from 1 on (an id without it gets ``-{n}``); if a value is a list, the jobs take its items in turn.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import AfterValidator, BeforeValidator, Discriminator, FailFast, Field, JsonValue, SkipValidation, Tag

from hascheduler.errors import InvalidInput
from hascheduler.model.limit_keys import limit_keys
from hascheduler.model.policy import DEFAULT_PRESET, IdleKeyStart, criteria
from hascheduler.model.processor import ANY_DEFINITION
from hascheduler.model.resources import RESOURCE_NAMES_MAX, SLOTS, resources
from hascheduler.model.values.durations import LONGEST_MS
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import INTEGER_MAX
from hascheduler.model.values.strict_yaml import StrictLoader, too_deep_at
from hascheduler.schema.definition import ConflictScope, Definition
from hascheduler.simulate.scenario import Scenario, ScenarioJob, ScenarioPolicy, ScenarioProcessor
from hascheduler.wire.definition import StartLimits
from hascheduler.wire.fields import FIELDS_MAX, DurationMs, NullIs, StrictModel, between, invalid_value
from hascheduler.wire.job import Mode, Priority
from hascheduler.wire.lane import LaneBody
from hascheduler.wire.tenant import RunningLimit
from hascheduler.wire.validation import ONE, TURNS, Path, validated

_YAML_CHARACTERS_MAX = 32 * 1024 * 1024
"""YAML takes a hundred times as long as JSON."""
_DEPTH_MAX = 32
_MANY = 1_000_000
_NAMES_MAX = 10_000
_Value = TypeVar("_Value")


def _amount_name(name: str) -> str:
    if name == SLOTS:
        raise invalid_value("no name for a resource", "another name: every job takes one slot")
    return name


def _thousandths(value: float) -> float:
    if value != round(value, 3):
        raise invalid_value(f"{quoted(value)} is too exact", "at most three decimals")
    return value


_AnyText = Annotated[str, Field(max_length=512)]
_SomeText = Annotated[_AnyText, Field(min_length=1)]
_Default = Annotated[_SomeText, NullIs("default")]
_Count = Annotated[int, Field(ge=1, le=INTEGER_MAX)]
_Start = Annotated[DurationMs, NullIs(0)]
_Amounts = Annotated[
    dict[Annotated[_SomeText, AfterValidator(_amount_name)], Annotated[int, Field(ge=0, le=INTEGER_MAX)]],
    Field(max_length=RESOURCE_NAMES_MAX),
]
_Fields = Annotated[dict[_SomeText, SkipValidation[JsonValue]], Field(max_length=FIELDS_MAX)]
_NullIsDefaults = BeforeValidator(lambda value: {} if value is None else value)
_Named = Annotated[dict[_SomeText, Annotated[_Value, _NullIsDefaults]], Field(max_length=_NAMES_MAX), NullIs({})]
_ListOf = Annotated[list[_Value], FailFast(), NullIs([])]
_Turns = Annotated[
    Annotated[_Value, Tag(ONE)] | Annotated[list[_Value], Field(min_length=1, max_length=_NAMES_MAX), Tag(TURNS)],
    Discriminator(lambda value: TURNS if isinstance(value, list) else ONE),
]


class _Definition(StartLimits):
    conflict_group: _SomeText | None = None
    resources: Annotated[_Amounts, NullIs({})] = Field(default={})

    def resource(self, name: str, rev: int = 0) -> Definition:
        scope = ConflictScope(self.conflict_scope or ConflictScope.SHARED)  # a file from before there were scopes
        return super().resource(name, rev).model_copy(update={"conflict_scope": scope})


class _Processor(StrictModel):
    id: _SomeText
    types: _Turns[_SomeText] | None = None
    slots: Annotated[int, Field(ge=1, le=_MANY), NullIs(1)] = 1
    resources: Annotated[_Amounts, NullIs({})] = Field(default={})
    join_at: _Start = 0
    leave_at: DurationMs | None = None
    drain_at: DurationMs | None = None

    def processor(self, path: Path) -> ScenarioProcessor:
        for key, at in (("leave_at", self.leave_at), ("drain_at", self.drain_at)):
            if at is not None and at < self.join_at:
                raise InvalidInput((*path, key), f"{at / 1_000:g} s is before it joins", "a time after join_at")
        types = frozenset(_turns(ANY_DEFINITION if self.types is None else self.types))
        needs = resources(self.resources)
        return ScenarioProcessor(self.id, types, self.slots, needs, self.join_at, self.leave_at, self.drain_at)


class _LearnedCost(StrictModel):
    definition: _SomeText
    target: _AnyText
    cost: DurationMs


class _Jobs(StrictModel):
    """One job, or a group; a job that has not begun ``expires_after`` its submission fails."""

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

    def jobs(self, path: Path, room: int, definitions: Mapping[str, Definition]) -> Iterator[ScenarioJob]:
        """Yield the jobs one by one; of payload and labels only what limits per key look at is kept."""
        for name, value in self:
            if self.count is None and ((name == "every" and value is not None) or isinstance(value, list)):
                problem = "without count" if name == "every" else "a list"
                raise InvalidInput((*path, name), problem, "one value, or count: how many jobs there are")
        if (self.count or 1) > room:
            raise InvalidInput((*path, "count"), f"{self.count or 1:,}", f"at most {_MANY:,} jobs in all")
        for definition in _turns(self.definition):
            _demand_defined(definition, definitions, (*path, "definition"))
        id = self.id if self.count is None or "{n}" in self.id else self.id + "-{n}"
        turns = {name: _turns(value) for name, value in self if name not in ("id", "submit_at", "count")}
        turns["resources"] = [None if each is None else resources(each) for each in turns["resources"]]
        at_ms = self.submit_at
        for n in range(self.count or 1):
            own = {name: values[n % len(values)] for name, values in turns.items()}
            own["id"] = id if self.count is None else id.replace("{n}", str(n + 1))
            own["target"] = own["id"] if own["target"] is None else own["target"]
            payload, labels, gap_ms = own.pop("payload"), own.pop("labels") or {}, own.pop("every") or 0
            expires_after, duration_ms = own.pop("expires_after"), own.pop("duration")
            yield ScenarioJob(
                **own,
                submit_at_ms=at_ms,
                duration_ms=duration_ms,
                expires_at_ms=None if expires_after is None else at_ms + expires_after,
                limit_keys=limit_keys(definitions[own["definition"]].keyed_by, payload, own["target"], labels),
            )
            at_ms += gap_ms


class _ScenarioFile(StrictModel):
    note: Annotated[_AnyText, NullIs("")] = ""
    policy: Annotated[_Turns[_SomeText], NullIs(DEFAULT_PRESET)] = DEFAULT_PRESET
    idle_key_start: Literal["zero", "min"] | None = None
    on_demand_bonus_max: Annotated[int, Field(ge=0, le=INTEGER_MAX)] | None = None
    max_concurrency: _Count | None = None
    learn_cost: Annotated[bool, NullIs(True)] = True  # the value of a null
    cost_alpha: Annotated[float, Field(ge=0, le=1), AfterValidator(_thousandths), NullIs(0.3)] = 0.3
    until: DurationMs | None = None
    learned_costs: _ListOf[_LearnedCost] = Field(default=[], max_length=10 * _NAMES_MAX)
    definitions: _Named[_Definition] = Field(default={})
    lanes: _Named[LaneBody] = Field(default={})
    tenants: _Named[RunningLimit] = Field(default={})
    processors: _ListOf[_Processor] = Field(default=[], max_length=_NAMES_MAX)
    jobs: _ListOf[_Jobs] = Field(default=[], max_length=_MANY)

    def scenario_policy(self) -> ScenarioPolicy:
        name = ",".join(_turns(self.policy))
        criteria(name)
        settings: dict[str, Any] = {"max_concurrency": self.max_concurrency, "learn_cost": self.learn_cost}
        settings["cost_alpha"] = round(self.cost_alpha * 1_000)
        if self.idle_key_start is not None:
            settings["idle_key_start"] = IdleKeyStart(self.idle_key_start)
        if "on_demand_bonus_max" in self.model_fields_set:  # a null is a bonus without a maximum
            settings["on_demand_bonus_max"] = self.on_demand_bonus_max
        return ScenarioPolicy(name, settings)


def parse_scenario(text: str) -> Scenario:
    """Return the scenario that ``text``, YAML or JSON, describes; an `InvalidInput` names the place of a mistake."""
    return scenario_of(_read(text))


def scenario_of(document: object) -> Scenario:
    """Return the scenario of a document that was read already."""
    file = validated(_ScenarioFile, document)
    definitions = {name: body.resource(name) for name, body in file.definitions.items()}
    processors = tuple(body.processor(("processors", index)) for index, body in enumerate(file.processors))
    known: set[str] = set()
    for index, processor in enumerate(processors):
        if processor.id in known:
            raise InvalidInput(("processors", index, "id"), f"{quoted(processor.id)} is there twice", "another id")
        known.add(processor.id)
    for index, cost in enumerate(file.learned_costs):
        _demand_defined(cost.definition, definitions, ("learned_costs", index, "definition"))
    jobs: dict[str, ScenarioJob] = {}
    for index, item in enumerate(file.jobs):
        for job in item.jobs(("jobs", index), _MANY - len(jobs), definitions):
            if jobs.setdefault(job.id, job) is not job:
                raise InvalidInput(("jobs", index, "id"), f"{quoted(job.id)} is there twice", "another id")
    return Scenario(
        policy=file.scenario_policy(),
        definitions=tuple(definitions.values()),
        lanes=tuple(body.resource(name) for name, body in file.lanes.items()),
        tenants=tuple(body.resource(name) for name, body in file.tenants.items()),
        processors=processors,
        learned_costs=tuple((each.definition, each.target, each.cost) for each in file.learned_costs),
        jobs=tuple(jobs.values()),
        until_ms=file.until,
        note=file.note,
    )


def _turns(value: _Value | list[_Value]) -> Sequence[_Value]:
    return value if isinstance(value, list) else (value,)


def _demand_defined(name: str, definitions: Mapping[str, Definition], path: Path) -> None:
    if name not in definitions:
        raise InvalidInput(path, f"{quoted(name)} is not defined", "a name in definitions")


def _read(text: str) -> Any:
    """Return the plain value that the text stands for; each key may stand once in an object, and dates stay texts."""
    if text.lstrip()[:1] == "{":
        try:
            return json.loads(text, object_pairs_hook=_object)
        except json.JSONDecodeError:
            pass  # an object of YAML may begin like one of JSON
        except (ValueError, RecursionError):
            raise InvalidInput((), "nested too deeply, or a number of too many digits", "JSON") from None
    if len(text) > _YAML_CHARACTERS_MAX:
        raise InvalidInput((), "too large", f"at most {_YAML_CHARACTERS_MAX >> 20} MiB of YAML, or JSON")
    try:
        line = too_deep_at(text, _DEPTH_MAX)
        if line is None:
            return yaml.load(text, StrictLoader)  # noqa: S506  # a safe loader
        raise InvalidInput((f"line {line}",), "nested too deeply", f"at most {_DEPTH_MAX} levels")
    except yaml.MarkedYAMLError as error:
        where = () if error.problem_mark is None else (f"line {error.problem_mark.line + 1}",)
        raise InvalidInput(where, f"{error.problem}", "YAML or JSON") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput((), " ".join(str(error).split())[:200], "YAML or JSON") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidInput((), f"{quoted(key)} twice in one object", "each key once")
        found[key] = value
    return found
