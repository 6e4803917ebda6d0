"""Each part that a route reads is read as a request: without that, its bounds and rules would not be asked."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from fastapi.params import Depends

from hascheduler.schema.noun import AS_REQUEST, parts_in
from tests.unit.api.test_access import routes


def _read(endpoint: Any) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(endpoint, include_extras=True)
    return ((name, hint) for name, hint in hints.items() if name != "return")


def _marks(hint: Any) -> list[Any]:
    return [*getattr(hint, "__metadata__", ()), *(mark for inner in get_args(hint) for mark in _marks(inner))]


def test_each_part_is_read_as_a_request() -> None:
    read = [(route.name, name, hint) for _, _, route in routes() for name, hint in _read(route.endpoint)]
    parts = [(route, name, _marks(hint)) for route, name, hint in read if [*parts_in(hint)]]
    asked = [each for each in parts if not any(isinstance(mark, Depends) for mark in each[2])]
    assert len(asked) > 10
    assert [f"{route} {name}" for route, name, marks in asked if AS_REQUEST not in marks] == []
