"""Takes secrets out of texts: the last net below all that must not tell them in the first place."""

import re
from typing import Any

_HIDDEN = "***"
# Up to the last @ there is, as a password that nobody has encoded may hold one, and slashes too: rather too much.
_CREDENTIALS = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,31}://)(?:[^\s/?#:@]{0,512}:\S{0,2048}|[^\s/?#]{0,2048})@")
_TOKEN = re.compile(r"hsk_[A-Za-z0-9_-]+")
_BEARER = re.compile(r"\b(authorization\W{1,4}bearer\s+)[^\s\"']+", re.IGNORECASE)
_BEARER_LENGTH_MIN = len("authorization:bearer x")
_DEEPEST = 8


def redacted(text: str) -> str:
    """``text`` without the credentials of URIs and without tokens."""
    if "://" in text:
        text = _CREDENTIALS.sub(rf"\1{_HIDDEN}@", text)
    if "hsk_" in text:
        text = _TOKEN.sub(f"hsk_{_HIDDEN}", text)
    # Most texts are names and ids, too short to hold one.
    return _BEARER.sub(rf"\1{_HIDDEN}", text) if len(text) >= _BEARER_LENGTH_MIN else text


def redacted_value(value: Any, deepest: int = _DEEPEST) -> Any:
    """``value`` with all texts in it redacted; what is neither a text nor made of such is shown as a text first,
    where that holds a secret."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return redacted(value)
        case bytes():
            shown = value.decode("utf-8", "replace")
            clean = redacted(shown)
            return value if clean == shown else clean
        case dict() if deepest:
            return {
                redacted(key) if isinstance(key, str) else key: redacted_value(item, deepest - 1)
                for key, item in value.items()
            }
        case list() | tuple() | set() | frozenset() if deepest:
            items = [redacted_value(item, deepest - 1) for item in value]
            return items if isinstance(value, list) else tuple(items)
        case _:
            shown = str(value)
            clean = redacted(shown)
            return value if clean == shown else clean
