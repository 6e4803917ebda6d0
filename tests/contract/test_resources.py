"""`ResourceStore`: definitions, lanes, calendars, tenants and pauses, each a document of a name and a revision."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from hascheduler.model.policy import PRESETS
from hascheduler.ports import ResourceStore
from hascheduler.schema.calendar import Calendar, read_days
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.noun import read_document
from hascheduler.schema.pause import StandingPause
from hascheduler.schema.tenant import Tenant
from tests.contract.backends import Backend, on
from tests.contract.checks import RACERS, raced
from tests.factories import make_calendar, make_definition, make_lane, make_pause, make_tenant

pytestmark = on("memory", "mongomock", "pymongo", "motor")


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
