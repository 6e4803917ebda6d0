"""Bounded, redacted representations of values from outside, for error messages."""

from hascheduler.model.redaction import redacted_beginning

QUOTED_LENGTH_MAX = 64


def quoted(value: object, length_max: int = QUOTED_LENGTH_MAX) -> str:
    """The repr of a scalar, shortened to ``length_max`` characters; of an object or a list only its type."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            text = repr(value[:length_max])
            if len(value) <= length_max and len(text) <= length_max:
                return text
            # Cut, but not in the middle of a secret.
            text = repr(redacted_beginning(value, length_max).removesuffix("…"))
        case _:
            text = repr(value)
            if len(text) <= length_max:
                return text
    return f"{text[: length_max - 4]}…"
