"""Resources in requests: whole numbers by name, such as ``{"cpu": 2}``."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from hascheduler.api.texts import wrong
from hascheduler.model.repr_limits import quoted
from hascheduler.model.resources import AMOUNT_MAX, NAME_EXPECTED, NAME_PATTERN, RESOURCE_NAMES_MAX, is_resource_name


def _name(name: str) -> str:
    if not is_resource_name(name):
        raise wrong(f"{quoted(name)} is no name for a resource", NAME_EXPECTED)
    return name


def _few(amounts: Any) -> Any:
    # Before each of them is looked at.
    if isinstance(amounts, dict) and len(amounts) > RESOURCE_NAMES_MAX:
        raise wrong(f"{len(amounts)} resources", f"at most {RESOURCE_NAMES_MAX}")
    return amounts


_Name = Annotated[str, AfterValidator(_name), Field(json_schema_extra={"pattern": NAME_PATTERN})]
_Amount = Annotated[int, Field(ge=1, le=AMOUNT_MAX)]
ResourceAmounts = Annotated[
    dict[_Name, _Amount],
    BeforeValidator(_few),
    Field(json_schema_extra={"maxProperties": RESOURCE_NAMES_MAX, "examples": [{"cpu": 2, "gpu": 1}]}),
]
