"""Tokens in the change stream: every replica learns of new tokens and of revoked ones."""

from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.token import digest_of
from tests.contract.backends import Backend, on
from tests.contract.following import follow_into, opened, read_snapshot
from tests.contract.writing import mark
from tests.factories import make_token

pytestmark = on("memory", "pymongo", "motor")


async def test_a_mirror_learns_of_new_tokens_and_of_revoked_ones(backend: Backend) -> None:
    await backend.tokens.create(make_token("before"))
    mirror = Mirror()
    async with opened(backend.source) as stream:
        mirror.fold(await read_snapshot(stream))
        assert set(mirror.nouns(Collection.TOKENS)) == {digest_of("before")}
        await backend.tokens.create(make_token("after"))
        await backend.tokens.revoke("before", None)
        await mark(backend)
        await follow_into(mirror, backend.source, stream, "the end")
    assert mirror.nouns(Collection.TOKENS) == {digest_of("after"): make_token("after")}
