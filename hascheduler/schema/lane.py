"""A lane: a class of work with its weight. Jobs of an unknown lane get the defaults."""

from typing import Annotated, Any

from pydantic import Field

from hascheduler.errors import InvalidInput
from hascheduler.model.policy import PRESETS, Criteria, Criterion, criteria
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import format_duration
from hascheduler.schema.forms import WEEK_MS, Form, span, whole
from hascheduler.schema.noun import Noun, Owner, Part

DEFAULT_LANE = "default"
"""The lane of jobs that name none. It exists even if it is not stored."""
PRIORITY_MAX = 10
PROMOTE_AFTER_MS_DEFAULT = 60_000
PROMOTE_AFTER_MS_MIN = 1_000
WEIGHT_MAX = 1_000_000
_STEPS = PRIORITY_MAX + 1
_POLICIES = f"a preset ({', '.join(PRESETS)}) or a list of {', '.join(Criterion)}"
_STEP = span(PROMOTE_AFTER_MS_MIN, WEEK_MS)


def _steps(value: Any) -> tuple[int, ...]:
    """Return the steps of a single span, or of one span for each priority."""
    if not isinstance(value, list):
        return (_STEP.read(value),)
    if len(value) != _STEPS:
        raise InvalidInput((), f"a list of {len(value)}", f"one span, or {_STEPS}: one for each priority from 0")
    return tuple(map(_STEP.read, value))


def _stored_steps(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or len(value) not in (1, _STEPS):
        raise InvalidInput((), quoted(value), f"a list of 1 or {_STEPS} spans")
    return tuple(map(_STEP.read_stored, value))


def _shown_steps(steps_ms: tuple[int, ...]) -> str | list[str]:
    return format_duration(steps_ms[0]) if len(steps_ms) == 1 else [format_duration(step_ms) for step_ms in steps_ms]


def _criteria(value: Any) -> Criteria:
    if not isinstance(value, str | list) or not all(isinstance(name, str) for name in value):
        raise InvalidInput((), f"{quoted(value)} is not a policy", _POLICIES)
    return criteria(value)


def _stored_criteria(value: Any) -> Criteria:
    if not isinstance(value, list | tuple):
        raise InvalidInput((), f"a {type(value).__name__}", "a list of criteria")
    return criteria(value)


_SPANS = [{"type": "string"}, {"type": "number"}]
PromoteAfter = Annotated[
    tuple[int, ...],
    Form(
        _steps,
        _shown_steps,
        _stored_steps,
        {"anyOf": [*_SPANS, {"type": "array", "items": {"anyOf": _SPANS}, "minItems": _STEPS, "maxItems": _STEPS}]},
        {"anyOf": [_SPANS[0], {"type": "array", "items": _SPANS[0]}]},
        metavar="SPAN,…",
        write_stored=list,
    ),
]
_CRITERIA_SCHEMA = {"type": "array", "items": {"type": "string", "enum": [*Criterion]}, "uniqueItems": True}
Policy = Annotated[
    Criteria,
    Form(
        _criteria,
        list,
        _stored_criteria,
        {"anyOf": [{"type": "string", "enum": [*PRESETS]}, _CRITERIA_SCHEMA]},
        {"type": "array", "items": {"type": "string", "enum": [*Criterion]}},
        metavar="NAME,…",
        write_stored=list,
    ),
]


class LaneBody(Part):
    """A class of work; an omitted or null field gets its default."""

    weight: Annotated[int, whole(1, WEIGHT_MAX)] = Field(default=1, examples=[2])
    """The lane's share of the cluster, relative to other lanes; default 1"""
    promote_after_ms: PromoteAfter = Field(default=(PROMOTE_AFTER_MS_DEFAULT,), examples=["1m"])
    """How long a job waits for each step of priority that it gains: one span, or one for each priority from 0 to 10;
    default 1m"""
    criteria: Policy | None = Field(default=None, examples=[["aged_priority", "arrival"]])
    """The order of the lane's own jobs, if the deployment's policy begins with `lane`: a preset or a list of
    criteria; null: the deployment's policy"""
    owner: Owner = None


class Lane(LaneBody, Noun):
    """A class of work with its weight."""

    def promote_after(self, priority: int) -> int:
        """Return how long a job of that priority waits for each step, in ms."""
        return self.promote_after_ms[min(max(priority, 0), len(self.promote_after_ms) - 1)]
