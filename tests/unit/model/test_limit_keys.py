"""The value that a job has at a key: what is one value, what is none, and that it is bounded."""

from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.limit_keys import VALUE_CHARACTERS_MAX, checked_limit_key, limit_keys

PAYLOAD: dict[str, Any] = {
    "customer": "acme", "number": 5, "text": "5", "exact": 5.0, "half": 0.5, "yes": True, "empty": "", "null": None,
    "list": ["acme"], "object": {"id": "inner", "deep": {"er": 7}}, "long": "x" * 999, "longer": "x" * 1_000,
    "huge": 10**5_000, "a-b_c": "dashed",
}  # fmt: skip


def value(key: str, payload: Any = PAYLOAD) -> str:
    [(named, found)] = limit_keys((key,), payload, "the target", {"team": "red", "a.b": "dotted"})
    assert named == key
    return found


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("payload.customer", "acme"), ("payload.number", "5"), ("payload.text", "5"), ("payload.exact", "5"),
        ("payload.half", "0.5"), ("payload.yes", "true"), ("payload.object.id", "inner"),
        ("payload.object.deep.er", "7"), ("payload.a-b_c", "dashed"), ("label.team", "red"), ("label.a.b", "dotted"),
        ("target", "the target"),
    ],
)  # fmt: skip
def test_a_scalar_is_its_text(key: str, found: str) -> None:
    assert value(key) == found


@pytest.mark.parametrize("field", ["nothing", "empty", "null", "list", "object", "customer.name", "list.0"])
def test_jobs_without_a_value_are_one_group(field: str) -> None:
    assert value(f"payload.{field}") == ""
    payloads: list[Any] = [None, [], "acme", 7]
    assert [value("payload.customer", payload) for payload in payloads] == [""] * 4


def test_a_value_is_bounded_and_stays_one_of_its_own() -> None:
    found = [value(f"payload.{field}") for field in ("long", "longer", "huge")]
    assert len(set(found)) == 3
    assert all(0 < len(each) <= VALUE_CHARACTERS_MAX for each in found)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "payload",
        "payload.",
        "payload..a",
        "payload.a b",
        "label.",
        "customer",
        "target.a",
        "payload." + "a" * 200,
        5,
    ],
)
def test_what_names_no_field_is_refused(key: object) -> None:
    with pytest.raises(InvalidInput, match="names no field of a job"):
        checked_limit_key(key)
