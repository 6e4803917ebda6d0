"""`CapStore` and `ShareStore`, and the release of a share by the leader: what several shards have of a cap."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import ReleaseShare
from hascheduler.model.collection import Collection
from hascheduler.model.documents.share import encode_share, encode_shared_cap
from hascheduler.model.share import Grant, Share, SharedCap
from tests.contract.backends import Backend, on
from tests.contract.claim_checks import DONE, LOST, applied

pytestmark = on("memory", "mongomock", "pymongo", "motor")

KEY = "definition/$log"
CAP = SharedCap(KEY, 4, 9, (Grant(5, 3, 4), Grant(4, 4, 1)))
SHARE = Share(KEY, 4, 3, lowered=True)


async def share(backend: Backend) -> Any:
    return await backend.behind.find(Collection.SHARES, KEY)


async def test_shares_are_read_back_without_those_that_were_broken_by_hand(backend: Backend) -> None:
    assert await backend.shares.all() == {}
    await backend.shares.put(SHARE)
    await backend.behind.insert(Collection.SHARES, {**encode_share(SHARE), "_id": "all", "limit": -1})
    assert await backend.shares.all() == {KEY: SHARE}


async def test_caps_are_read_back(backend: Backend) -> None:
    assert (await backend.caps.all()).caps == []
    other = SharedCap.even("tier/3", 3, 2)
    for cap in (CAP, other):
        assert await backend.caps.create(cap)
    assert sorted((await backend.caps.all()).caps, key=lambda cap: cap.key) == [CAP, other]


async def test_of_caps_that_are_created_at_once_one_stays(backend: Backend) -> None:
    caps = [SharedCap.even(KEY, cap, 2) for cap in (2, 3, 4)]
    made = await asyncio.gather(*map(backend.caps.create, caps))
    assert sorted(made) == [False, False, True]
    assert (await backend.caps.all()).caps == [caps[made.index(True)]]


async def test_a_cap_changes_by_compare_and_set_on_its_revision(backend: Backend) -> None:
    await backend.caps.create(CAP)
    later = [replace(CAP, rev=5, cap=cap) for cap in (10, 11)]
    done = await asyncio.gather(*(backend.caps.replace(4, cap) for cap in later))
    assert sorted(done) == [False, True]
    assert (await backend.caps.all()).caps == [later[done.index(True)]]
    assert not await backend.caps.replace(4, replace(CAP, rev=6))
    assert not await backend.caps.replace(4, replace(CAP, key="all")), "there is none"


async def test_a_cap_that_was_broken_by_hand_is_named_and_the_others_are_read(backend: Backend) -> None:
    await backend.caps.create(CAP)
    broken = {**encode_shared_cap(CAP), "_id": "all", "grants": [[1, 2, 1]]}
    await backend.behind.insert(Collection.CAPS, broken)
    stored = await backend.caps.all()
    assert stored.caps == [CAP]
    assert stored.unreadable == {"all": "grants.0.target: 2 of 1; expected 0 to what is granted"}
    assert not await backend.caps.create(replace(CAP, key="all"))


async def test_a_share_is_put_in_the_place_of_an_earlier_one_alone(backend: Backend) -> None:
    assert await backend.shares.put(SHARE)
    assert await share(backend) == encode_share(SHARE)
    assert not await backend.shares.put(replace(SHARE, limit=9))
    assert not await backend.shares.put(replace(SHARE, rev=3, limit=9))
    assert await share(backend) == encode_share(SHARE)
    later = replace(SHARE, rev=9, limit=1)
    assert await backend.shares.put(later)
    assert await share(backend) == encode_share(later)


@pytest.mark.parametrize("rev", ["7", None])
async def test_a_share_without_a_revision_is_mended(backend: Backend, rev: Any) -> None:
    await backend.behind.insert(Collection.SHARES, {**encode_share(SHARE), "rev": rev})
    assert await backend.shares.put(SHARE)
    assert await share(backend) == encode_share(SHARE)


async def test_of_shares_that_are_put_at_once_the_latest_stays(backend: Backend) -> None:
    await asyncio.gather(*(backend.shares.put(replace(SHARE, rev=rev)) for rev in (7, 9, 8)))
    assert (await share(backend))["rev"] == 9


async def test_a_release_names_the_revision_that_it_is_of(backend: Backend) -> None:
    await backend.shares.put(SHARE)
    for _ in range(2):
        assert await applied(backend.claims, ReleaseShare(KEY, 4)) == [DONE]
        assert await share(backend) == encode_share(replace(SHARE, released=4))
    assert await applied(backend.claims, ReleaseShare(KEY, 3), ReleaseShare("all", 4)) == [LOST, LOST]
    await backend.shares.put(replace(SHARE, rev=5, limit=1))
    assert await applied(backend.claims, ReleaseShare(KEY, 4)) == [LOST]
    assert await share(backend) == encode_share(replace(SHARE, rev=5, limit=1))
