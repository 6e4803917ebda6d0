"""`AuditStore`: each record once, the newest first, by caller, tenant, path and time."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.ports import AuditFilter
from hascheduler.schema.audit import AuditRecord
from tests.contract.backends import RETENTION_MS, Backend, on

pytestmark = on("memory", "mongomock", "pymongo", "motor")

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


async def test_a_record_expires_after_the_retention_time(backend: Backend) -> None:
    await backend.audit.append([record(1)])
    stored = await backend.behind.find(Collection.AUDIT, record(1).id)
    assert stored is not None
    assert stored["expire_at"].replace(tzinfo=None) == to_datetime(T0 + 1 + RETENTION_MS).replace(tzinfo=None)


async def test_the_oldest_records_are_trimmed_where_there_are_too_many(backend: Backend) -> None:
    assert await backend.audit.trim(2) == 0
    await backend.audit.append([record(at) for at in (2, 5, 1, 4, 3)])
    assert await backend.audit.trim(5) == 0
    assert await backend.audit.trim(2) == 3
    assert await times(backend) == [5, 4]
    assert await backend.audit.trim(0) == 2
    assert await times(backend) == []


async def test_the_number_of_records_left_out_is_stored_if_there_are_any(backend: Backend) -> None:
    await backend.audit.append([record(1), record(2, left_out=7)])
    newest, oldest = await backend.audit.list(AuditFilter(), None, 10)
    assert newest["left_out"] == 7
    assert "left_out" not in oldest
