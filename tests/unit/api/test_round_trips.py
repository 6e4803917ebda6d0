"""Responses sent back as requests change nothing."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import format_instant
from tests.tiers import examples
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import REQUESTED, Client, create, get

DAY_MS = 86_400_000
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
EVERY_8H = {"type": "interval", "every": "8h", "anchor": LATER}
triggers = st.builds(
    lambda pattern, narrowing: {**pattern, **narrowing},
    st.sampled_from([*PATTERNS, *({"type": "any", "of": [EVERY_8H, other]} for other in PATTERNS[2:])]),
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
