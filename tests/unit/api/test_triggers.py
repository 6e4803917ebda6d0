"""Triggers: how they are stored and shown, what is refused, ``…/preview``; responses sent back change nothing."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hascheduler.model.collection import Collection
from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.schema.trigger import Cron, Interval, Once, Times, Trigger
from tests.tiers import examples
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import (
    DEFAULT_NARROWING,
    NOW_TEXT,
    REQUESTED,
    TICK,
    Client,
    check_problem,
    create,
    get,
    post,
)

DAY_MS = 86_400_000

KINDS: list[tuple[dict[str, Any], dict[str, Any], Any]] = [
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
    client: Client, world: World, sent: dict[str, Any], shown: dict[str, Any], pattern: Any
) -> None:
    assert (await create(client, trigger=sent))["trigger"] == {**shown, **DEFAULT_NARROWING}
    assert decode_schedule("tick", world.schedule()).trigger == Trigger(pattern)


CRON = {"type": "cron", "expression": "*/5 * * * *"}
INTERVAL = TICK["trigger"]
ONE_WINDOW = {"from": "2030-02-01T00:00:00Z", "to": "2030-02-02T00:00:00Z"}
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("a zone of another folder", {**CRON, "timezone": "../../etc/passwd"}, "timezone"),
    ("once right now", {"type": "once", "at": "2030-01-01T00:00:00Z"}, "at"),
    ("more times than there may be", {"type": "times", "at": ["2040-01-01T00:00:00Z"] * 10_001}, "at"),
    ("a start without an offset", {**INTERVAL, "start_at": "2031-01-02T00:00:00"}, "start_at"),
    ("jitter longer than the gap", {**CRON, "jitter": "6m"}, "jitter"),
    ("a window without an end", {**INTERVAL, "exclude": [{"from": "2031-01-02T00:00:00Z"}]}, "exclude.0.to"),
    ("a window that is spelt as inside", {**INTERVAL, "exclude": [{**ONE_WINDOW, "from_": "x"}]}, "exclude.0.from_"),
]  # fmt: skip


@pytest.mark.parametrize(("trigger", "field"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_a_trigger_that_makes_no_sense_is_refused_at_its_place(
    client: Client, world: World, trigger: dict[str, Any], field: str
) -> None:
    answer = await client.post("/v1/schedules", json={**TICK, "trigger": trigger})
    problem = check_problem(answer, 422, f"trigger.{field}")
    assert len(answer.content) < 4_096  # what was sent is not quoted whole
    assert problem["errors"][0]["expected"]
    assert world.everything() == World().everything()


WEEKDAYS = {"type": "cron", "expression": "0 9 * * mon-fri", "timezone": "Europe/Paris"}
SATURDAYS = {"type": "cron", "expression": "0 11 * * sat", "timezone": "Europe/Paris"}
EVERY_8H = {"type": "interval", "every": "8h"}
AT_ONCE = {"type": "once", "at": "2030-01-02T00:00:00Z"}
LATER_TEXT = "2030-01-01T00:01:00.000Z"


def any_of(*parts: Any, **narrowing: Any) -> dict[str, Any]:
    return {"type": "any", "of": list(parts), **narrowing}


KEPT: list[tuple[str, list[dict[str, Any]], list[str | None]]] = [
    ("the same span at its place", [WEEKDAYS, EVERY_8H], [None, NOW_TEXT]),
    ("one pattern more", [WEEKDAYS, EVERY_8H, AT_ONCE], [None, NOW_TEXT, None]),
    ("another span", [WEEKDAYS, {**EVERY_8H, "every": "6h"}], [None, LATER_TEXT]),
    ("at another place", [EVERY_8H, WEEKDAYS], [LATER_TEXT, None]),
    ("an anchor of its own", [WEEKDAYS, {**EVERY_8H, "anchor": "2030-01-01T03:00:00Z"}],
     [None, "2030-01-01T03:00:00.000Z"]),
]  # fmt: skip


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(("of", "anchors"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT])
async def test_an_edit_keeps_the_anchor_of_the_interval_that_stays(
    client: Client, world: World, method: str, of: list[dict[str, Any]], anchors: list[str | None]
) -> None:
    await create(client, trigger=any_of(WEEKDAYS, EVERY_8H))
    world.clock.now = WallMs(NOW + 60_000)
    body = {"trigger": any_of(*of)}
    answer = await client.request(method, "/v1/schedules/tick", json={**TICK, **body} if method == "PUT" else body)
    assert answer.status_code == 200, answer.text
    assert [part.get("anchor") for part in answer.json()["trigger"]["of"]] == anchors


CALENDARS = {"only": ["business-days"]}
BAD_PARTS: list[tuple[str, dict[str, Any], str]] = [
    ("several in one", any_of(WEEKDAYS, any_of(WEEKDAYS, SATURDAYS)), "of.1.type"),
    ("jitter of one pattern", any_of(WEEKDAYS, {**SATURDAYS, "jitter": "1m"}), "of.1.jitter"),
    ("calendars and two zones", any_of(WEEKDAYS, {**SATURDAYS, "timezone": "America/New_York"}, calendars=CALENDARS),
     "calendars.timezone"),
]  # fmt: skip


@pytest.mark.parametrize(("trigger", "field"), [row[1:] for row in BAD_PARTS], ids=[row[0] for row in BAD_PARTS])
async def test_patterns_that_make_no_sense_are_refused_at_their_place(
    client: Client, world: World, trigger: dict[str, Any], field: str
) -> None:
    await client.put("/v1/calendars/business-days", json={"weekdays": ["mon-fri"]})
    await create(client, name="known")
    before = world.everything()
    for method, path, body in [
        ("POST", "/v1/schedules", {**TICK, "trigger": trigger}),
        ("PUT", "/v1/schedules/known", {**TICK, "name": "known", "trigger": trigger}),
        ("POST", "/v1/schedules/preview", {"trigger": trigger}),
    ]:
        problem = check_problem(await client.request(method, path, json=body), 422, f"trigger.{field}")
        assert problem["errors"][0]["expected"]
    assert world.everything() == before


PARIS = {"type": "cron", "expression": "30 2 * * *", "timezone": "Europe/Paris"}


def nominal(fires: list[dict[str, Any]]) -> list[str]:
    return [fire["nominal_at"] for fire in fires]


def seconds(*after_now: int) -> list[str]:
    return [format_instant(NOW + second * 1_000) for second in after_now]


async def test_an_expression_that_may_not_be_meant_is_warned_of_before_and_after_it_is_stored(
    client: Client,
) -> None:
    trigger = {"type": "cron", "expression": "*/15 * * * * *"}
    [warning] = (await post(client, "/v1/schedules/preview", {"trigger": trigger}))["warnings"]
    assert "fires each second of every 15th minute" in warning
    assert (await create(client, trigger=trigger))["warnings"] == [warning]
    assert (await get(client, "/v1/schedules/tick"))["warnings"] == [warning]
    edit = {"trigger": {"expression": "* * * * * */15"}}
    assert (await post(client, "/v1/schedules/tick/preview", edit))["warnings"] == []
    answer = await client.patch("/v1/schedules/tick", json=edit)
    assert (answer.status_code, answer.json()["warnings"]) == (200, [])


async def test_local_time_and_clock_changes_are_those_of_the_zone(client: Client, world: World) -> None:
    answer = await post(client, "/v1/schedules/preview?count=2", {"trigger": PARIS})
    assert answer["timezone"] == "Europe/Paris"
    assert [fire["local"] for fire in answer["fires"]] == ["2030-01-01T02:30:00+01:00", "2030-01-02T02:30:00+01:00"]
    assert [fire["weekday"] for fire in answer["fires"]] == ["Tue", "Wed"]
    gap, fold = answer["clock_changes"][:2]
    assert (gap["at"], gap["kind"]) == ("2030-03-31T01:00:00.000Z", "gap")
    assert (gap["offset_before"], gap["offset_after"]) == ("+01:00", "+02:00")
    assert gap["explanation"]
    assert "2030-03-31T03:00:00+02:00" in [fire["local"] for fire in gap["fires"]]
    assert (fold["at"], fold["kind"]) == ("2030-10-27T01:00:00.000Z", "fold")
    assert (fold["offset_before"], fold["offset_after"]) == ("+02:00", "+01:00")
    assert "2030-10-27T02:30:00+02:00" in [fire["local"] for fire in fold["fires"]]
    assert world.everything() == World().everything()


async def preview_of(client: Client, patch: object, count: int = 3) -> dict[str, Any]:
    answer: dict[str, Any] = await post(client, f"/v1/schedules/tick/preview?count={count}", patch)
    return answer


async def test_a_preview_of_an_edit_shows_the_fires_that_it_adds_and_removes(client: Client, world: World) -> None:
    await create(client, trigger={"type": "interval", "every": "2s"})
    before = world.everything()
    answer = await preview_of(client, {"trigger": {"every": "3s"}})
    assert nominal(answer["fires"]) == seconds(3, 6, 9)
    assert nominal(answer["removed"]) == seconds(2, 4, 8)
    assert nominal(answer["added"]) == seconds(3, 9)
    assert answer["until"] == seconds(9)[0]
    assert world.everything() == before


MIDNIGHT = {"type": "cron", "expression": "0 0 * * *", "timezone": "Asia/Tokyo"}


async def test_a_preview_shows_the_payloads_of_several_jobs_by_ref(client: Client) -> None:
    jobs = [
        {"ref": "a", "definition": "log", "payload": "${local_date}", "render": True},
        {"ref": "b", "definition": "log", "payload": {"n": 1}, "depends_on": ["a"]},
    ]
    answer = await client.post("/v1/schedules", json={"name": "tick", "trigger": MIDNIGHT, "jobs": jobs})
    assert answer.status_code == 201
    [fire] = (await get(client, "/v1/schedules/tick/preview?count=1"))["fires"]
    assert fire["payload"] == {"a": "2030-01-02", "b": {"n": 1}}


async def test_large_payloads_are_shown_for_the_first_times_alone(client: Client) -> None:
    job = {"definition": "log", "payload": "x" * 200_000 + "${local_date}", "render": True}
    await create(client, job=job)
    fires = (await get(client, "/v1/schedules/tick/preview?count=1000"))["fires"]
    shown = [fire["payload"] is not None for fire in fires]
    assert 0 < sum(shown) < 50
    assert shown == sorted(shown, reverse=True)


LATER = format_instant(NOW + DAY_MS)
PATTERNS: list[dict[str, Any]] = [
    {"type": "interval", "every": "60001ms", "anchor": LATER},
    {"type": "interval", "every": "50d", "anchor": "2020-01-01T00:00:17.500Z"},
    {"type": "cron", "expression": "*/5 * * * *", "timezone": "UTC"},
    {"type": "cron", "expression": "30 2 * * 1", "timezone": "Europe/Paris"},
    {"type": "cron", "expression": "0 12 * * * 30", "timezone": "Australia/Lord_Howe"},
    {"type": "times", "at": [format_instant(NOW + day * DAY_MS + day) for day in (2, 3, 9)]},
    {"type": "once", "at": LATER},
]
ANCHORED_8H = {"type": "interval", "every": "8h", "anchor": LATER}
triggers = st.builds(
    lambda pattern, narrowing: {**pattern, **narrowing},
    st.sampled_from([*PATTERNS, *({"type": "any", "of": [ANCHORED_8H, other]} for other in PATTERNS[2:])]),
    st.fixed_dictionaries(
        {},
        optional={
            "jitter": st.sampled_from(["0s", "59999ms"]),
            "start_at": st.just(format_instant(NOW - DAY_MS)),
            "end_at": st.just("2099-12-31T23:59:59.999Z"),
            "max_fires": st.sampled_from([1, 2**53 - 1]),
            "exclude": st.just([{"from": format_instant(NOW + 1), "to": format_instant(NOW + 2)}]),
        },
    ),
)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
payloads = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts.filter(lambda key: not key.startswith("$")), inner, max_size=3)
    ),
    max_leaves=6,
)
amounts = st.dictionaries(st.sampled_from(["cpu", "gpu", "a-b_1"]), st.integers(1, 10**9))
bodies = st.fixed_dictionaries(
    {
        "trigger": triggers,
        "job": st.fixed_dictionaries(
            {"definition": st.just("log"), "payload": payloads},
            optional={
                "target": st.just("a b"),
                "priority": st.integers(0, 10),
                "mode": st.just("on_demand"),
                "tenant": st.sampled_from(["default", "acme"]),
                "fairness_key": st.sampled_from([None, "", "default", "acme"]),
                "resources": st.none() | amounts,
            },
        ),
    },
    optional={
        "misfire": st.fixed_dictionaries(
            {}, optional={"catch_up": st.sampled_from(["none", "all"]), "limit": st.integers(1, 1_000)}
        ),
        "overlap": st.sampled_from(["allow", "skip", "buffer_one", "cancel_running"]),
        "pause_after_failures": st.none() | st.integers(1, 1_000),
        "labels": st.dictionaries(st.sampled_from(["team", "a.b", "x-1"]), st.sampled_from(["", "a", "zoë"])),
    },
)


@settings(
    max_examples=examples(80),
    deadline=None,
    # Each example makes and deletes its own schedule.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(body=bodies, name=st.sampled_from(["one", "two"]))
async def test_a_response_sent_back_as_a_request_changes_nothing(
    client: Client, world: World, body: dict[str, Any], name: str
) -> None:
    path = f"/v1/schedules/{name}"
    await create(client, **{**body, "name": name})
    shown, stored = await get(client, path), world.schedule(name)
    sent = {field: shown[field] for field in REQUESTED}
    for method, again in [
        ("PUT", sent),
        ("PUT", {**body, "name": name}),
        ("PATCH", {}),
        ("PATCH", without_nulls(sent)),
    ]:
        answer = await client.request(method, path, json=again)
        assert answer.status_code == 200, answer.text
        assert answer.json() == shown
        assert repr(world.schedule(name)) == repr(stored)
    assert (await client.delete(path)).status_code == 204
    assert world.database.find(Collection.SCHEDULES, name) is None
    # Created again from its response it is the same schedule.
    assert await create(client, **sent, name=name) == shown
    await client.delete(path)


def without_nulls(value: Any) -> Any:
    """In a merge patch a null is no value."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value
