"""`TokenStore`: created once, listed by public id, gone when revoked."""

import pytest

from hascheduler.errors import InvariantBroken
from hascheduler.model.documents.token import decode_token
from hascheduler.model.token import digest_of
from tests.contract.backends import Backend, on
from tests.factories import make_token

pytestmark = on("memory", "mongomock", "pymongo", "motor")


async def ids(backend: Backend, tenant: str | None = None, after: str | None = None, limit: int = 10) -> list[str]:
    return [document["id"] for document in await backend.tokens.list(tenant, after, limit)]


async def test_a_created_token_is_listed_under_its_digest(backend: Backend) -> None:
    token = make_token(expires_at_ms=5)
    await backend.tokens.create(token)
    [document] = await backend.tokens.list(None, None, 10)
    assert document["_id"] == digest_of("token-1")
    assert decode_token(document["_id"], document) == token


async def test_creating_a_token_again_after_a_lost_answer_is_harmless(backend: Backend) -> None:
    await backend.tokens.create(make_token())
    await backend.tokens.create(make_token())
    assert await ids(backend) == ["token-1"]


async def test_another_token_of_that_digest_is_never_taken_for_it(backend: Backend) -> None:
    await backend.tokens.create(make_token(tenant="acme"))
    with pytest.raises(InvariantBroken):
        await backend.tokens.create(make_token(tenant="*"))
    [document] = await backend.tokens.list(None, None, 10)
    assert document["tenant"] == "acme"


async def test_tokens_are_listed_by_public_id_in_pages_and_by_tenant(backend: Backend) -> None:
    for id, tenant in (("c", "acme"), ("a", "other"), ("d", "acme"), ("b", "acme")):
        await backend.tokens.create(make_token(id, tenant=tenant))
    assert await ids(backend) == ["a", "b", "c", "d"]
    assert await ids(backend, None, "b", 1) == ["c"]
    assert await ids(backend, "acme") == ["b", "c", "d"]
    assert await ids(backend, "acme", "b", 1) == ["c"]
    assert await ids(backend, "nobody") == []


async def test_a_revoked_token_is_gone(backend: Backend) -> None:
    await backend.tokens.create(make_token("a"))
    await backend.tokens.create(make_token("b"))
    assert await backend.tokens.revoke("a", None) is True
    assert await backend.tokens.revoke("a", None) is False
    assert await ids(backend) == ["b"]


async def test_a_token_of_another_tenant_is_not_revoked(backend: Backend) -> None:
    await backend.tokens.create(make_token("a", tenant="acme"))
    assert await backend.tokens.revoke("a", "other") is False
    assert await ids(backend) == ["a"]
    assert await backend.tokens.revoke("a", "acme") is True
