"""``hascheduler definition``, ``lane``, ``calendar`` and ``tenant``: the options and columns of each."""

from contextlib import suppress
from math import isfinite
from typing import Any

from hascheduler.cli.input.values import (
    NONE,
    fields_of,
    key_limits_or_none,
    key_limits_text,
    list_or_none,
    or_none,
    rate_or_none,
    rate_text,
    resources_or_none,
    unique_text,
    whole_or_none,
)
from hascheduler.cli.jobs.options import RESOURCES
from hascheduler.cli.options import Given, Options, text_option, texts_option
from hascheduler.cli.output.console import or_dash
from hascheduler.cli.resources.named import Answer, Noun
from hascheduler.errors import InvalidInput
from hascheduler.model.resources import format_resources

_PUT = "What is left out gets its default. Prints what was changed, and the whole as it is now."
_OWNER = text_option("--owner", of="NAME", help="Whose `apply` may prune it; none: nobody's.")

_LIMITS: Options = {
    "max_concurrency": text_option(
        "--max-concurrency", of="N", help="How many of its jobs run at once; none: no limit."
    ),
    "tier": text_option("--tier", of="N", help="Higher goes first, and so many of that tier run at once."),
    "conflict_group": text_option(
        "--conflict-group", of="NAME", help="Two of one group never work on one target at once."
    ),
    "conflict_scope": text_option(
        "--conflict-scope", of="SCOPE", help="Of its conflict group: tenant (of each its own) or shared."
    ),
    "rate_limit": text_option("--rate-limit", of="N/SPAN", help="How fast its jobs start, such as 100/1s."),
    "key_limits": texts_option(
        "--key-limit",
        of="KEY=LIMIT",
        help="How many jobs of each value at a key run at once, and how fast they start, such as "
        "payload.customer=2, payload.customer=10/1m or payload.customer=2,10/1m; again for more; none.",
    ),
    "unique_by": texts_option(
        "--unique",
        of="KEY",
        help="Its jobs of one value at this key, such as payload.customer or target, are duplicates of each other; "
        "again for more; none: no jobs are.",
    ),
    "on_duplicate": text_option(
        "--on-duplicate",
        of="WHAT",
        help="keep_first, replace or debounce; without --unique all of its jobs are duplicates.",
    ),
    "unique_period": text_option(
        "--unique-period",
        of="SPAN",
        help="How long a job has duplicates (keep_first), or the newest waits for another (debounce).",
    ),
    "unique_max_wait": text_option(
        "--unique-max-wait", of="SPAN", help="How long debounce keeps a job; default: 10 periods."
    ),
    "default_cost": text_option(
        "--default-cost", of="SPAN", help="What a job is charged until that is learned; default 1s."
    ),
    "resources": RESOURCES,
    "timeout": text_option("--timeout", of="SPAN", help="How long one attempt may run; none: for ever."),
    "total_timeout": text_option("--total-timeout", of="SPAN", help="How long all attempts and pauses may take; none."),
    "retry_attempts": text_option(
        "--retry-attempts", "--attempts", of="N", help="Attempts that may fail before a job does."
    ),
    "retry_lost_attempts": text_option(
        "--retry-lost-attempts", of="N", help="Attempts that may be lost with their processor; default 10."
    ),
    "retry_backoff": text_option("--retry-backoff", of="SPAN", help="The pause after the first; default 2s."),
    "retry_factor": text_option("--retry-factor", of="N", help="What each pause is multiplied by; default 2."),
    "retry_max": text_option("--retry-max", of="SPAN", help="The longest pause; default 1m."),
    "owner": _OWNER,
}
_UNIQUE = {"on_duplicate": "on_duplicate", "unique_period": "period", "unique_max_wait": "max_wait"}


def _definition_body(given: Given) -> dict[str, Any]:
    readers = {
        "max_concurrency": whole_or_none,
        "tier": whole_or_none,
        "rate_limit": rate_or_none,
        "resources": resources_or_none,
        "retry_attempts": whole_or_none,
        "retry_lost_attempts": whole_or_none,
        "retry_factor": _factor_or_none,
    }
    body = fields_of(given, (name for name in _LIMITS if name not in ("key_limits", "unique_by")), readers)
    retry = {name.removeprefix("retry_"): body.pop(name) for name in list(body) if name.startswith("retry_")}
    unique: dict[str, Any] | None = {field: body.pop(name) for name, field in _UNIQUE.items() if name in body}
    if "unique_by" in given:
        by = list(given["unique_by"])
        unique = None if by == [NONE] else {"by": by, **(unique or {})}
    if unique or "unique_by" in given:
        body["unique"] = unique
    if "key_limits" in given:
        body["key_limits"] = key_limits_or_none("--key-limit", given["key_limits"])
    return body | ({"retry": retry} if retry else {})


def _factor_or_none(flag: str, text: str) -> int | float | None:
    if or_none(text) is None:
        return None
    with suppress(ValueError):
        factor = float(text)
        if isfinite(factor):
            return int(factor) if factor.is_integer() else factor
    raise InvalidInput((flag,), f"{text[:64]!r} is not a number", "such as 2 or 1.5")


DEFINITION = Noun(
    kind="definition",
    options=_LIMITS,
    body=_definition_body,
    columns=("max", "tier", "conflicts", "rate", "cost", "resources", "attempts", "timeout", "owner", "keys", "unique"),
    cells=lambda one: (
        or_dash(one["max_concurrency"]),
        or_dash(one["tier"]),
        or_dash(one["conflict_group"]),
        rate_text(one["rate_limit"]),
        one["default_cost"],
        format_resources(one["resources"]) or "–",
        str(one["retry"]["attempts"]),
        or_dash(one["timeout"]),
        or_dash(one.get("owner")),
        key_limits_text(one.get("key_limits", ())),
        unique_text(one.get("unique")),
    ),
    none="There are no definitions; every job has the default limits.",
    put_help=_PUT,
    edit_help="",
    delete_help="Delete a definition. Its jobs go on, with the default limits.",
    example="repack",
    put_examples=(
        "hascheduler definition put repack --max-concurrency 3 --conflict-group git --tier 10 \\",
        "    --rate-limit 100/1s --default-cost 20s --resources cpu=2 \\",
        "    --timeout 5m --total-timeout 1h --retry-attempts 5 --retry-backoff 2s --retry-max 1m",
    ),
    edit_examples=(
        "hascheduler definition edit repack --max-concurrency none",
        "EDITOR=vi hascheduler definition edit repack",
    ),
)

_SHARE: Options = {
    "weight": text_option("--weight", of="N", help="Twice the weight, twice the share; default 1."),
    "promote_after": text_option(
        "--promote-after",
        of="SPAN",
        help="So long does a job wait until its priority grows by one, or 11 spans with commas, one for each"
        " priority from 0; default 1m.",
    ),
    "policy": text_option(
        "--policy", of="NAME,…", help="How its own jobs are ordered: a preset, or criteria; none: as all are."
    ),
    "owner": _OWNER,
}


def _steps_or_none(flag: str, text: str) -> str | list[str] | None:
    return list_or_none(flag, text) if "," in text else or_none(text)


def _lane_cells(one: Answer) -> tuple[str, ...]:
    steps, policy = one["promote_after"], one["policy"]
    return (
        str(one["weight"]),
        steps if isinstance(steps, str) else ", ".join(steps),
        "–" if policy is None else ", ".join(policy),
        or_dash(one.get("owner")),
    )


LANE = Noun(
    kind="lane",
    options=_SHARE,
    body=lambda given: fields_of(given, _SHARE, {"weight": whole_or_none, "promote_after": _steps_or_none}),
    columns=("weight", "promote after", "policy", "owner"),
    cells=_lane_cells,
    none="There are no lanes; every lane has the defaults.",
    put_help=_PUT,
    edit_help="",
    delete_help="Delete a lane. Its jobs go on, in a lane with the defaults.",
    example="bulk",
    put_examples=("hascheduler lane put bulk --weight 2 --promote-after 30s --policy aged_priority,arrival",),
    edit_examples=("hascheduler lane edit bulk --weight 3 --policy none", "EDITOR=vi hascheduler lane edit bulk"),
)

_DAYS = "2030-12-24, a span 2030-12-24/2031-01-01, or 12-25 for each year"
_LISTS: Options = {
    "weekdays": text_option("--weekdays", of="DAY,…", help="Days of each week that are in it, such as mon-fri."),
    "include": text_option("--include", of="DAY,…", help=f"Days that are in it besides: {_DAYS}."),
    "exclude": text_option("--exclude", of="DAY,…", help="Days of --weekdays that are not in it, as for --include."),
    "owner": _OWNER,
}


def _short(days: list[str], shown_max: int = 3) -> str:
    more = f" and {len(days) - shown_max} more" if len(days) > shown_max else ""
    return (", ".join(days[:shown_max]) or "–") + more


CALENDAR = Noun(
    kind="calendar",
    options=_LISTS,
    body=lambda given: fields_of(given, _LISTS, dict.fromkeys(("weekdays", "include", "exclude"), list_or_none)),
    columns=("weekdays", "include", "exclude", "owner"),
    cells=lambda one: (
        _short(one["weekdays"], 7),
        _short(one["include"]),
        _short(one["exclude"]),
        or_dash(one.get("owner")),
    ),
    none="There are no calendars.",
    put_help="What is left out is empty.",
    edit_help="A list that is given replaces the stored one.",
    delete_help="Delete a calendar that no schedule uses.",
    example="business-days",
    put_examples=(
        "hascheduler calendar put business-days --weekdays mon-fri",
        "hascheduler calendar put holidays-de --include 01-01,05-01,10-03,12-25,12-26,2030-04-19",
    ),
    edit_examples=(
        "hascheduler calendar edit business-days --exclude 12-24,12-31",
        "EDITOR=vi hascheduler calendar edit office",
    ),
)

_QUOTA: Options = {
    "max_running": text_option("--max-running", of="N", help="How many of its jobs run at once; none: no limit."),
    "max_pending": text_option("--max-pending", of="N", help="How many of its jobs wait; none: no limit."),
    "submit_rate": text_option("--submit-rate", of="N/SPAN", help="How fast its jobs are accepted, such as 100/1s."),
    "max_schedules": text_option(
        "--max-schedules", of="N", help="How many schedules it has; none: the deployment's limit."
    ),
    "fire_rate": text_option("--fire-rate", of="N/SPAN", help="How fast its schedules fire, such as 600/1m."),
    "owner": _OWNER,
}
_QUOTA_READERS = {
    **dict.fromkeys(("max_running", "max_pending", "max_schedules"), whole_or_none),
    **dict.fromkeys(("submit_rate", "fire_rate"), rate_or_none),
}

TENANT = Noun(
    kind="tenant",
    options=_QUOTA,
    body=lambda given: fields_of(given, _QUOTA, _QUOTA_READERS),
    columns=("max running", "max pending", "submit rate", "schedules", "fire rate", "owner"),
    cells=lambda one: (
        or_dash(one["max_running"]),
        or_dash(one["max_pending"]),
        rate_text(one["submit_rate"]),
        or_dash(one.get("max_schedules")),
        rate_text(one.get("fire_rate")),
        or_dash(one.get("owner")),
    ),
    none="There are no tenants; no tenant has a quota.",
    put_help=_PUT,
    edit_help="",
    delete_help="Delete a tenant. Its jobs go on, without a quota.",
    example="acme",
    put_examples=("hascheduler tenant put acme --max-running 10 --max-pending 10000 --submit-rate 100/1s",),
    edit_examples=("hascheduler tenant edit acme --max-running none", "EDITOR=vi hascheduler tenant edit acme"),
)
