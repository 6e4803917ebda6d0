"""Triggers in requests and responses: how they are stored, which are refused, and at which field."""

import json
from typing import Any

import httpx
import pytest

from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.model.values.instants import format_instant
from hascheduler.schema.trigger import Cron, Interval, Once, Times, Trigger, Window
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import DEFAULT_NARROWING, TICK, check_problem, create

DAY_MS = 86_400_000
NARROWING = {
    "jitter": "30s",
    "start_at": "2030-01-02T00:00:00+01:00",
    "end_at": "2031-01-01T00:00:00Z",
    "max_fires": 7,
    "exclude": [
        {"from": "2030-02-01T00:00:00Z", "to": "2030-02-02T00:00:00Z"},
        {"from": "2030-03-01T00:00:00Z", "to": "2030-03-02T00:00:00Z"},
    ],
}
SHOWN_NARROWING = {
    "jitter": "30s",
    "start_at": "2030-01-01T23:00:00.000Z",
    "end_at": "2031-01-01T00:00:00.000Z",
    "max_fires": 7,
    "exclude": [
        {"from": "2030-02-01T00:00:00.000Z", "to": "2030-02-02T00:00:00.000Z"},
        {"from": "2030-03-01T00:00:00.000Z", "to": "2030-03-02T00:00:00.000Z"},
    ],
}
FEBRUARY = Window(NOW + 31 * DAY_MS, NOW + 32 * DAY_MS)  # type: ignore[arg-type]  # sums of instants and spans

KINDS: list[tuple[dict[str, Any], dict[str, Any], Any]] = [
    (
        {"type": "cron", "expression": "30 2 * * mon-fri"},
        {"type": "cron", "expression": "30 2 * * mon-fri", "timezone": "UTC"},
        Cron("30 2 * * mon-fri", "UTC"),
    ),
    (
        {"type": "cron", "expression": "*/5 * * * *", "timezone": "Europe/Paris"},
        {"type": "cron", "expression": "*/5 * * * *", "timezone": "Europe/Paris"},
        Cron("*/5 * * * *", "Europe/Paris"),
    ),
    (
        {"type": "cron", "expression": "0 9 LW * ?", "timezone": "america/new_york"},
        {"type": "cron", "expression": "0 9 LW * ?", "timezone": "America/New_York"},
        Cron("0 9 LW * ?", "America/New_York"),
    ),
    (
        {"type": "cron", "expression": "@every 1m30s", "timezone": "Europe/Paris"},
        {"type": "interval", "every": "1m30s", "anchor": "2030-01-01T00:00:00.000Z"},
        Interval(90_000, NOW),
    ),
    (
        {"type": "interval", "every": 90, "anchor": "2020-01-01T00:00:17.5Z"},
        {"type": "interval", "every": "1m30s", "anchor": "2020-01-01T00:00:17.500Z"},
        Interval(90_000, 1_577_836_817_500),  # type: ignore[arg-type]  # an instant
    ),
    (
        {"type": "times", "at": ["2030-01-02T01:00:00+01:00", "2030-01-03T00:00:00Z"]},
        {"type": "times", "at": ["2030-01-02T00:00:00.000Z", "2030-01-03T00:00:00.000Z"]},
        Times((NOW + DAY_MS, NOW + 2 * DAY_MS)),  # type: ignore[arg-type]  # sums of instants and spans
    ),
    (
        {"type": "once", "at": "2030-01-02T12:00:00+12:00"},
        {"type": "once", "at": "2030-01-02T00:00:00.000Z"},
        Once(NOW + DAY_MS),  # type: ignore[arg-type]  # a sum of an instant and a span
    ),
]
each_kind = pytest.mark.parametrize(("sent", "shown", "pattern"), KINDS, ids=[row[1]["type"] for row in KINDS])


@each_kind
async def test_each_type_of_trigger_is_stored_and_shown(
    client: httpx.AsyncClient, world: World, sent: dict[str, Any], shown: dict[str, Any], pattern: Any
) -> None:
    assert (await create(client, trigger=sent))["trigger"] == {**shown, **DEFAULT_NARROWING}
    assert decode_schedule("tick", world.schedule()).trigger == Trigger(pattern)


@each_kind
async def test_the_bounds_of_a_trigger_are_stored_and_shown(
    client: httpx.AsyncClient, world: World, sent: dict[str, Any], shown: dict[str, Any], pattern: Any
) -> None:
    answer = await create(client, trigger={**sent, **NARROWING})
    assert answer["trigger"] == {**shown, **SHOWN_NARROWING, "calendars": None}
    stored = decode_schedule("tick", world.schedule()).trigger
    assert (stored.pattern, stored.jitter_ms, stored.max_fires) == (pattern, 30_000, 7)
    assert (stored.start_at_ms, stored.end_at_ms) == (NOW + DAY_MS - 3_600_000, NOW + 365 * DAY_MS)
    assert stored.exclude[0] == FEBRUARY


CRON = {"type": "cron", "expression": "*/5 * * * *"}
INTERVAL = TICK["trigger"]
ONE_WINDOW = {"from": "2030-02-01T00:00:00Z", "to": "2030-02-02T00:00:00Z"}
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("three fields", {**CRON, "expression": "* * *"}, "expression"),
    ("a minute of 61", {**CRON, "expression": "61 * * * *"}, "expression"),
    ("no expression", {"type": "cron"}, "expression"),
    ("a zone of another planet", {**CRON, "timezone": "Mars/X"}, "timezone"),
    ("a zone of another folder", {**CRON, "timezone": "../../etc/passwd"}, "timezone"),
    ("a zone as a path", {**CRON, "timezone": "/etc/localtime"}, "timezone"),
    ("an interval in a zone", {**INTERVAL, "timezone": "UTC"}, "timezone"),
    ("once in the past", {"type": "once", "at": "2029-12-31T23:59:59Z"}, "at"),
    ("once right now", {"type": "once", "at": "2030-01-01T00:00:00Z"}, "at"),
    ("once with every", {"type": "once", "at": "2031-01-01T00:00:00Z", "every": "1s"}, "every"),
    (
        "more times than there may be",
        {"type": "times", "at": [f"2040-01-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z" for n in range(10_001)]},
        "at",
    ),
    ("often", {**INTERVAL, "every": "99ms"}, "every"),
    ("never", {**INTERVAL, "every": 0}, "every"),
    (
        "the end before the start",
        {**INTERVAL, "start_at": "2031-01-02T00:00:00Z", "end_at": "2031-01-01T00:00:00Z"},
        "end_at",
    ),
    ("the end in the past", {**INTERVAL, "end_at": "2029-12-31T23:59:59Z"}, "end_at"),
    ("a start without an offset", {**INTERVAL, "start_at": "2031-01-02T00:00:00"}, "start_at"),
    ("jitter longer than the interval", {**INTERVAL, "jitter": "1001ms"}, "jitter"),
    ("jitter longer than the gap", {**CRON, "jitter": "6m"}, "jitter"),
    ("no fires", {**INTERVAL, "max_fires": 0}, "max_fires"),
    ("half a fire", {**INTERVAL, "max_fires": 0.5}, "max_fires"),
    ("more fires than can be counted", {**INTERVAL, "max_fires": 2**63 - 1}, "max_fires"),
    ("a window that is none", {**INTERVAL, "exclude": ["2031-01-02"]}, "exclude.0"),
    ("a window without an end", {**INTERVAL, "exclude": [{"from": "2031-01-02T00:00:00Z"}]}, "exclude.0.to"),
    ("a window with a name", {**INTERVAL, "exclude": [{**ONE_WINDOW, "name": "x"}]}, "exclude.0.name"),
    ("a window that is spelt as inside", {**INTERVAL, "exclude": [{**ONE_WINDOW, "from_": "x"}]}, "exclude.0.from_"),
    ("windows that are one", {**INTERVAL, "exclude": ONE_WINDOW}, "exclude"),
]


@pytest.mark.parametrize(("trigger", "field"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_a_trigger_that_makes_no_sense_is_refused_at_its_place(
    client: httpx.AsyncClient, world: World, trigger: dict[str, Any], field: str
) -> None:
    answer = await client.post("/v1/schedules", json={**TICK, "trigger": trigger})
    problem = check_problem(answer, 422, f"trigger.{field}")
    assert len(answer.content) < 4_096  # what was sent is not quoted whole
    assert problem["errors"][0]["expected"]
    assert world.everything() == World().everything()


@pytest.mark.parametrize("windows", [
    [{"from": "2031-01-02T00:00:00Z", "to": "2031-01-02T00:00:00Z"}],
    [{"from": "2031-01-02T00:00:00Z", "to": "2031-01-01T00:00:00Z"}],
    [{"from": "2031-01-03T00:00:00Z", "to": "2031-01-04T00:00:00Z"}, ONE_WINDOW],
    [ONE_WINDOW, ONE_WINDOW],
    [{"from": f"{year}-01-01T00:00:00Z", "to": f"{year}-01-02T00:00:00Z"} for year in range(1970, 2098)],
    [{"from": "1970-01-01T00:00:00Z", "to": "2099-12-31T23:59:59.999Z"}],
    [{"from": "2030-01-01T00:00:00Z", "to": "2099-12-31T23:59:59.999Z"}],
])  # fmt: skip
async def test_windows_that_make_no_sense_are_refused(client: httpx.AsyncClient, windows: list[dict[str, str]]) -> None:
    answer = await client.post("/v1/schedules", json={**TICK, "trigger": {**INTERVAL, "exclude": windows}})
    problem = check_problem(answer, 422)
    assert problem["errors"][0]["path"].startswith("trigger.exclude")


async def test_a_million_times_are_too_large(client: httpx.AsyncClient, world: World) -> None:
    body = json.dumps({**TICK, "trigger": {"type": "times", "at": ["2031-01-01T00:00:00Z"] * 1_000_000}})
    answer = await client.post("/v1/schedules", content=body, headers={"content-type": "application/json"})
    check_problem(answer, 413)
    assert world.everything() == World().everything()


async def test_ten_thousand_times_are_kept(client: httpx.AsyncClient) -> None:
    at = [format_instant(NOW + n * 1_000) for n in range(10_000)]
    shown = await create(client, trigger={"type": "times", "at": at})
    assert shown["trigger"]["at"] == at


POLICIES: list[tuple[dict[str, Any], str]] = [
    ({"misfire": {"grace": "-1s"}}, "misfire.grace"),
    ({"misfire": {"catch_up": "some"}}, "misfire.catch_up"),
    ({"misfire": {"limit": 0}}, "misfire.limit"),
    ({"misfire": {"limit": 1_001}}, "misfire.limit"),
    ({"misfire": {"graze": "1s"}}, "misfire.graze"),
    ({"misfire": "latest"}, "misfire"),
    ({"overlap": "sometimes"}, "overlap"),
    ({"pause_after_failures": 0}, "pause_after_failures"),
    ({"pause_after_failures": True}, "pause_after_failures"),
    ({"paused": "yes"}, "paused"),
    ({"job": {"definition": "log", "render": "yes"}}, "job.render"),
    ({"job": {"definition": "log", "render": True, "payload": {"a": ["", "${day}"]}}}, "job.payload.a.1"),
    ({"job": {"definition": "log", "render": True, "payload": "${label.team}"}}, "job.payload"),
    ({"job": {"definition": "log", "render": True, "payload": "${label.}"}}, "job.payload"),
]


@pytest.mark.parametrize(("changes", "path"), POLICIES, ids=[str(row[0]) for row in POLICIES])
async def test_a_policy_that_makes_no_sense_is_refused_at_its_place(
    client: httpx.AsyncClient, world: World, changes: dict[str, Any], path: str
) -> None:
    check_problem(await client.post("/v1/schedules", json={**TICK, **changes}), 422, path)
    assert world.everything() == World().everything()


async def test_a_payload_that_is_not_rendered_may_hold_anything(client: httpx.AsyncClient) -> None:
    payload = {"a": "${nothing}", "b": "$$"}
    assert (await create(client, job={"definition": "log", "payload": payload}))["job"]["payload"] == payload
