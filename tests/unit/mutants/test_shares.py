"""The tests of shares go red where shares are ignored: each of these bugs lets one party take a pool."""

from collections.abc import Callable
from itertools import product

import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.http import receive_rate, server
from hascheduler.api.http.connection_table import ConnectionTable
from hascheduler.api.http.shares import TIMES_FREE, PartyKind, Pool, PoolRequest, token_party
from hascheduler.api.middleware import pools
from hascheduler.api.routing import route_rules
from tests.tiers import spread
from tests.unit.api.conftest import app, world
from tests.unit.api.doubles import World
from tests.unit.security import test_shares_of_connections, test_shares_of_requests, test_shares_of_waits
from tests.unit.security.crowding import LIMIT_S

__all__ = ["app", "world"]
Plant = Callable[[pytest.MonkeyPatch], None]


def _shares_that_nobody_asks_for(patch: pytest.MonkeyPatch) -> None:
    for kind in PartyKind:
        patch.setitem(TIMES_FREE, kind, 10**9)


def _requests_that_are_all_of_one_party(patch: pytest.MonkeyPatch) -> None:
    everybody = PoolRequest((token_party("everybody"),))
    patch.setattr(pools, "pool_request_of", lambda scope: everybody)


def _slots_that_are_never_given_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pool, "_take_back", lambda pool, parties, units: None)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive_rate, "GRACE_S", 10 * LIMIT_S)
    monkeypatch.setattr(route_rules, "_BODY_PATIENCE_S", 10 * LIMIT_S)


@pytest.mark.parametrize(
    ("judge", "plant"),
    spread(
        product(
            (
                test_shares_of_requests.test_a_submitter_whose_bodies_drip_keeps_no_one_else_out,
                test_shares_of_waits.test_a_submitter_who_waits_for_all_it_can_keeps_no_one_else_out,
            ),
            (_shares_that_nobody_asks_for, _requests_that_are_all_of_one_party, _slots_that_are_never_given_back),
        ),
        check=1,
    ),
)
async def test_a_planted_bug_is_noticed(
    judge: Callable[..., object], plant: Plant, app: Edge, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        await judge(app, world)  # type: ignore[misc]  # a test of this room's neighbour


async def test_idle_connections_that_give_no_way_are_noticed(
    app: Edge, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConnectionTable, "set_idle", lambda here, one: None)
    monkeypatch.setattr(server, "CONNECTIONS_MAX", test_shares_of_connections.MAX)
    monkeypatch.setattr(server, "CONNECTIONS_RESERVE", test_shares_of_connections.RESERVE)
    with pytest.raises((AssertionError, ConnectionError, EOFError)):
        await test_shares_of_connections.test_an_address_whose_connections_idle_keeps_no_one_else_out(app, world)
