"""Resources of jobs and processors besides slots: whole numbers by name, such as ``cpu`` or ``licences``.

A vector is a tuple of (name, amount) in the order of the names, without zeroes: equal vectors are equal values. People
write one as ``cpu=8,gpu=1`` in settings and options, and as ``{"cpu": 8, "gpu": 1}`` in requests.
"""

import re
from collections.abc import Mapping

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import is_integer

Resources = tuple[tuple[str, int], ...]
Path = tuple[str | int, ...]
NO_RESOURCES: Resources = ()
SLOTS = "slots"
"""The resource that every processor has some of and every job takes one of; it can't be declared."""
RESOURCE_NAMES_MAX = 16
AMOUNT_MAX = 1_000_000_000
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"
_NAME = re.compile(NAME_PATTERN[:-1] + r"\Z")
NAME_EXPECTED = f"1 to 63 letters, digits, '_' or '-', beginning with a letter or digit, other than {SLOTS!r}"
_TEXT_EXPECTED = "amounts by name, such as cpu=8,gpu=1"


def resources(amounts: Mapping[str, int]) -> Resources:
    """Return the vector of ``amounts``, none of which may be negative."""
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount))


# As they are stored


def decode_resources(value: object) -> Resources:
    """Return the vector of a stored object of whole numbers (None: empty); raise `InvalidInput` for anything else."""
    if value is None:
        return NO_RESOURCES
    if not isinstance(value, Mapping):
        raise InvalidInput(("resources",), f"a {type(value).__name__}", "an object of whole numbers")
    if len(value) > RESOURCE_NAMES_MAX:
        raise InvalidInput(("resources",), f"{len(value)} names", f"at most {RESOURCE_NAMES_MAX}")
    for name, amount in value.items():
        if not isinstance(name, str) or not name or name == SLOTS:
            raise InvalidInput(
                ("resources",), f"{str(name)[:64]!r} is not a resource name", f"a text other than {SLOTS}"
            )
        if not is_integer(amount) or amount < 0:
            raise InvalidInput(("resources", name), f"{str(amount)[:64]!r}", "a whole number that is not negative")
    return resources(value)


# As people write them


def is_resource_name(name: str) -> bool:
    return bool(_NAME.match(name)) and name != SLOTS


def parse_resources(text: str, path: Path = ()) -> Resources:
    """Return the vector that ``text`` lists; an empty one for an empty text."""
    amounts: dict[str, int] = {}
    for part in text.split(",") if text.strip() else ():
        name, equals, amount = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise InvalidInput(path, f"{quoted(part)} is not a resource amount", _TEXT_EXPECTED)
        if name in amounts:
            raise InvalidInput(path, f"{quoted(name)} is named twice", "each resource once")
        if not is_resource_name(name):
            raise InvalidInput(path, f"{name}: {quoted(name)} is not a resource name", NAME_EXPECTED)
        # Longer numbers are too large, and slow to parse.
        given = int(amount) if amount.isascii() and amount.isdecimal() and len(amount) < 20 else amount
        if not isinstance(given, int) or not 1 <= given <= AMOUNT_MAX:
            raise InvalidInput(path, f"{name}: {quoted(given)}", f"a whole number from 1 to {AMOUNT_MAX}")
        amounts[name] = given
    if len(amounts) > RESOURCE_NAMES_MAX:
        raise InvalidInput(path, f"{len(amounts)} resources", f"at most {RESOURCE_NAMES_MAX}")
    return resources(amounts)


def format_resources(vector: Mapping[str, int]) -> str:
    """Return the text that `parse_resources` reads back."""
    return ",".join(f"{name}={amount}" for name, amount in sorted(vector.items()))
