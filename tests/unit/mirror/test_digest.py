"""The digest is the sum of all members' hashes, whenever these are made."""

import random
from hashlib import blake2b

from hascheduler.mirror.sums import UNHASHED_MAX, Digest


def _sum(members: dict[str, int]) -> str:
    hashes = (blake2b(f"{id}/{rev}".encode(), digest_size=8).digest() for id, rev in members.items())
    return f"{sum(int.from_bytes(each, 'big') for each in hashes) % 2**64:016x}"


def test_it_is_that_of_its_members_however_they_came_to_be() -> None:
    chance, digest, members = random.Random(7), Digest(), dict[str, int]()
    for _ in range(3 * UNHASHED_MAX):
        id = f"jobs/{chance.randrange(2 * UNHASHED_MAX)}"
        before = members.get(id)
        after = None if before is not None and chance.random() < 0.2 else (before or 0) + 1
        digest.replace(id, before, after)
        members.pop(id, None)
        if after is not None:
            members[id] = after
        if chance.random() < 0.001:
            assert str(digest) == _sum(members)
    assert str(digest) == _sum(members)


def test_what_came_and_went_leaves_no_trace() -> None:
    digest = Digest()
    for before, after in ((None, 1), (1, 2), (2, 5), (5, None)):
        digest.replace("jobs/a", before, after)
    assert str(digest) == str(Digest()) == "0" * 16
