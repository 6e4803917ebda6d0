"""Values that others sent, as a message may quote them."""

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
        case _:
            text = repr(value)
            return text if len(text) <= length_max else f"{text[: length_max - 4]}…"
