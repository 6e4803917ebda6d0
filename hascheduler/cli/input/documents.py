"""Reads YAML with the values of JSON only: texts, numbers, true and false, null, lists, and objects with text keys.

Instants stay the texts that they are, a key may stand only once, and a document that means more than it says (aliases
of aliases) is refused before it is unfolded.
"""

import math
from collections.abc import Iterator
from typing import Any

import yaml

from hascheduler.errors import InvalidInput
from hascheduler.model.values.strict_yaml import StrictLoader, too_deep_at

TEXT_LENGTH_MAX = 4 * 1024 * 1024
_VALUES_MAX = 200_000
_DEPTH_MAX = 64

Path = tuple[str | int, ...]


def read_documents(text: str, source: str) -> Iterator[Any]:
    """The documents of ``text``, as JSON values; `InvalidInput` names the source, and the line or the document."""
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidInput((source,), f"larger than {TEXT_LENGTH_MAX >> 20} MiB", "smaller files")
    try:
        _demand_shallow(text, source)
        for number, document in enumerate(yaml.load_all(text, StrictLoader), 1):
            _demand_json(document, source, number)
            yield document
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
        raise InvalidInput((f"{source}{line}",), f"{error.problem}", _hint(error)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidInput((source,), " ".join(str(error).split()), "YAML") from None


def read_document(text: str, source: str) -> dict[str, Any]:
    """The one document of ``text``, an object."""
    documents = list(read_documents(text, source))
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput((source,), "is not one object", "one YAML document of names and values")
    return documents[0]


def located(source: str, number: int, path: Path) -> Path:
    """``path`` in that document: ``a.yaml, document 2, trigger.at``."""
    head = f"{source}, document {number}"
    return (f"{head}, {path[0]}", *path[1:]) if path else (head,)


def _demand_shallow(text: str, source: str) -> None:
    line = too_deep_at(text, _DEPTH_MAX)
    if line is not None:
        where = f"{source}, line {line}" if line else source
        raise InvalidInput((where,), "nested too deeply", f"at most {_DEPTH_MAX} levels")


def _hint(error: yaml.MarkedYAMLError) -> str:
    if "alias" in str(error.context or error.problem or ""):
        return "YAML; a text that begins with * or &, such as a cron expression, needs quotes"
    return "YAML"


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
                    raise wrong(path, f"{value} is no number of JSON", "a finite number")
            case list():
                for index, item in enumerate(value):
                    check(item, (*path, index))
            case dict():
                for key, item in value.items():
                    if not isinstance(key, str):
                        raise wrong(path, f"the key {key!r} is no text", f"'{key}' in quotes")
                    check(item, (*path, key))
            case _:
                raise wrong(path, f"a {type(value).__name__}", "a value that JSON has")

    check(document, ())
