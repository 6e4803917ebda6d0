"""Reads the text of a scenario, JSON or YAML, as plain values: texts, numbers, true and false, null, lists, objects.

A key may stand only once in an object, and dates stay texts. Readers of the values must bound what they look at: in
YAML a short text may stand for a long one.
"""

import json
from typing import Any

import yaml

from hascheduler.errors import InvalidInput
from hascheduler.model.values.strict_yaml import StrictLoader, too_deep_at

BYTES_MAX = 256 * 1024 * 1024
_YAML_CHARACTERS_MAX = 32 * 1024 * 1024
"""YAML takes a hundred times as long as JSON."""
_DEPTH_MAX = 32


class _Doubled(Exception):
    pass


def read_text(text: str) -> Any:
    """The value that ``text`` stands for; an `InvalidInput` names the line."""
    if len(text) > BYTES_MAX:
        raise InvalidInput((), "too large", f"at most {BYTES_MAX >> 20} MiB")
    return _read_json(text) if text.lstrip()[:1] == "{" else _read_yaml(text)


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except _Doubled as doubled:
        raise InvalidInput((), f"{str(doubled)[:64]!r} twice in one object", "each key once") from None
    except json.JSONDecodeError as error:
        try:  # an object of YAML may begin like one of JSON
            return _read_yaml(text)
        except InvalidInput:
            raise InvalidInput((f"line {error.lineno}",), error.msg, "JSON") from None
    except (ValueError, RecursionError):
        raise InvalidInput((), "nested too deeply, or a number of too many digits", "JSON") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        raise _Doubled(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return found


def _read_yaml(text: str) -> Any:
    if len(text) > _YAML_CHARACTERS_MAX:
        expected = f"at most {_YAML_CHARACTERS_MAX >> 20} MiB of YAML, or JSON"
        raise InvalidInput((), "too large", expected)
    try:
        _demand_shallow(text)
        return yaml.load(text, StrictLoader)  # noqa: S506  # a safe loader
    except yaml.MarkedYAMLError as error:
        where = () if error.problem_mark is None else (f"line {error.problem_mark.line + 1}",)
        raise InvalidInput(where, f"{error.problem}", "YAML or JSON") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput((), " ".join(str(error).split())[:200], "YAML or JSON") from None


def _demand_shallow(text: str) -> None:
    line = too_deep_at(text, _DEPTH_MAX)
    if line is not None:
        raise InvalidInput((f"line {line}",), "nested too deeply", f"at most {_DEPTH_MAX} levels")
