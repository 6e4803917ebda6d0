"""The audit log: one record for each request that could change something, whatever its end, and no secret in any."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import pytest
import structlog

from hascheduler.api.middleware import audit
from hascheduler.api.middleware.audit import AuditWriter
from hascheduler.model.collection import Collection
from hascheduler.schema.audit import AuditRecord
from hascheduler.testing.memory.access import MemoryAuditStore
from hascheduler.testing.memory.database import MemoryConnection
from tests.unit.api.doubles import NOW, RETENTION_MS, StandingClock, World
from tests.unit.api.requests import NOW_TEXT, TICK, Client, check_problem, create
from tests.unit.api.tokens import ADMIN_TOKEN, Guarded


async def records(client: Client, world: World, query: str = "") -> list[dict[str, Any]]:
    """What the log holds, the oldest first."""
    await world.audit_writer.flush()
    answer = await client.get(f"/v1/audit{query}")
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items[::-1]


async def test_a_change_leaves_a_record_of_who_did_what_from_where(guarded: Guarded, world: World) -> None:
    async with await guarded.client("operator", "acme") as ci, guarded.showing(ADMIN_TOKEN) as boss:
        answer = await ci.post("/v1/schedules", json=TICK)
        [record] = await records(boss, world)
    assert record == {
        "id": record["id"], "at": NOW_TEXT, "who": "operator-1", "token": "token-1", "role": "operator",
        "tenant": "acme", "address": "127.0.0.1", "method": "POST", "path": "/v1/schedules",
        "route": "/v1/schedules", "target": "tick", "status": 201, "request": answer.headers["x-request-id"],
        "because": None, "left_out": 0,
    }  # fmt: skip


async def test_reading_leaves_none_and_neither_does_what_changes_nothing(client: Client, world: World) -> None:
    await create(client)
    for method, path, body in (
        ("GET", "/v1/schedules/tick", None),
        ("GET", "/v1/jobs", None),
        ("POST", "/v1/schedules/preview", {"trigger": TICK["trigger"]}),
        ("POST", "/v1/schedules/tick/preview", {"overlap": "skip"}),
        (
            "POST",
            "/v1/schedules/tick/backfill",
            {"from": "2029-12-31T00:00:00Z", "to": "2029-12-31T00:00:01Z", "dry_run": True},
        ),
    ):
        assert (await client.request(method, path, json=body)).status_code == 200
    assert [record["path"] for record in await records(client, world)] == ["/v1/schedules"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "target", "route"),
    [
        ("PUT", "/v1/lanes/slow", {}, 201, "slow", "/v1/lanes/{name}"),
        ("POST", "/v1/cluster/pause", {"because": "it burns"}, 200, "everything", "/v1/cluster/pause"),
        ("PATCH", "/v1/lanes/none", {}, 404, "none", "/v1/lanes/{name}"),
        ("POST", "/v1/schedules", {"name": "a"}, 422, None, "/v1/schedules"),
        ("POST", "/v1/nothing/here", {}, 404, None, None),
        ("POST", "/v1/lanes", {}, 405, None, "/v1/lanes"),
        ("POST", "/v1/jobs/{id}/cancel", None, 404, "{id}", "/v1/jobs/{id}/cancel"),
        ("POST", "/v1/jobs/fire%3Atick%3A1/cancel", None, 404, "fire:tick:1", "/v1/jobs/{id}/cancel"),
    ],
)
async def test_what_was_refused_leaves_one_too(
    client: Client, world: World, *, method: str, path: str, body: object, status: int,
    target: str | None, route: str | None,
) -> None:  # fmt: skip
    answer = await client.request(method, path, json=body)
    assert answer.status_code == status
    [record] = await records(client, world)
    assert (record["method"], record["status"], record["target"], record["route"]) == (
        method, status, target, route,
    )  # fmt: skip
    assert (record["who"], record["token"], record["role"], record["tenant"]) == ("anonymous", None, "admin", "*")
    assert record["request"] == answer.headers["x-request-id"]


async def test_a_forbidden_caller_is_recorded_and_an_unidentified_one_is_not(guarded: Guarded, world: World) -> None:
    secret = await guarded.token("viewer", "acme")
    async with guarded.showing("hsk_" + "x" * 43) as stranger, guarded.showing(secret) as viewer:
        check_problem(await stranger.delete("/v1/lanes/slow"), 401)
        check_problem(await viewer.delete("/v1/lanes/slow"), 403)
        async with guarded.showing(ADMIN_TOKEN) as boss:
            [forbidden] = await records(boss, world)
    assert [forbidden[field] for field in ("who", "token", "role", "tenant", "status")] == [
        "viewer-1", "token-1", "viewer", "acme", 403,
    ]  # fmt: skip


@pytest.mark.parametrize("given", ["abc-1", "a" * 64, "a b", "a" * 65, "<script>"])
async def test_a_request_may_bring_an_id_that_can_stand_in_a_log(client: Client, given: str) -> None:
    told = (await client.get("/v1/lanes", headers=[(b"X-Request-Id", given.encode())])).headers["x-request-id"]
    assert told == given if given in ("abc-1", "a" * 64) else len(told) == 16


async def test_a_path_that_is_hostile_is_shortened_and_printable(client: Client, world: World) -> None:
    await client.post("/v1/jobs/%00%0a%1b" + "x" * 2_000 + "/cancel")
    [record] = await records(client, world)
    assert len(record["path"]) == 513
    assert record["path"].isprintable()
    assert record["target"].isprintable()


async def test_an_admin_of_one_tenant_reads_of_that_one(guarded: Guarded, world: World) -> None:
    for tenant in ("acme", "other", "*"):
        async with await guarded.client("operator", tenant) as client:
            await client.post("/v1/schedules/none/pause")
    async with await guarded.client("admin", "acme") as client:
        assert [record["tenant"] for record in await records(client, world)] == ["acme"]
        check_problem(await client.get("/v1/audit?tenant=other"), 403)


def record(number: int) -> AuditRecord:
    return AuditRecord(
        id=f"{number:04d}", at_ms=NOW, who="ci", address="", method="POST", path="/v1/x", status=200, request_id="r"
    )


def stored_ids(connection: MemoryConnection) -> list[str]:
    return sorted(str(document["_id"]) for document in connection.database.documents(Collection.AUDIT))


class HastyStore(MemoryAuditStore):
    """Tells of each group that was stored."""

    def __init__(self, connection: MemoryConnection) -> None:
        super().__init__(connection, RETENTION_MS)
        self.groups: list[int] = []
        self.stored = asyncio.Event()

    async def append(self, records: Sequence[AuditRecord]) -> None:
        await super().append(records)
        self.groups.append(len(records))
        self.stored.set()


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_what_waits_is_written_when_the_process_ends(world: World) -> None:
    writer = AuditWriter(HastyStore(world.connection), StandingClock())
    writing = asyncio.create_task(writer.run())
    await asyncio.sleep(0)
    writer.add(record(1))
    await ended(writing)
    assert stored_ids(world.connection) == ["0001"]


async def test_an_outage_loses_nothing_and_doubles_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_RETRY_AFTER_S", 0)
    monkeypatch.setattr(audit, "_GROUP_EVERY_S", 0)
    world.connection.fail_next(1, of="audit.append")
    world.connection.fail_next(1, of="audit.append", carried_out=True)
    store = HastyStore(world.connection)
    writer = AuditWriter(store, StandingClock())
    writing = asyncio.create_task(writer.run())
    writer.add(record(1))
    writer.add(record(2))
    async with asyncio.timeout(10):
        await store.stored.wait()
    await ended(writing)
    assert stored_ids(world.connection) == ["0001", "0002"]
    assert writer.dropped == 0


async def test_a_full_queue_drops_records_logs_that_and_never_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "QUEUE_MAX", 100)
    writer = AuditWriter(HastyStore(world.connection), StandingClock())
    with structlog.testing.capture_logs() as lines:
        for number in range(audit.QUEUE_MAX + 5):
            writer.add(record(number).model_copy(update={"who": f"ci-{number % 10}"}))
    assert writer.dropped == 5
    assert [line["dropped"] for line in lines if line["event"] == "audit_records_dropped"] == [1, 2, 4]
    await writer.flush()
    assert stored_ids(world.connection)[-1] == f"{audit.QUEUE_MAX - 1:04d}"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/cluster/pause", 200), ("/v1/processors/p-1/drain", 200), ("/v1/processors/nobody/drain", 404),
        ("/v1/schedules/tick/pause", 200), ("/v1/schedules/nothing/pause", 404),
    ],
)  # fmt: skip
async def test_the_reason_of_a_pause_is_recorded(client: Client, world: World, path: str, status: int) -> None:
    await create(client)
    assert (await client.post(path, json={"because": "it burns"})).status_code == status
    await client.post(path.replace("pause", "resume").replace("drain", "undrain"))
    assert [record["because"] for record in await records(client, world)] == [None, "it burns", None]
