"""Triggers as people write and read them: the fields of a pattern, together with those that narrow its times.

    {"type": "interval", "every": "1m", "jitter": "5s"}  ◄──►  Trigger(Interval(60_000, anchor_ms), jitter_ms=5_000)

Each class is made of the fields and sentences of the dataclasses in `hascheduler.schema.trigger`.
"""

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_type_hints

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, create_model, model_validator

from hascheduler.schema.forms import Instant, Listed
from hascheduler.schema.noun import Part
from hascheduler.schema.trigger import (
    ANY,
    KINDS,
    PARTS_MAX,
    PARTS_MIN,
    AnyOf,
    CalendarUse,
    Interval,
    Trigger,
    Window,
    type_of,
)


class PatternBody(Part):
    """A pattern as its author wrote it."""

    never_null = ("anchor",)

    type: str
    _given: Any = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _remembers_what_was_given(cls, given: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        body = read(given)
        body._given = given
        return body

    @property
    def given(self) -> Mapping[str, Any]:
        """Return the fields that its author wrote, by published names."""
        return self._given if isinstance(self._given, dict) else {}


def _sentences(kind: type) -> dict[str, str]:
    """Return the docstring of each field in the source."""
    [found] = ast.parse(inspect.getsource(kind)).body
    assert isinstance(found, ast.ClassDef)
    return dict(_described(found))


def _described(found: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for line, below in pairwise(found.body):
        match line, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(value=str(sentence))):
                yield name, inspect.cleandoc(sentence)


def _part_of(name: str, *kinds: type, base: type[Part] = Part, **instead: Any) -> Any:
    """Return the part with the documented fields of ``kinds``; ``instead`` are types of some of them."""
    made: dict[str, Any] = {}
    for kind in kinds:
        hints, sentences = get_type_hints(kind, include_extras=True), _sentences(kind)
        for each in fields(kind):
            if each.name in sentences:
                default = {} if each.default is MISSING else {"default": each.default}
                described = Field(description=sentences[each.name], **default)
                made[each.name] = (instead.pop(each.name, hints[each.name]), described)
    more: Any = {"__cls_kwargs__": {"use_attribute_docstrings": False}, **instead, **made}
    doc = " ".join((kinds[0].__doc__ or "").split())
    return create_model(name, __base__=base, __module__=__name__, __doc__=doc, **more)


_ANCHOR = Annotated[Instant | None, Field(default=None, examples=["2030-01-01T00:00:00.000Z"])]


def _pattern_of(tag: str, name: str, *kinds: type, **instead: Any) -> Any:
    described = Field(description="The type of pattern", examples=[tag])
    anchor = {"anchor_ms": _ANCHOR} if Interval in kinds else {}
    return _part_of(name, *kinds, base=PatternBody, type=Annotated[Literal[tag], described], **anchor, **instead)


def _one_of(kinds: Mapping[str, Any]) -> Any:
    return Annotated[reduce(or_, kinds.values()), Field(discriminator="type")]


def _several(part: Any, *more: Any) -> Any:
    return Annotated[tuple[part, ...], Listed, *more]


_WindowBody = _part_of("Window", Window)
_UseBody = _part_of("CalendarUse", CalendarUse)
_PARTS = {tag: _pattern_of(tag, f"{kind.__name__}Part", kind) for tag, kind in KINDS.items()}
_NARROWED: Any = {"exclude": _several(_WindowBody), "calendars": _UseBody | None}
_BODIES = {tag: _pattern_of(tag, kind.__name__, kind, Trigger, **_NARROWED) for tag, kind in KINDS.items()}
_MORNINGS = {"type": "cron", "expression": "0 9 * * mon-fri", "timezone": "Europe/Paris"}
_EXAMPLE = [_MORNINGS, {**_MORNINGS, "expression": "0 11 * * sat"}]
_FEW = Field(min_length=PARTS_MIN, max_length=PARTS_MAX, examples=[_EXAMPLE])
_BODIES[ANY] = _pattern_of(ANY, "Any", AnyOf, Trigger, of=_several(_one_of(_PARTS), _FEW), **_NARROWED)
if TYPE_CHECKING:
    TriggerBody = PatternBody
else:
    TriggerBody = _one_of(_BODIES)


class HasTrigger(Part):
    """An object with a trigger."""

    trigger: TriggerBody
    """When the schedule fires"""


_NARROWING = tuple(each.name for each in fields(Trigger) if each.name != "pattern")


def narrowing_of(body: PatternBody) -> dict[str, Any]:
    """Return the fields of a `Trigger` besides its pattern, as the core holds them."""
    narrowing = {name: getattr(body, name) for name in _NARROWING}
    use = narrowing["calendars"]
    windows = tuple(Window(each.from_ms, each.to_ms) for each in narrowing["exclude"])
    return {**narrowing, "exclude": windows, "calendars": None if use is None else CalendarUse(**dict(use))}


def show_trigger(trigger: Trigger) -> PatternBody:
    """Return a trigger as answers show it."""
    use, pattern = trigger.calendars, trigger.pattern
    narrowing = {name: getattr(trigger, name) for name in _NARROWING}
    narrowing["exclude"] = tuple(_shown(_WindowBody, window) for window in trigger.exclude)
    narrowing["calendars"] = None if use is None else _shown(_UseBody, use)
    body: PatternBody
    if isinstance(pattern, AnyOf):
        parts = tuple(_shown(_PARTS[type_of(part)], part, type=type_of(part)) for part in pattern.of)
        body = _BODIES[ANY].model_construct(type=ANY, of=parts, **narrowing)
    else:
        body = _shown(_BODIES[type_of(pattern)], pattern, type=type_of(pattern), **narrowing)
    return body


def _shown(part: Any, value: object, **more: Any) -> Any:
    shown = {name: getattr(value, name) for name in part.model_fields if name not in more}
    return part.model_construct(**shown, **more)
