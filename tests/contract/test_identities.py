"""Which database is which shard's."""

import asyncio
from collections.abc import Sequence

import pytest

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.mongo.connection import Client, Database, open_database
from hascheduler.mongo.identities import require_known_database, require_own_database
from hascheduler.shards.gateways import peer_key

pytestmark = pytest.mark.real


@pytest.fixture
def databases(pymongo_client: Client, ready_databases: Sequence[str]) -> list[Database]:
    """The home, the database of a shard, and another one."""
    return [open_database(pymongo_client, name) for name in ready_databases[:3]]


async def test_the_home_remembers_the_first_database_of_a_shard_and_takes_no_other(
    databases: Sequence[Database],
) -> None:
    home, own, other = databases
    for new in ("a", "b", "c"):
        await require_own_database(home, own, "0001", new)
    with pytest.raises(
        InvalidInput, match=r"HASCHEDULER_SHARD_MONGODB_URIS: .* is another one than that of shard 0001"
    ):
        await require_own_database(home, other, "0001", "d")
    assert await other["identities"].count_documents({}) == 0, "nothing is written into a stranger's database"
    await require_own_database(home, other, "0002", "e")
    with pytest.raises(InvalidInput, match="of shard 0002"):
        await require_own_database(home, own, "0002", "f")


async def test_all_replicas_have_the_key_of_the_first(databases: Sequence[Database]) -> None:
    home, another, _ = databases
    assert set(await asyncio.gather(*(peer_key(home, new) for new in ("a", "a", "a")))) == {b"a"}
    assert await peer_key(home, "b") == b"a"
    assert await peer_key(another, "b") == b"b"


async def test_a_replica_that_was_killed_between_the_two_writes_is_followed_by_one_that_makes_the_second(
    databases: Sequence[Database],
) -> None:
    home, own, _ = databases
    await own["identities"].insert_one({"_id": "own", "identity": "a"})
    await require_own_database(home, own, "0001", "b")
    assert await home["identities"].find_one({"_id": "0001"}) == {"_id": "0001", "identity": "a"}


async def test_who_has_no_right_to_write_compares_and_waits_until_a_replica_has_recorded_it(
    databases: Sequence[Database],
) -> None:
    home, own, other = databases
    with pytest.raises(StoreUnavailable, match="no replica has reached the database of shard 0001 yet"):
        await require_known_database(home, own, "0001")
    await require_known_database(home, own, "0001", new=True)
    assert not any([await each["identities"].count_documents({}) for each in databases])
    await require_own_database(home, own, "0001", "a")
    await require_known_database(home, own, "0001")
    for new in (False, True):
        with pytest.raises(InvalidInput, match="is another one than that of shard 0001"):
            await require_known_database(home, other, "0001", new=new)
    assert await other["identities"].count_documents({}) == 0
