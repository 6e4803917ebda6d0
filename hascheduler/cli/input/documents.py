"""Reads YAML documents, and brings nouns into a normal form, so that equal ones compare equal.

YAML has the values of JSON only: texts, numbers, true and false, null, lists, and objects with text keys. Instants stay
texts, a key may occur only once, and a document that expands beyond its own size (aliases of aliases) is refused before
it is expanded.

The normal form of a file or an answer is that of a request: the name first, then everything that differs from its
default, without the fields that only answers have.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import yaml

from hascheduler.cli.output.yaml_text import ANSWERED
from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs, format_duration
from hascheduler.model.values.strict_yaml import StrictLoader, too_deep_at

if TYPE_CHECKING:
    from hascheduler.schema.noun import Part


TEXT_LENGTH_MAX = 4 * 1024 * 1024
_VALUES_MAX = 200_000
_DEPTH_MAX = 64

Path = tuple[str | int, ...]


def read_documents(text: str, source: str) -> Iterator[Any]:
    """Yield the documents of ``text`` as JSON values; an `InvalidInput` names the source and the line or document."""
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidInput((source,), f"larger than {TEXT_LENGTH_MAX >> 20} MiB", "smaller files")
    try:
        line = too_deep_at(text, _DEPTH_MAX)
        if line is not None:
            where = f"{source}, line {line}" if line else source
            raise InvalidInput((where,), "nested too deeply", f"at most {_DEPTH_MAX} levels")
        for number, document in enumerate(yaml.load_all(text, StrictLoader), 1):
            _demand_json(document, source, number)
            yield document
    except yaml.MarkedYAMLError as error:
        where = source if error.problem_mark is None else f"{source}, line {error.problem_mark.line + 1}"
        is_alias = "alias" in str(error.context or error.problem or "")
        hint = "; quote text that begins with * or &, such as a cron expression" if is_alias else ""
        raise InvalidInput((where,), f"{error.problem}", f"YAML{hint}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidInput((source,), " ".join(str(error).split()), "YAML") from None


def read_document(text: str, source: str) -> dict[str, Any]:
    """Return the one document of ``text``, an object."""
    documents = list(read_documents(text, source))
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput((source,), "is not a single object", "one YAML document with a mapping")
    return documents[0]


def located(source: str, number: int, path: Path) -> Path:
    """Return the place of ``path`` in that document: ``a.yaml, document 2, trigger.at``."""
    head = f"{source}, document {number}"
    return (f"{head}, {path[0]}", *path[1:]) if path else (head,)


def _demand_json(document: object, source: str, number: int) -> None:
    """Check each value of a document, as often as aliases would repeat it."""
    count = 0

    def wrong(path: Path, problem: str, expected: str) -> InvalidInput:
        return InvalidInput(located(source, number, path), problem, expected)

    def check(value: object, path: Path) -> None:
        nonlocal count
        count += 1
        if count > _VALUES_MAX or len(path) > _DEPTH_MAX:
            raise wrong((), "too large", f"at most {_VALUES_MAX:,} values, nested at most {_DEPTH_MAX} deep")
        match value:
            case None | bool() | int() | str():
                return
            case float():
                if not math.isfinite(value):
                    raise wrong(path, f"{value} is not a JSON number", "a finite number")
            case list():
                for index, item in enumerate(value):
                    check(item, (*path, index))
            case dict():
                for key, item in value.items():
                    if not isinstance(key, str):
                        raise wrong(path, f"the key {key!r} is not text", f"'{key}' in quotes")
                    check(item, (*path, key))
            case _:
                raise wrong(path, f"a {type(value).__name__}", "a JSON value")

    check(document, ())


# The models and triggers are imported on first use: a list of schedules does not need them.


def normal_schedule(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normal form of a schedule; keep invalid values as they are, for the replica to refuse."""
    from pydantic import ValidationError

    from hascheduler.schema.noun import normal_form, read_answer
    from hascheduler.schema.schedule_bodies import ScheduleFields

    given = _given(body)
    if given.get("paused") is False:
        del given["paused"]
    try:
        normal = normal_form(read_answer(ScheduleFields, given))
    except ValidationError:
        return given
    normal = {name: normal[name] for name in dict.fromkeys(("name", *normal)) if name in normal}
    normal["trigger"] = _trigger(normal["trigger"])
    if "jobs" in normal:
        normal["jobs"] = [_job(job, body.get("name")) for job in normal["jobs"]]
        if body.get("rev") is not None:
            normal.pop("job", None)  # an answer repeats the last of them there
    elif "job" in normal:
        normal["job"] = _job(normal["job"], body.get("name"))
    return normal


def _given(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in ANSWERED and value is not None}


def body_class(kind: str) -> "type[Part]":
    """Return the class of a request for a definition, a lane, a calendar or a tenant, without the name."""
    body: type[Part] = getattr(import_module(f"hascheduler.schema.{kind}"), f"{kind.capitalize()}Body")
    return body


def requested(kind: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normal form of a noun in a file; raise an `InvalidInput` if every replica would refuse it."""
    from hascheduler.schema.noun import answer_of, read_request

    given = {name: value for name, value in document.items() if name != "name" and value is not None}
    whole = answer_of(read_request(body_class(kind), given))
    return _normal_noun(kind, {"name": document["name"], **{name: whole[name] for name in given}})


def _normal_noun(kind: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normal form of a noun; keep invalid values as they are, for the replica to refuse."""
    from pydantic import ValidationError

    from hascheduler.schema.noun import answer_of, normal_form, read_answer

    given = _given(document)
    head = {name: given.pop(name) for name in ("name",) if name in given}
    try:
        body = read_answer(body_class(kind), given)
    except ValidationError:
        return head | given
    # A replacement that leaves out the scope keeps it, so the scope is written; without a group it means nothing.
    scoped = {name: given[name] for name in body.kept if name in given and "conflict_group" in given}
    normal = {name: value for name, value in normal_form(body).items() if name not in body.kept} | scoped
    return head | {name: normal[name] for name in answer_of(body) if name in normal}


def _job(job: Mapping[str, Any], schedule: Any) -> dict[str, Any]:
    """Return ``job`` in the order of files, without what follows from the schedule's name and the tenant."""
    from hascheduler.schema.tenant import DEFAULT_TENANT

    tenant = job.get("tenant", DEFAULT_TENANT)
    unsaid = {"target": schedule, "tenant": DEFAULT_TENANT, "fairness_key": tenant}
    names = (name for name in dict.fromkeys(("definition", "ref", *job)) if name in job)
    return {name: job[name] for name in names if name not in unsaid or job[name] != unsaid[name]}


def _trigger(trigger: dict[str, Any]) -> dict[str, Any]:
    """Return ``trigger`` as the replica stores it: an interval for `@every 90s`."""
    given = {name: _short(value) for name, value in trigger.items()}
    if given["type"] == "any":
        return {**given, "of": [_trigger(part) for part in given["of"]]}
    if given["type"] != "cron":
        return given
    from hascheduler.schema.trigger import Cron
    from hascheduler.triggers import read_pattern

    pattern = read_pattern(given.pop("expression"), given.pop("timezone", "UTC"), WallMs(0))
    del given["type"]
    if not isinstance(pattern, Cron):
        return {"type": "interval", "every": format_duration(pattern.every_ms), **given}
    return {"type": "cron", "expression": pattern.expression, "timezone": pattern.timezone, **given}


def _short(written: Any) -> Any:
    """Return instants of whole seconds without a fraction."""
    match written:
        case str():
            return written.removesuffix(".000Z") + "Z" if written.endswith(".000Z") else written
        case list():
            return [_short(one) for one in written]
        case dict():
            return {name: _short(value) for name, value in written.items()}
    return written


NORMAL: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "schedule": normal_schedule,
    **{kind: partial(_normal_noun, kind) for kind in ("definition", "lane", "calendar", "tenant")},
}
"""The function that makes the normal form, by kind."""
