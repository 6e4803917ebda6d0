"""A trigger in words, from its form in requests and answers: ``every 5m``, ``cron 30 2 * * * Europe/Paris``."""

from collections.abc import Mapping
from typing import Any

_TIMES_SHOWN = 3


def words(trigger: Mapping[str, Any]) -> str:
    parts = [_pattern(trigger)]
    for name, word in (("jitter", "jitter"), ("start_at", "from"), ("end_at", "until")):
        if trigger.get(name) not in (None, "0s"):
            parts.append(f"{word} {_short(str(trigger[name]))}")
    if trigger.get("max_fires") is not None:
        parts.append(f"at most {trigger['max_fires']} times")
    windows = trigger.get("exclude") or ()
    if windows:
        parts.append(f"leaving out {len(windows)} window{'s' if len(windows) > 1 else ''}")
    return ", ".join(parts)


def _pattern(trigger: Mapping[str, Any]) -> str:
    match trigger.get("type"):
        case "cron":
            zone = trigger.get("timezone") or "UTC"
            return f"cron {trigger['expression']} {zone}"
        case "interval":
            return f"every {trigger['every']}"
        case "once":
            return f"once {_short(trigger['at'])}"
        case "times":
            at = trigger["at"]
            more = f" and {len(at) - _TIMES_SHOWN} more" if len(at) > _TIMES_SHOWN else ""
            return f"at {', '.join(_short(text) for text in at[:_TIMES_SHOWN])}{more}"
        case other:
            return str(other)


def _short(instant: str) -> str:
    """Without a fraction that says nothing: ``2030-01-31T09:30:00Z``."""
    return instant.replace(".000Z", "Z")
