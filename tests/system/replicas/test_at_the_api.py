"""Tokens, rates and caps at real replicas, and the OpenAPI document against the values of a real database."""

import asyncio
from collections import Counter
from typing import Any

import httpx2
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.core.result import Ok

from hascheduler.embedded.children import Daemon
from tests.system.processes import Processes, eventually
from tests.unit.api.promises import HEADERS, PROMISES, SECRET, STREAMS, aimed

ADMIN = "an-admin-token-of-the-settings"
GUARDED = {"HASCHEDULER_AUTH": "tokens", "HASCHEDULER_ADMIN_TOKEN": ADMIN}


def showing(url: str, secret: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {secret}"})


async def test_a_token_is_known_and_forgotten_at_every_replica_and_the_log_tells_of_it(processes: Processes) -> None:
    one, other = await processes.together("one", "other", **GUARDED)
    async with showing(one.url, ADMIN) as boss:
        answer = await boss.post("/v1/tokens", json={"name": "ci", "role": "operator", "tenant": "acme"})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()

        async with showing(other.url, made["token"]) as ci:

            async def status_is(status: int) -> bool:
                return (await ci.get("/v1/whoami")).status_code == status

            await eventually(lambda: status_is(200), "the other replica knows the token")
            assert (await ci.put("/v1/lanes/slow", json={})).status_code == 403
            assert (await boss.delete(f"/v1/tokens/{made['id']}")).status_code == 204
            await eventually(lambda: status_is(401), "the other replica has forgotten the token")

        async def told() -> list[tuple[str, str, int]] | None:
            items = (await boss.get("/v1/audit")).json()["items"][::-1]
            found = [(item["who"], f"{item['method']} {item['route']}", item["status"]) for item in items]
            return found if len(found) == 3 else None

        assert await eventually(told, "the audit log is complete") == [
            ("HASCHEDULER_ADMIN_TOKEN", "POST /v1/tokens", 201),
            ("ci", "PUT /v1/lanes/{name}", 403),
            ("HASCHEDULER_ADMIN_TOKEN", "DELETE /v1/tokens/{id}", 204),
        ]
    for process in (one, other):
        assert await process.terminate() == 0
        output = process.output.read_text() + process.output.with_suffix(".err").read_text()
        assert made["token"] not in output
        assert ADMIN not in output


async def test_what_was_changed_last_is_in_the_log_though_the_replica_ends(processes: Processes) -> None:
    one = await processes.replica("one")
    answer = await processes.http.put(f"{one.url}/v1/lanes/slow", json={})
    assert answer.status_code == 201
    assert await one.terminate() == 0
    record = await processes.database.audit.find_one({"path": "/v1/lanes/slow"})
    assert record is not None
    assert (record["status"], record["request_id"]) == (201, answer.headers["x-request-id"])


HOUR_MS = 3_600_000
JOB = {"definition": "log", "tenant": "acme"}


async def tenant(processes: Processes, **limits: Any) -> None:
    """Before any replica starts, so that each knows it when it is ready."""
    await processes.database["tenants"].insert_one({"_id": "acme", "rev": 1, **limits})


async def submits(processes: Processes, count: int, *at: Daemon) -> list[httpx2.Response]:
    """At once, at those replicas in turn."""
    urls = [replica.url for replica in at]
    asked = [processes.http.post(f"{urls[number % len(urls)]}/v1/jobs", json=JOB) for number in range(count)]
    return await asyncio.gather(*asked)


def statuses(answers: list[httpx2.Response]) -> dict[int, int]:
    return dict(Counter(answer.status_code for answer in answers))


async def pending(processes: Processes) -> int:
    return await processes.database["jobs"].count_documents({"state": "pending"})


async def test_two_replicas_let_in_exactly_what_the_rate_allows(processes: Processes) -> None:
    await tenant(processes, submit_rate={"count": 20, "per_ms": HOUR_MS})
    one, other = await processes.together("one", "other")
    answers = await submits(processes, 60, one, other)
    assert statuses(answers) == {201: 20, 429: 40}
    assert await pending(processes) == 20
    retry_after_s = {int(answer.headers["retry-after"]) for answer in answers if answer.status_code == 429}
    # A token comes every three minutes.
    assert all(60 < each <= 180 for each in retry_after_s)


async def test_a_flood_at_one_replica_does_not_run_past_the_cap(processes: Processes) -> None:
    await tenant(processes, max_pending=50)
    replica = await processes.replica("one")
    answers = await submits(processes, 200, replica)
    assert statuses(answers) == {201: 50, 429: 150}
    assert await pending(processes) == 50
    assert all(1 <= int(answer.headers["retry-after"]) <= 60 for answer in answers if answer.status_code == 429)
    # When there is room again, it is let in again; the rest of the shard never had to wait.
    other = await processes.http.post(f"{replica.url}/v1/jobs", json={"definition": "log", "tenant": "other"})
    assert other.status_code == 201
    await processes.post("/v1/jobs:cancel", {"filter": {"tenant": "acme"}})

    async def let_in() -> bool:
        return (await processes.http.post(f"{replica.url}/v1/jobs", json=JOB)).status_code == 201

    await eventually(let_in, "there is room again")


_EXAMPLES_MAX = 10


async def test_a_real_replica_keeps_what_the_document_promises(processes: Processes) -> None:
    replica = await processes.replica("one", HASCHEDULER_AUTH="tokens", HASCHEDULER_ADMIN_TOKEN=SECRET)
    await asyncio.to_thread(_hold_to_it, f"{replica.url}/openapi.json")


def _hold_to_it(url: str) -> None:
    schema = schemathesis.openapi.from_url(url)
    found = list(schema.exclude(operation_id=STREAMS).get_all_operations())
    operations = [each.ok() for each in found if isinstance(each, Ok)]
    assert len(operations) == len(found) > 40
    for operation in operations:

        @settings(
            max_examples=_EXAMPLES_MAX,
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def holds(case: Case[Any]) -> None:
            aimed(case).call_and_validate(headers=HEADERS, checks=PROMISES)

        holds()
