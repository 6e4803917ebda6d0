"""What a handler returned or raised, as it may be stored."""

from typing import Any

import orjson

from hascheduler.errors import InvalidInput

RESULT_BYTES_MAX = 256 * 1024
ERROR_BYTES_MAX = 4 * 1024
# Nothing is converted behind the handler's back but what JSON itself has no difference for.
_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


def checked_result(result: object) -> Any:
    """``result`` as JSON reads it back (tuples become lists); not JSON, or too much of it, is an `InvalidInput`."""
    try:
        encoded = orjson.dumps(result, option=_STRICT)
    except (TypeError, RecursionError) as error:
        raise InvalidInput(("result",), f"not JSON: {str(error)[:200]}", "JSON") from None
    if len(encoded) > RESULT_BYTES_MAX:
        raise InvalidInput(("result",), f"{len(encoded)} bytes of JSON", f"at most {RESULT_BYTES_MAX}")
    return orjson.loads(encoded)


TEXT_LENGTH_MAX = 500


def shown_text(text: object) -> str:
    """``text`` as it may be stored and shown in one line."""
    return " ".join(str(text)[:TEXT_LENGTH_MAX].encode("utf-8", "replace").decode().split())


def error_text(error: BaseException) -> str:
    """``Type: text``, at most `ERROR_BYTES_MAX` bytes of valid UTF-8."""
    try:
        said = str(error)
    except Exception:  # an exception whose text can't be made is still one failed job, no more
        said = ""
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= ERROR_BYTES_MAX:
        return encoded.decode()
    return encoded[: ERROR_BYTES_MAX - 3].decode("utf-8", "ignore") + "…"
