"""`AccountStore`: the newest leader's checkpoint of what tenants and keys have consumed and of learned costs."""

import pytest

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from tests.contract.backends import Backend, on

pytestmark = on("memory", "pymongo", "motor")

ACCOUNTS = AccountsSnapshot(
    (("acme", "a", 2**40, 1_893_456_000_000), ("acme", "", 0, 5), ("globex", "a", 3, 6)),
    (("log", "$target", 12, 7),),
    1_893_456_000_001,
    (("acme", 2**40, 1_893_456_000_000), ("globex", 3, 6)),
)


async def test_the_accounts_saved_last_are_loaded(backend: Backend) -> None:
    assert await backend.accounts.load("default") == AccountsSnapshot()
    assert await backend.accounts.save("default", 1, ACCOUNTS)
    assert await backend.accounts.load("default") == ACCOUNTS
    assert await backend.accounts.load("other") == AccountsSnapshot()
    assert await backend.accounts.save("default", 1, AccountsSnapshot(as_of_ms=9))
    assert await backend.accounts.load("default") == AccountsSnapshot(as_of_ms=9)


async def test_a_leader_of_an_earlier_term_does_not_overwrite_those_of_a_later_one(backend: Backend) -> None:
    assert await backend.accounts.save("default", 5, ACCOUNTS)
    assert not await backend.accounts.save("default", 4, AccountsSnapshot())
    assert await backend.accounts.load("default") == ACCOUNTS
    assert await backend.accounts.save("default", 6, AccountsSnapshot())


@pytest.mark.parametrize(
    "broken",
    [
        {"accumulated": "none"},
        {"accumulated": [["a", 1]]},
        {"accumulated": [["a", "1", 2]]},
        {"by_tenant": [["acme", 1, 2]]},
        {"tenants": [["acme", "1", 2]]},
        {"learned": [["log", "t", 1.5, 2]]},
        {"learned": [None]},
        {"as_of_ms": "now"},
    ],
)
async def test_malformed_accounts_are_refused(backend: Backend, broken: dict[str, object]) -> None:
    await backend.behind.insert(Collection.ACCOUNTS, {"_id": "default", "term": 1, **broken})
    with pytest.raises(InvalidInput):
        await backend.accounts.load("default")


async def test_costs_that_an_earlier_version_stored_by_key_alone_count_for_each_tenant_that_has_the_key(
    backend: Backend,
) -> None:
    by_key = [["acme", 7_000, 50], ["default", 2_000, 60]]
    await backend.behind.insert(
        Collection.ACCOUNTS, {"_id": "default", "term": 1, "accumulated": by_key, "learned": [], "as_of_ms": 60}
    )
    assert await backend.accounts.load("default") == AccountsSnapshot(
        accumulated=(("default", "acme", 7_000, 50), ("acme", "acme", 7_000, 50), ("default", "default", 2_000, 60)),
        as_of_ms=60,
        tenants=(("acme", 7_000, 50), ("default", 2_000, 60)),
    )


async def test_an_earlier_version_reads_for_each_key_its_cost_over_all_tenants(backend: Backend) -> None:
    assert await backend.accounts.save("default", 1, ACCOUNTS)
    stored = await backend.behind.find(Collection.ACCOUNTS, "default")
    assert stored is not None
    assert stored["accumulated"] == [["a", 2**40 + 3, 1_893_456_000_000], ["", 0, 5]]
