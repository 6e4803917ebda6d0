"""Read a scenario: the nouns of `hascheduler.schema`, and around them what only a scenario has.

Input that is not understood is refused, with its place. Definitions, lanes and tenants have the fields, bounds and
defaults of a replica, as far as they decide when jobs start. Spans are seconds or durations such as ``"1m30s"``.

An item of ``jobs`` with ``count`` is a group of that many jobs, one ``every`` that many seconds. In its id ``{n}`` is
the number of the job, from 1 on (an id without it gets ``-{n}``); if a value is a list, the jobs take its items in
turn.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import AfterValidator, BeforeValidator, FailFast, Field, JsonValue, SkipValidation, Strict

from hascheduler.errors import InvalidInput
from hascheduler.model.limit_keys import limit_keys
from hascheduler.model.policy import DEFAULT_PRESET, IdleKeyStart, criteria
from hascheduler.model.processor import ANY_DEFINITION
from hascheduler.model.resources import NO_RESOURCES, RESOURCE_NAMES_MAX, SLOTS, Resources
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import INTEGER_MAX
from hascheduler.model.values.instants import LONGEST_MS
from hascheduler.model.values.strict_yaml import StrictLoader, too_deep_at
from hascheduler.schema.definition import ConflictScope, Definition, StartLimits
from hascheduler.schema.forms import AsVector, Listed, Span, span, whole, wrong
from hascheduler.schema.lane import PRIORITY_MAX, Lane, LaneBody
from hascheduler.schema.noun import FIELDS_MAX, Part, named, read_request, together
from hascheduler.schema.refusals import Path
from hascheduler.schema.tenant import RunningLimit, Tenant
from hascheduler.simulate.scenario import Scenario, ScenarioJob, ScenarioPolicy, ScenarioProcessor

_YAML_CHARACTERS_MAX = 32 * 1024 * 1024
"""The longest YAML, which takes a hundred times as long as JSON."""
_DEPTH_MAX = 32
_MANY = 1_000_000
_NAMES_MAX = 10_000
_Value = TypeVar("_Value")


def _amount_name(name: str) -> str:
    if name == SLOTS:
        raise wrong("not a name for a resource", "another name: every job takes one slot")
    return name


def _thousandths(value: float) -> float:
    if value != round(value, 3):
        raise wrong(f"{quoted(value)} has too many decimals", "at most three")
    return value


_AnyText = Annotated[str, Field(max_length=512)]
_SomeText = Annotated[_AnyText, Field(min_length=1)]
_Count = Annotated[int, whole(1, INTEGER_MAX)]
_AmountName = Annotated[_SomeText, AfterValidator(_amount_name)]
_AnyAmounts = dict[_AmountName, Annotated[int, whole(0, INTEGER_MAX)]]
_Amounts = Annotated[Resources, AsVector(Annotated[_AnyAmounts, Field(max_length=RESOURCE_NAMES_MAX)])]
_Fields = Annotated[dict[_SomeText, SkipValidation[JsonValue]], Field(max_length=FIELDS_MAX)]
_NullIsDefaults = BeforeValidator(lambda value: {} if value is None else value)
_Named = Annotated[dict[_SomeText, Annotated[_Value, _NullIsDefaults]], Field(max_length=_NAMES_MAX)]
_ListOf = Annotated[list[_Value], FailFast()]
_Turns = Annotated[
    tuple[_Value, ...],
    Listed,
    Field(min_length=1, max_length=_NAMES_MAX),
    BeforeValidator(lambda value: value if isinstance(value, list) else [value]),
]
"""One value, or several that are taken in turn."""


class _Definition(StartLimits):
    conflict_group: _SomeText | None = None
    conflict_scope: Annotated[ConflictScope, Strict(False)] = ConflictScope.SHARED
    """The default is that of a file from before there were scopes."""
    resources: _Amounts = NO_RESOURCES


class _Processor(Part):
    id: _SomeText
    types: _Turns[_SomeText] = (ANY_DEFINITION,)
    slots: Annotated[int, whole(1, _MANY)] = 1
    resources: _Amounts = NO_RESOURCES
    join_at_ms: Span = 0
    leave_at_ms: Span | None = None
    drain_at_ms: Span | None = None

    def check_request(self, given: Mapping[str, Any]) -> None:
        for key, at_ms in (("leave_at", self.leave_at_ms), ("drain_at", self.drain_at_ms)):
            if at_ms is not None and at_ms < self.join_at_ms:
                raise together((key,), type(self), f"{at_ms / 1_000:g} s is before it joins", "a time after join_at")

    def processor(self) -> ScenarioProcessor:
        types = frozenset(self.types)
        spans = self.join_at_ms, self.leave_at_ms, self.drain_at_ms
        return ScenarioProcessor(self.id, types, self.slots, self.resources, *spans)


class _LearnedCost(Part):
    definition: _SomeText
    target: _AnyText
    cost_ms: Span


class _Jobs(Part):
    """One job, or a group; a job that has not begun ``expires_after`` its submission fails.

    A null among the values that are taken in turn is the default.
    """

    id: _SomeText
    definition: _Turns[_SomeText]
    target: _Turns[_AnyText | None] = (None,)
    tenant: _Turns[_SomeText | None] = ("default",)
    lane: _Turns[_SomeText | None] = ("default",)
    fairness_key: _Turns[_AnyText | None] = ("",)
    priority: _Turns[Annotated[int, whole(0, PRIORITY_MAX)] | None] = (5,)
    mode: _Turns[Literal["queued", "on_demand"] | None] = ("queued",)
    resources: _Turns[_Amounts | None] = (None,)
    payload: _Turns[_Fields | None] = (None,)
    labels: _Turns[_Fields | None] = (None,)
    submit_at_ms: Span = 0
    expires_after_ms: _Turns[Annotated[int, span(1, LONGEST_MS)] | None] = (None,)
    duration_ms: _Turns[Span]
    count: _Count | None = None
    every_ms: _Turns[Span | None] = (0,)

    def check_request(self, given: Mapping[str, Any]) -> None:
        for name, value in given.items() if self.count is None else ():
            if isinstance(value, list) or (name == "every" and value is not None):
                problem = "without count" if name == "every" else "a list"
                raise together((name,), type(self), problem, "one value, or count: how many jobs there are")

    def jobs(self, path: Path, room: int, definitions: Mapping[str, Definition]) -> Iterator[ScenarioJob]:
        """Yield the jobs one by one, with only the parts of payload and labels that limits per key read."""
        if (self.count or 1) > room:
            raise InvalidInput((*path, "count"), f"{self.count or 1:,}", f"at most {_MANY:,} jobs in all")
        for definition in self.definition:
            _demand_defined(definition, definitions, (*path, "definition"))
        id = self.id if self.count is None or "{n}" in self.id else self.id + "-{n}"
        fields = _Jobs.model_fields
        turns = {
            name: [fields[name].default[0] if each is None else each for each in values]
            for name, values in self
            if isinstance(values, tuple)
        }
        at_ms = self.submit_at_ms
        for n in range(self.count or 1):
            own = {name: values[n % len(values)] for name, values in turns.items()}
            own["id"] = id if self.count is None else id.replace("{n}", str(n + 1))
            own["target"] = own["id"] if own["target"] is None else own["target"]
            payload, labels, gap_ms = own.pop("payload"), own.pop("labels") or {}, own.pop("every_ms")
            expires_after_ms = own.pop("expires_after_ms")
            yield ScenarioJob(
                **own,
                submit_at_ms=at_ms,
                expires_at_ms=None if expires_after_ms is None else at_ms + expires_after_ms,
                limit_keys=limit_keys(definitions[own["definition"]].keyed_by, payload, own["target"], labels),
            )
            at_ms += gap_ms


class _ScenarioFile(Part):
    note: _AnyText = ""
    policy: _Turns[_SomeText] = (DEFAULT_PRESET,)
    idle_key_start: Literal["zero", "min"] | None = None
    on_demand_bonus_max: Annotated[int, whole(0, INTEGER_MAX)] | None = None
    max_concurrency: _Count | None = None
    learn_cost: bool = True
    cost_alpha: Annotated[float, Field(ge=0, le=1), AfterValidator(_thousandths)] = 0.3
    until_ms: Span | None = None
    learned_costs: _ListOf[_LearnedCost] = Field(default=[], max_length=10 * _NAMES_MAX)
    definitions: _Named[_Definition] = Field(default={})
    lanes: _Named[LaneBody] = Field(default={})
    tenants: _Named[RunningLimit] = Field(default={})
    processors: _ListOf[_Processor] = Field(default=[], max_length=_NAMES_MAX)
    jobs: _ListOf[_Jobs] = Field(default=[], max_length=_MANY)

    def scenario_policy(self, *, says_bonus: bool) -> ScenarioPolicy:
        name = ",".join(self.policy)
        criteria(name)
        settings: dict[str, Any] = {"max_concurrency": self.max_concurrency, "learn_cost": self.learn_cost}
        settings["cost_alpha"] = round(self.cost_alpha * 1_000)
        if self.idle_key_start is not None:
            settings["idle_key_start"] = IdleKeyStart(self.idle_key_start)
        if says_bonus:  # a null is a bonus without a maximum
            settings["on_demand_bonus_max"] = self.on_demand_bonus_max
        return ScenarioPolicy(name, settings)


def parse_scenario(text: str) -> Scenario:
    """Return the scenario that ``text``, YAML or JSON, describes; raise `InvalidInput` at the place of a mistake."""
    return scenario_of(_read(text))


def scenario_of(document: object) -> Scenario:
    """Return the scenario of a document that has been read already."""
    file = read_request(_ScenarioFile, document)
    definitions = {name: named(Definition, name, body) for name, body in file.definitions.items()}
    processors = tuple(body.processor() for body in file.processors)
    known: set[str] = set()
    for index, processor in enumerate(processors):
        if processor.id in known:
            raise InvalidInput(("processors", index, "id"), f"{quoted(processor.id)} occurs twice", "another id")
        known.add(processor.id)
    for index, cost in enumerate(file.learned_costs):
        _demand_defined(cost.definition, definitions, ("learned_costs", index, "definition"))
    jobs: dict[str, ScenarioJob] = {}
    for index, item in enumerate(file.jobs):
        for job in item.jobs(("jobs", index), _MANY - len(jobs), definitions):
            if jobs.setdefault(job.id, job) is not job:
                raise InvalidInput(("jobs", index, "id"), f"{quoted(job.id)} occurs twice", "another id")
    return Scenario(
        policy=file.scenario_policy(says_bonus=isinstance(document, dict) and "on_demand_bonus_max" in document),
        definitions=tuple(definitions.values()),
        lanes=tuple(named(Lane, name, body) for name, body in file.lanes.items()),
        tenants=tuple(named(Tenant, name, body) for name, body in file.tenants.items()),
        processors=processors,
        learned_costs=tuple((each.definition, each.target, each.cost_ms) for each in file.learned_costs),
        jobs=tuple(jobs.values()),
        until_ms=file.until_ms,
        note=file.note,
    )


def _demand_defined(name: str, definitions: Mapping[str, Definition], path: Path) -> None:
    if name not in definitions:
        raise InvalidInput(path, f"{quoted(name)} is not defined", "a name in definitions")


def _read(text: str) -> Any:
    """Return the plain value of the text; each key may occur once in an object, and dates stay texts."""
    if text.lstrip()[:1] == "{":
        try:
            return json.loads(text, object_pairs_hook=_object)
        except json.JSONDecodeError:
            pass  # an object of YAML may begin like one of JSON
        except (ValueError, RecursionError):
            raise InvalidInput((), "nested too deeply, or a number with too many digits", "JSON") from None
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
            raise InvalidInput((), f"{quoted(key)} occurs twice in one object", "each key once")
        found[key] = value
    return found
