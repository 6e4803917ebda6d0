"""Null in a request means the default of a field, and nothing of what is no field."""

from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.schema.definition import DefinitionBody
from hascheduler.schema.noun import read_request


def test_null_is_the_default() -> None:
    assert read_request(DefinitionBody, {"timeout": None, "retry": {"attempts": None}}) == DefinitionBody()


@pytest.mark.parametrize("given", [{"timeuot": None}, {"timeout_ms": None}, {"retry": {"attempts_max": None}}])
def test_null_of_an_unknown_field_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="no such field"):
        read_request(DefinitionBody, given)
