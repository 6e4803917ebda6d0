"""Tokens in the change stream: every replica learns of new tokens and of revoked ones."""

from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.token import digest_of, session_id
from tests.contract.backends import Backend, on
from tests.contract.following import follow_into, opened, read_snapshot
from tests.contract.writing import mark
from tests.factories import NOW, make_token

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


async def test_a_mirror_learns_of_new_sessions_and_of_those_that_ended_with_their_parent(backend: Backend) -> None:
    session = make_token(session_id("parent", "1"), expires_at_ms=NOW + 1, session_of=digest_of("parent"))
    await backend.tokens.create(make_token("parent"))
    mirror = Mirror()
    async with opened(backend.source) as stream:
        mirror.fold(await read_snapshot(stream))
        await backend.tokens.begin_session(session, 1, NOW)
        await mark(backend)
        await follow_into(mirror, backend.source, stream, "the end")
        assert mirror.nouns(Collection.TOKENS)[session.digest] == session
        await backend.tokens.revoke("parent", None)
        await mark(backend, "the very end")
        await follow_into(mirror, backend.source, stream, "the very end")
    assert mirror.nouns(Collection.TOKENS) == {}
