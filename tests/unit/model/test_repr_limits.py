"""Error messages quote values from outside within bounds."""

import pytest

from hascheduler.model.values.error_texts import quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1}, "an object"), ([1], "a list"), (None, "null"), (True, "true"), (7, "7"), ("a\nb", "'a\\nb'"),
        ("x" * 62, f"'{'x' * 62}'"), ("x" * 63, f"'{'x' * 59}…"),
    ],
)  # fmt: skip
def test_scalars_are_quoted_and_of_other_values_only_the_type(value: object, text: str) -> None:
    assert quoted(value) == text


def test_the_quoted_length_can_be_given() -> None:
    assert quoted("x" * 98, 100) == f"'{'x' * 98}'"
    assert quoted("x" * 99, 100) == f"'{'x' * 95}…"
