"""`TokenStore`: created once, listed by public id, gone when revoked."""

from typing import Any

import pytest

from hascheduler.errors import InvariantBroken
from hascheduler.model.token import digest_of, session_id
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AuditFilter
from hascheduler.schema.audit import AuditRecord
from hascheduler.schema.token import Token
from tests.contract.backends import Backend, on
from tests.factories import NOW, make_token

pytestmark = on("memory", "mongomock", "pymongo", "motor")


async def ids(backend: Backend, tenant: str | None = None, after: str | None = None, limit: int = 10) -> list[str]:
    return [document["id"] for document in await backend.tokens.list(tenant, after, limit)]


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


# Sessions


def session(number: int, parent: str = "token-1", **only_what_matters: object) -> Token:
    id = session_id(parent, f"{number:012x}")
    made = {"created_at_ms": NOW + number, "expires_at_ms": NOW + 1_000 + number, "session_of": digest_of(parent)}
    return make_token(id, **{**made, **only_what_matters})


async def begin(backend: Backend, *sessions: Token, living_max: int = 3, now: int = NOW) -> None:
    for one in sessions:
        await backend.tokens.begin_session(one, living_max, WallMs(now))


async def test_one_session_too_many_ends_the_oldest_of_the_same_parent(backend: Backend) -> None:
    await backend.tokens.create(make_token("token-1"))
    await begin(backend, session(0, "token-2"), session(2), session(1), session(3), session(4))
    assert await ids(backend) == [*(session(n).id for n in (2, 3, 4)), session(0, "token-2").id, "token-1"]


async def test_a_session_that_begins_deletes_those_that_have_expired(backend: Backend) -> None:
    await begin(backend, session(1), session(2), session(0, "token-2"))
    await begin(backend, session(5), now=NOW + 1_001)
    assert await ids(backend) == [session(2).id, session(5).id, session(0, "token-2").id]


async def test_sessions_of_an_earlier_secret_of_one_id_do_not_count_and_go_when_they_expire(backend: Backend) -> None:
    """The settings' token has one id, whatever its secret is."""
    before = session(1, session_of=digest_of("the secret before"))
    await begin(backend, before, session(2), session(3), session(4))
    assert await ids(backend) == [before.id, *(session(n).id for n in (2, 3, 4))]
    await begin(backend, session(5), now=NOW + 1_001)
    assert await ids(backend) == [session(n).id for n in (3, 4, 5)]


async def test_a_token_is_revoked_with_its_sessions_and_no_others(backend: Backend) -> None:
    for id in ("token-1", "token-1-a", "token-2"):
        await backend.tokens.create(make_token(id))
    await begin(backend, session(1), session(2), session(3, "token-1-a"), session(4, "token-2"))
    assert await backend.tokens.revoke("token-1", None) is True
    kept = [session(3, "token-1-a").id, session(4, "token-2").id, "token-1-a", "token-2"]
    assert await ids(backend) == sorted(kept)


async def test_a_token_of_another_tenant_keeps_its_sessions(backend: Backend) -> None:
    await backend.tokens.create(make_token("token-1", tenant="acme"))
    await begin(backend, session(1))
    assert await backend.tokens.revoke("token-1", "other") is False
    assert await ids(backend) == [session(1).id, "token-1"]
    assert await backend.tokens.revoke("token-1", "acme") is True


T0 = WallMs(1_893_456_000_000)


def record(at: int, **only_what_matters: Any) -> AuditRecord:
    plain: dict[str, Any] = {
        "id": f"{T0 + at:013d}.{at:06d}.aa", "at_ms": WallMs(T0 + at), "who": "ci", "token_id": "token-1",
        "role": "operator", "tenant": "acme", "address": "10.0.0.7", "method": "POST", "path": "/v1/jobs",
        "route": "/v1/jobs", "target": None, "status": 201, "request_id": "r",
    }  # fmt: skip
    return AuditRecord(**{**plain, **only_what_matters})


async def times(
    backend: Backend, which: AuditFilter | None = None, after: int | None = None, limit: int = 10
) -> list[int]:
    before = None if after is None else record(after).id
    documents = await backend.audit.list(which or AuditFilter(), before, limit)
    return [document["at_ms"] - T0 for document in documents]


async def test_records_are_listed_newest_first_in_pages(backend: Backend) -> None:
    await backend.audit.append([record(at) for at in (3, 1, 2)])
    await backend.audit.append([])
    assert await times(backend) == [3, 2, 1]
    assert await times(backend, limit=2) == [3, 2]
    assert await times(backend, after=2) == [1]


async def test_records_repeated_after_a_lost_answer_are_stored_once(backend: Backend) -> None:
    await backend.audit.append([record(1)])
    await backend.audit.append([record(1), record(2), record(3)])
    assert await times(backend) == [3, 2, 1]


@pytest.mark.parametrize(
    ("which", "found"),
    [
        (AuditFilter(who="ci"), [4, 3, 2, 1]),
        (AuditFilter(who="token-2"), [2]),
        (AuditFilter(who="c"), []),
        (AuditFilter(tenant="other"), [3]),
        (AuditFilter(path="/v1/jobs"), [4, 2, 1]),
        (AuditFilter(path="/v1/schedules/a.b"), [3]),
        (AuditFilter(path="v1"), []),
        (AuditFilter(since_ms=WallMs(T0 + 3)), [5, 4, 3]),
        (AuditFilter(who="ci", tenant="acme", path="/v1/jobs/", since_ms=WallMs(T0 + 1)), [4]),
    ],
)
async def test_all_conditions_of_a_filter_must_hold(backend: Backend, which: AuditFilter, found: list[int]) -> None:
    await backend.audit.append(
        [
            record(1),
            record(2, token_id="token-2"),
            record(3, tenant="other", path="/v1/schedules/a.b"),
            record(4, path="/v1/jobs/j/cancel"),
            record(5, who="anonymous", token_id=None, role=None, tenant=None, path="/v1/schedules/axb"),
        ]
    )
    assert await times(backend, which) == found


async def test_the_oldest_records_are_trimmed_where_there_are_too_many(backend: Backend) -> None:
    assert await backend.audit.trim(2) == 0
    await backend.audit.append([record(at) for at in (2, 5, 1, 4, 3)])
    assert await backend.audit.trim(5) == 0
    assert await backend.audit.trim(2) == 3
    assert await times(backend) == [5, 4]
    assert await backend.audit.trim(0) == 2
    assert await times(backend) == []
