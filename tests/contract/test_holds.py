"""`HoldStore` and the release of holds; `ResourceStore`: each noun a document of a name and a revision."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from hascheduler.dispatch.decisions import ReleaseHold
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import encode_hold
from hascheduler.model.partition import Hold
from hascheduler.model.policy import PRESETS
from hascheduler.ports import ResourceStore
from hascheduler.schema.calendar import Calendar, read_days
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.noun import read_document
from hascheduler.schema.pause import StandingPause
from hascheduler.schema.tenant import Tenant
from tests.contract.backends import Backend, on
from tests.contract.checks import DONE, LOST, RACERS, applied, raced
from tests.factories import make_calendar, make_definition, make_lane, make_pause, make_tenant

pytestmark = on("memory", "mongomock", "pymongo", "motor")

KEY = "cap/definition/$log"
HOLD = Hold(KEY, 4, is_held=True, is_silent=True)


async def stored(backend: Backend) -> Any:
    return await backend.behind.find(Collection.HOLDS, KEY)


async def test_a_hold_that_was_broken_by_hand_is_refused_alone_and_left_out_of_many(backend: Backend) -> None:
    await backend.holds.put(HOLD)
    await backend.behind.insert(Collection.HOLDS, {**encode_hold(HOLD), "_id": "cap/all", "held": 1})
    assert await backend.holds.all() == {KEY: HOLD}
    with pytest.raises(InvalidInput):
        await backend.holds.get("cap/all")


async def test_a_hold_is_put_in_the_place_of_an_earlier_one_alone(backend: Backend) -> None:
    assert await backend.holds.put(HOLD)
    assert await stored(backend) == encode_hold(HOLD)
    assert not await backend.holds.put(replace(HOLD, is_held=False))
    assert not await backend.holds.put(replace(HOLD, rev=3, is_held=False))
    assert await stored(backend) == encode_hold(HOLD)
    later = replace(HOLD, rev=9, is_held=False)
    assert await backend.holds.put(later)
    assert await stored(backend) == encode_hold(later)


async def test_a_release_names_the_revision_that_it_is_of(backend: Backend) -> None:
    await backend.holds.put(HOLD)
    for _ in range(2):
        assert await applied(backend.claims, ReleaseHold(KEY, 4)) == [DONE]
        assert await stored(backend) == encode_hold(replace(HOLD, released=4))
    assert await applied(backend.claims, ReleaseHold(KEY, 3), ReleaseHold("cap/all", 4)) == [LOST, LOST]
    await backend.holds.put(replace(HOLD, rev=5))
    assert await applied(backend.claims, ReleaseHold(KEY, 4)) == [LOST]
    assert await stored(backend) == encode_hold(replace(HOLD, rev=5))


@dataclass(frozen=True, slots=True)
class Kind:
    """``make(name, rev=…, **more)`` gives a noun, ``more`` is what one of them may say and another not."""

    store: str
    make: Callable[..., Any]
    decode: Callable[[object, Any], Any]
    one: dict[str, Any]
    other: dict[str, Any]


KINDS = {
    kind.store: kind
    for kind in (
        Kind(
            "definitions", make_definition, partial(read_document, Definition),
            {"max_concurrency": 3, "resources": (("cpu", 2),), "owner": "team-a"},
            {"tier": 4},
        ),
        Kind(
            "lanes", make_lane, partial(read_document, Lane),
            {"weight": 3, "criteria": PRESETS["fair"], "owner": "team-a"},
            {"promote_after_ms": tuple(range(1, 12))},
        ),
        Kind(
            "pauses",
            make_pause,
            partial(read_document, StandingPause),
            {"because": "it burns"},
            {"schedules_only": True},
        ),
        Kind(
            "calendars", make_calendar, partial(read_document, Calendar),
            {"weekdays": (0, 1), "exclude": read_days(["2030-05-01"]), "owner": "a"},
            {"include": read_days(["--12-25", "2030-12-27/2030-12-30"])},
        ),
        Kind("tenants", make_tenant, partial(read_document, Tenant), {"max_running": 3, "owner": "team-a"}, {}),
    )
}  # fmt: skip


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def nouns(kind: Kind, backend: Backend) -> ResourceStore[Any]:
    store: ResourceStore[Any] = getattr(backend, kind.store)
    return store


async def test_only_the_named_rev_is_replaced_or_deleted(nouns: ResourceStore[Any], kind: Kind) -> None:
    assert await nouns.get("a") is None
    assert await nouns.replace(kind.make("a"), 1) is None
    await nouns.create(kind.make("a"))
    assert await nouns.replace(kind.make("a", **kind.one), 2) is None
    document = await nouns.replace(kind.make("a", **kind.one), 1)
    assert document is not None
    assert kind.decode(document["_id"], document) == kind.make("a", rev=2, **kind.one)
    assert await nouns.get("a") == document
    assert await nouns.delete("a", 1) is False
    assert await nouns.delete("a", 2) is True


async def test_lists_are_paged_by_name(nouns: ResourceStore[Any], kind: Kind) -> None:
    for name in ("b", "é", "a", "c", "B"):
        await nouns.create(kind.make(name))
    assert [document["_id"] for document in await nouns.list(None, 3)] == ["B", "a", "b"]
    assert [document["_id"] for document in await nouns.list("b", 3)] == ["c", "é"]
    assert list(await nouns.list("é", 3)) == []


async def test_of_fifty_that_race_one_creates_and_one_replaces(nouns: ResourceStore[Any], kind: Kind) -> None:
    created = await raced(nouns.create(kind.make("a")) for _ in range(RACERS))
    assert created.count(None) == RACERS - 1
    replaced = await raced(nouns.replace(kind.make("a"), 1) for _ in range(RACERS))
    assert replaced.count(None) == RACERS - 1
