"""What jobs need and processors have besides slots: whole numbers by name, such as ``cpu`` or ``licences``.

A vector is a tuple of (name, amount) in the order of the names, without zeroes: equal vectors are equal values.
"""

from collections.abc import Mapping
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.fields import is_integer

Resources = tuple[tuple[str, int], ...]

NOTHING: Resources = ()
SLOTS = "slots"
"""The resource that every processor has and every job takes one of; not to be declared."""
RESOURCE_NAMES_MAX = 16


def resources(amounts: Mapping[str, int]) -> Resources:
    """The vector of these amounts, none of which is negative."""
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount))


def decode_resources(value: object, path: str = "resources") -> Resources:
    """Read a stored object of whole numbers (None: nothing); what is wrong with it is an `InvalidInput`."""
    if value is None:
        return NOTHING
    if not isinstance(value, Mapping):
        raise InvalidInput((path,), f"a {type(value).__name__}", "an object of whole numbers")
    if len(value) > RESOURCE_NAMES_MAX:
        raise InvalidInput((path,), f"{len(value)} names", f"at most {RESOURCE_NAMES_MAX}")
    for name, amount in value.items():
        if not isinstance(name, str) or not name or name == SLOTS:
            raise InvalidInput((path,), f"{str(name)[:64]!r} is no name for a resource", f"a text other than {SLOTS}")
        if not is_integer(amount) or amount < 0:
            raise InvalidInput((path, name), f"{str(amount)[:64]!r}", "a whole number that is not negative")
    return resources(value)


def encode_resources(vector: Resources) -> dict[str, Any]:
    return dict(vector)
