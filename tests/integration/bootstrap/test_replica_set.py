"""A replica set is made, found, mended and grown on real servers that authenticate each other."""

import asyncio

import pytest

from hascheduler.errors import Conflict, InvalidInput, StoreUnavailable
from tests.integration.bootstrap.members import (
    Members,
    all_in_step,
    as_admin,
    bootstrapped,
    configuration,
)


async def _started(members: Members, count: int) -> list[str]:
    """Sorted, as the plan has them."""
    return sorted(await asyncio.gather(*(members.start(members.address()) for _ in range(count))))


async def test_several_at_once_make_one_set_and_one_user_each(members: Members) -> None:
    hosts = await _started(members, 3)
    await asyncio.gather(*(bootstrapped(*hosts) for _ in range(4)))
    found = await configuration(*hosts)
    assert sorted(member["host"] for member in found["members"]) == sorted(hosts)
    assert sorted(member["_id"] for member in found["members"]) == [0, 1, 2]
    async with as_admin(*hosts) as client:
        assert sorted([user["_id"] async for user in client.admin.system.users.find()]) == [
            "admin.admin", "hascheduler.processor", "hascheduler.scheduler",
        ]  # fmt: skip


async def test_it_waits_for_a_member_that_comes_late(members: Members) -> None:
    hosts = sorted(members.address() for _ in range(3))
    for host in hosts[1:]:
        await members.start(host)
    at_work = asyncio.create_task(bootstrapped(*hosts))
    # Two of three could elect a primary, and must not: the third may hold the data of a set that exists.
    with pytest.raises(StoreUnavailable, match=f"no answer yet from {hosts[0]}"):
        await bootstrapped(*hosts, timeout_s=3)
    await members.start(hosts[0])
    await at_work
    assert len((await configuration(*hosts))["members"]) == 3


async def test_a_member_whose_disk_was_replaced_joins_again_by_itself(members: Members) -> None:
    hosts = await _started(members, 3)
    await bootstrapped(*hosts)
    await all_in_step(*hosts)
    before = await configuration(*hosts)
    # The first in order is the one that a set would be initiated on.
    await members.lose_disk(hosts[0])
    await members.start(hosts[0])
    await bootstrapped(*hosts)
    await all_in_step(*hosts)
    after = await configuration(*hosts)
    assert after["settings"]["replicaSetId"] == before["settings"]["replicaSetId"]
    assert after["members"] == before["members"]


async def test_a_set_of_one_grows_to_three(members: Members) -> None:
    [first] = await _started(members, 1)
    await bootstrapped(first)
    hosts = sorted([first, *await _started(members, 2)])
    # Twice at once, as two that add a member want the same place in the configuration.
    await asyncio.gather(bootstrapped(*hosts), bootstrapped(*hosts))
    found = (await configuration(*hosts))["members"]
    assert sorted(member["host"] for member in found) == hosts
    assert [member["_id"] for member in found] == [0, 1, 2]
    await all_in_step(*hosts)


@pytest.mark.parametrize(("started_for", "said"), [("rs1", "was started for rs1"), (None, "for no replica set")])
async def test_a_server_of_another_set_is_refused(members: Members, started_for: str | None, said: str) -> None:
    address = await members.start(members.address(), replica_set=started_for)
    with pytest.raises(InvalidInput, match=said):
        await bootstrapped(address)


async def test_two_sets_of_one_name_are_never_made_one(members: Members) -> None:
    hosts = await _started(members, 2)
    for host in hosts:
        await bootstrapped(host)
    with pytest.raises(Conflict, match="two sets of the same name"):
        await bootstrapped(*hosts)
