"""Values that others sent, as a message may quote them."""

from hascheduler.model.redaction import redacted_beginning

QUOTED_LENGTH_MAX = 64


def quoted(value: object, length_max: int = QUOTED_LENGTH_MAX) -> str:
    """``value`` if it is a scalar, shortened to ``length_max`` characters; of anything else only what it is."""
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
            # It is cut, and not in the middle of a secret.
            text = repr(redacted_beginning(value, length_max).removesuffix("…"))
        case _:
            text = repr(value)
            if len(text) <= length_max:
                return text
    return f"{text[: length_max - 4]}…"
