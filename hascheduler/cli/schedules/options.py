"""The options that make and edit a schedule, and the body of a request that they make.

The meaning of a trigger's texts is not checked here: the replica checks it, or, without one,
`hascheduler.wire.trigger`.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

import typer

from hascheduler.cli.completion import complete_definition
from hascheduler.cli.input.values import NONE, or_none, whole_or_none
from hascheduler.cli.jobs.options import JOB, LABEL, job_fields, labels_of
from hascheduler.cli.options import Given, Options
from hascheduler.errors import InvalidInput
from hascheduler.model.schedule import CatchUp, Overlap
from hascheduler.model.values.instants import parse_instant

_PATTERNS = ("cron", "every", "at")


TRIGGER: Options = {
    "cron": Annotated[
        list[str] | None,
        typer.Option(
            "--cron",
            metavar="EXPR",
            help="Wall times: 5 fields, or 6 with seconds last; @daily, @every 90s; again for more.",
        ),
    ],
    "timezone": Annotated[
        str | None, typer.Option("--timezone", metavar="ZONE", help="Of --cron, such as Europe/Paris; default UTC.")
    ],
    "every": Annotated[
        list[str] | None,
        typer.Option("--every", metavar="SPAN", help="An interval, such as 10s, 1m30s or 200ms; again for more."),
    ],
    "anchor": Annotated[
        str | None,
        typer.Option("--anchor", metavar="INSTANT", help="Counts the intervals from here; default: its creation."),
    ],
    "at": Annotated[
        list[str] | None,
        typer.Option("--at", metavar="INSTANT", help="Once, such as 2030-01-31T09:30:00Z; again for more times."),
    ],
    "jitter": Annotated[
        str | None, typer.Option("--jitter", metavar="SPAN", help="Delay each fire by a fixed part of this span.")
    ],
    "start_at": Annotated[str | None, typer.Option("--start-at", metavar="INSTANT", help="Nothing before.")],
    "end_at": Annotated[str | None, typer.Option("--end-at", metavar="INSTANT", help="Nothing after.")],
    "max_fires": Annotated[str | None, typer.Option("--max-fires", metavar="N", help="Nothing after so many fires.")],
    "exclude": Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="FROM/TO", help="Leave out what lies between; again for more."),
    ],
    "only_on": Annotated[
        list[str] | None,
        typer.Option("--only-on", metavar="CALENDAR", help="Only on days in this calendar; again: in each of them."),
    ],
    "except_on": Annotated[
        list[str] | None,
        typer.Option("--except-on", metavar="CALENDAR", help="Not on days in this calendar; again for more."),
    ],
    "days_of": Annotated[
        str | None,
        typer.Option("--days-of", metavar="ZONE", help="Whose days these are; default: --timezone."),
    ],
}


_JOB: Options = {
    "definition": Annotated[
        str | None,
        typer.Option(
            "--definition", metavar="NAME", help="The type of job that it makes.", autocompletion=complete_definition
        ),
    ],
    "target": Annotated[
        str | None,
        typer.Option("--target", metavar="TEXT", help="What the job works on; default: the schedule's name."),
    ],
    **JOB,
    "expires_in": Annotated[
        str | None,
        typer.Option("--expires-in", metavar="SPAN", help="A job that has not begun so long after its time fails."),
    ],
    "render": Annotated[
        bool | None,
        typer.Option(
            "--render/--no-render", help="Fill ${nominal_at} and the like in the payload.", show_default=False
        ),
    ],
}

_POLICY: Options = {
    "grace": Annotated[
        str | None, typer.Option("--grace", metavar="SPAN", help="So late is still on time; default 1m.")
    ],
    "catch_up": Annotated[
        CatchUp | None, typer.Option("--catch-up", help="Which of the times that were too late fire; default latest.")
    ],
    "catch_up_limit": Annotated[
        str | None, typer.Option("--catch-up-limit", metavar="N", help="How many with --catch-up all; default 1000.")
    ],
    "overlap": Annotated[
        Overlap | None, typer.Option("--overlap", help="While an earlier job has not ended; default allow.")
    ],
    "pause_after_failures": Annotated[
        str | None,
        typer.Option("--pause-after-failures", metavar="N", help="Pause it when so many jobs in a row failed."),
    ],
    "label": LABEL,
}

SCHEDULE: Options = {**TRIGGER, **_JOB, **_POLICY}


def new_schedule(name: str, given: Given) -> dict[str, Any]:
    """The body that creates it; `InvalidInput` where something that has no default is not given."""
    if "definition" not in given:
        raise InvalidInput(("--definition",), "missing", "the type of job that it makes, such as log")
    trigger = new_trigger(given)
    return {"name": name, **changed_schedule(given), "trigger": trigger}


def changed_schedule(given: Given) -> dict[str, Any]:
    """The parts of a schedule that are given, as a merge patch; empty for none."""
    body: dict[str, Any] = {}
    misfire: dict[str, Any] = {}
    job = job_fields(given)
    if "grace" in given:
        misfire["grace"] = or_none(given["grace"])
    if "catch_up" in given:
        misfire["catch_up"] = given["catch_up"].value
    if "catch_up_limit" in given:
        misfire["limit"] = whole_or_none("--catch-up-limit", given["catch_up_limit"])
    if "target" in given:
        job["target"] = or_none(given["target"])
    if "expires_in" in given:
        job["expires_in"] = or_none(given["expires_in"])
    for name in ("definition", "render"):
        if name in given:
            job[name] = given[name]
    if "overlap" in given:
        body["overlap"] = given["overlap"].value
    if "pause_after_failures" in given:
        body["pause_after_failures"] = whole_or_none("--pause-after-failures", given["pause_after_failures"])
    parts = {"trigger": changed_trigger(given), "misfire": misfire, "job": job, "labels": labels_of(given)}
    return {**body, **{name: part for name, part in parts.items() if part}}


def new_trigger(given: Given) -> dict[str, Any]:
    """A whole trigger; `InvalidInput` unless a pattern is given."""
    if not any(name in given for name in _PATTERNS):
        raise InvalidInput(("--cron",), "no times are given", "one of --cron, --every and --at")
    if "timezone" in given and "cron" not in given:
        raise InvalidInput(("--timezone",), "is for wall times", "--cron beside it")
    if "anchor" in given and "every" not in given:
        raise InvalidInput(("--anchor",), "is for intervals", "--every beside it")
    return changed_trigger(given)


def changed_trigger(given: Given) -> dict[str, Any]:
    """The parts of a trigger that are given, as a merge patch; empty for none. Several patterns are one trigger."""
    parts = _parts(given)
    trigger: dict[str, Any] = {}
    if len(parts) > 1:
        trigger = {"type": "any", "of": [{**part, **_beside(part, given)} for part in parts]}
    else:
        trigger = {**(parts[0] if parts else {})}
        trigger |= {name: or_none(given[name]) for name in ("timezone", "anchor") if name in given}
    for name in ("jitter", "start_at", "end_at"):
        if name in given:
            trigger[name] = or_none(given[name])
    if "max_fires" in given:
        trigger["max_fires"] = whole_or_none("--max-fires", given["max_fires"])
    if "exclude" in given:
        trigger["exclude"] = None if given["exclude"] == [NONE] else [_window(text) for text in given["exclude"]]
    calendars = _calendars(given)
    if calendars:
        is_over = [*calendars.items()] == [("only", None), ("except", None)]
        trigger["calendars"] = None if is_over else calendars
    return trigger


def _parts(given: Given) -> list[dict[str, Any]]:
    """The patterns, each without what stands beside it."""
    crons = [{"type": "cron", "expression": text} for text in given.get("cron", ())]
    intervals = [{"type": "interval", "every": text} for text in given.get("every", ())]
    return [*crons, *intervals, *([_at(given["at"])] if "at" in given else [])]


def _beside(part: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """The zone of a cron expression among several patterns, the anchor of an interval."""
    name = {"cron": "timezone", "interval": "anchor"}.get(part["type"])
    said = None if name is None or name not in given else or_none(given[name])
    return {} if said is None else {str(name): said}


def _calendars(given: Given) -> dict[str, Any]:
    use: dict[str, Any] = {}
    for option, field in (("only_on", "only"), ("except_on", "except")):
        if option in given:
            use[field] = None if given[option] == [NONE] else list(given[option])
    if "days_of" in given:
        use["timezone"] = or_none(given["days_of"])
    return use


def _at(texts: list[str]) -> dict[str, Any]:
    if len(texts) == 1:
        return {"type": "once", "at": texts[0]}
    with suppress(InvalidInput):  # the reader of the trigger reports it better, with the index
        texts = sorted(texts, key=parse_instant)
    return {"type": "times", "at": texts}


def _window(text: str) -> dict[str, str]:
    start, slash, end = text.partition("/")
    if not slash:
        raise InvalidInput(("--exclude",), f"{text[:64]!r} is not FROM/TO", "two instants with a slash between")
    return {"from": start, "to": end}
