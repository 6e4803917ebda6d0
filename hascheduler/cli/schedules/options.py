"""The options that make and edit a schedule, and the request body that they make.

The values of a trigger are not checked here: the replica checks them, or, without one, `hascheduler.triggers.requests`.
"""

from typing import Any

from hascheduler.cli.fields import body_of, options_of
from hascheduler.cli.input.values import NONE, coming_instant, nullable, whole
from hascheduler.cli.options import Given, Options, text_option
from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import parse_instant
from hascheduler.schema.schedule_bodies import ScheduleFields

_PATTERNS = ("cron", "every", "at")
_INSTANTS = ("anchor", "start_at", "end_at")
_TRIGGER = {
    "cron": ("EXPR", "Cron expression: 5 fields, or 6 with seconds last; @daily, @every 90s; repeatable"),
    "timezone": ("ZONE", "Time zone of --cron, such as Europe/Paris; default UTC"),
    "every": ("SPAN", "Interval, such as 10s, 1m30s or 200ms; repeatable"),
    "anchor": ("INSTANT|SPAN", "Start of the intervals; default: its creation"),
    "at": ("INSTANT|SPAN", "Single time, such as 2030-01-31T09:30:00Z or 10m; repeatable"),
    "jitter": ("SPAN", "Delay each time by a fixed part of this span"),
    "start_at": ("INSTANT|SPAN", "Nothing before; 10m: in 10 minutes"),
    "end_at": ("INSTANT|SPAN", "Nothing after; 7d: in 7 days"),
    "max_fires": ("N", "Stop after this number of fires"),
    "exclude": ("FROM/TO", "Leave out the times in this window; repeatable"),
    "only_on": ("CALENDAR", "Only on days in this calendar; if repeated, in all of them"),
    "except_on": ("CALENDAR", "Not on days in this calendar; repeatable"),
    "days_of": ("ZONE", "Time zone of the days; default: --timezone"),
}
_REPEATABLE = {"cron", "every", "at", "exclude", "only_on", "except_on"}
TRIGGER: Options = {
    name: text_option(f"--{name.replace('_', '-')} {of}", help, many=name in _REPEATABLE)
    for name, (of, help) in _TRIGGER.items()
}

_BESIDE = ("trigger", "jobs")
"""The fields that the options of a schedule's fields leave out."""
SCHEDULE: Options = {**TRIGGER, **options_of(ScheduleFields, _BESIDE)}


def new_schedule(name: str, given: Given) -> dict[str, Any]:
    """Return the body that creates it; raise an `InvalidInput` if a field without a default is not given."""
    if "job_definition" not in given:
        raise InvalidInput(("--definition",), "missing", "the definition of its jobs, such as log")
    trigger = new_trigger(given)  # first: its error names best what is missing
    return {"name": name, **changed_schedule(given), "trigger": trigger}


def changed_schedule(given: Given) -> dict[str, Any]:
    """Return the given parts of a schedule as a merge patch, empty if none is given."""
    trigger = changed_trigger(given)
    return {**({"trigger": trigger} if trigger else {}), **body_of(ScheduleFields, given, _BESIDE)}


def new_trigger(given: Given) -> dict[str, Any]:
    """Return a whole trigger; raise an `InvalidInput` unless a pattern is given."""
    if not any(name in given for name in _PATTERNS):
        raise InvalidInput(("--cron",), "no times are given", "one of --cron, --every and --at")
    if "timezone" in given and "cron" not in given:
        raise InvalidInput(("--timezone",), "applies only to cron expressions", "--cron with it")
    if "anchor" in given and "every" not in given:
        raise InvalidInput(("--anchor",), "applies only to intervals", "--every with it")
    return changed_trigger(given)


def changed_trigger(given: Given) -> dict[str, Any]:
    """Return the given parts of a trigger as a merge patch; several patterns are one trigger."""
    instant = nullable(coming_instant)
    instants = {name: instant(f"--{name.replace('_', '-')}", given[name]) for name in _INSTANTS if name in given}
    given = {**given, **{name: NONE if at is None else at for name, at in instants.items()}}

    def patch_of(*names: str) -> dict[str, Any]:
        return {name: None if given[name] == NONE else given[name] for name in names if name in given}

    parts = _parts(given)
    trigger: dict[str, Any] = {"type": "any", "of": parts}
    if len(parts) < 2:
        trigger = {**(parts[0] if parts else {}), **patch_of("timezone", "anchor")}
    trigger |= patch_of("jitter", "start_at", "end_at")
    if "max_fires" in given:
        trigger["max_fires"] = nullable(whole)("--max-fires", given["max_fires"])
    if "exclude" in given:
        trigger["exclude"] = None if given["exclude"] == [NONE] else [_window(text) for text in given["exclude"]]
    calendars: dict[str, Any] = {
        field: None if given[option] == [NONE] else given[option]
        for option, field in (("only_on", "only"), ("except_on", "except"))
        if option in given
    }
    if "days_of" in given:
        calendars["timezone"] = patch_of("days_of")["days_of"]
    if calendars:
        trigger["calendars"] = None if calendars == {"only": None, "except": None} else calendars
    return trigger


def _parts(given: Given) -> list[dict[str, Any]]:
    """Return the patterns, each with the zone or anchor that is given for its type."""
    zone, anchor = ({name: given[name]} if given.get(name, NONE) != NONE else {} for name in ("timezone", "anchor"))
    crons = [{"type": "cron", "expression": text, **zone} for text in given.get("cron", ())]
    intervals = [{"type": "interval", "every": text, **anchor} for text in given.get("every", ())]
    return [*crons, *intervals, *([_at(given["at"])] if "at" in given else [])]


def _at(texts: list[str]) -> dict[str, Any]:
    instants = [coming_instant("--at", text) for text in texts]
    if len(instants) == 1:
        return {"type": "once", "at": instants[0]}
    return {"type": "times", "at": sorted(instants, key=parse_instant)}


def _window(text: str) -> dict[str, str]:
    start, slash, end = text.partition("/")
    if not slash:
        raise InvalidInput(("--exclude",), f"{text[:64]!r} is not FROM/TO", "two instants separated by a slash")
    return {"from": start, "to": end}
