"""The tests of shares go red if shares are ignored: each of these bugs lets one party take all of a limit."""

from collections.abc import Callable
from itertools import product

import pytest

from hascheduler.api import edge
from hascheduler.api.edge import Edge
from hascheduler.api.http.limits import TIMES_FREE, Slot
from hascheduler.api.routing import route_rules
from tests.tiers import spread
from tests.unit.api.conftest import app, world
from tests.unit.api.doubles import World
from tests.unit.security import crowding, test_places
from tests.unit.security.crowding import LIMIT_S

pytestmark = pytest.mark.slow

__all__ = ["app", "world"]
Plant = Callable[[pytest.MonkeyPatch], None]


def _shares_that_nobody_asks_for(patch: pytest.MonkeyPatch) -> None:
    for kind in TIMES_FREE:
        patch.setitem(TIMES_FREE, kind, 10**9)


def _requests_that_are_all_of_one_party(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(edge, "charged", lambda scope: ((("token", "everybody"),), False))


def _slots_that_are_never_given_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Slot, "release", lambda slot: None)


@pytest.mark.parametrize(
    ("row", "plant"),
    spread(
        product(
            ("bodies that drip", "waits for jobs"),
            (_shares_that_nobody_asks_for, _requests_that_are_all_of_one_party, _slots_that_are_never_given_back),
        ),
        check=1,
    ),
)
async def test_a_planted_bug_is_noticed(
    row: str, plant: Plant, app: Edge, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_rules, "_BODY_PATIENCE_S", 10 * LIMIT_S)
    monkeypatch.setattr(crowding, "LIMIT_S", 2)
    plant(monkeypatch)
    with pytest.raises((AssertionError, TimeoutError)):
        await test_places.test_who_takes_all_it_can_keeps_no_one_else_out(app, world, row)


async def test_connections_that_nobody_counts_are_noticed(
    app: Edge, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _shares_that_nobody_asks_for(monkeypatch)
    test_places.limit_connections(monkeypatch)
    with pytest.raises((AssertionError, ConnectionError, EOFError)):
        await test_places.test_an_address_whose_connections_idle_keeps_no_other_out(app, world)
