"""The schedules that the demo plays with."""

from typing import Any

from hascheduler.model.durations import parse_duration
from hascheduler.model.instants import format_instant

_INTERVALS = (("1s", 16), ("500ms", 4), ("2s", 2), ("3s", 2))
_NAPS = 4
_ONE_OFFS = 12
_ONE_OFF_EVERY_MS = 3_000
_GRACE = "10m"


def schedule_bodies(now_ms: int, prefix: str = "") -> list[dict[str, Any]]:
    """Two dozen intervals of many lengths, some jobs that take a while, and a dozen one-offs along the way.

    Their names begin with ``prefix``. However long a takeover takes, nothing may be late enough to be given up.
    """
    bodies: list[dict[str, Any]] = []
    for every, count in _INTERVALS:
        for number in range(1, count + 1):
            name = f"{prefix}every-{every}-{number}"
            job = {"definition": "log", "target": name, "payload": {"message": "tick"}}
            # Spread over the interval, so that there is always something due soon.
            anchor = format_instant(now_ms + parse_duration(every) * number // count)
            bodies.append({"name": name, "trigger": {"type": "interval", "every": every, "anchor": anchor}, "job": job})
    for number in range(1, _NAPS + 1):
        name = f"{prefix}nap-{number}"
        job = {"definition": "sleep", "target": name, "payload": {"seconds": 1.2}}
        anchor = format_instant(now_ms + 2_000 * number // _NAPS)
        bodies.append({"name": name, "trigger": {"type": "interval", "every": "2s", "anchor": anchor}, "job": job})
    for number in range(1, _ONE_OFFS + 1):
        at = format_instant(now_ms + _ONE_OFF_EVERY_MS * number)
        name = f"{prefix}once-{number}"
        bodies.append({"name": name, "trigger": {"type": "once", "at": at}, "job": {"definition": "log"}})
    return [{**body, "misfire": {"grace": _GRACE}} for body in bodies]
