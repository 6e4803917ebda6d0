"""Tokens at two real replicas, and the OpenAPI document against the values of a real database."""

import asyncio
from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.core.result import Ok

from tests.system.processes import Processes, eventually
from tests.unit.api.promises import HEADERS, PROMISES, SECRET, STREAMS, aimed

ADMIN = "an-admin-token-of-the-settings"
GUARDED = {"HASCHEDULER_AUTH": "tokens", "HASCHEDULER_ADMIN_TOKEN": ADMIN}


def showing(url: str, secret: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {secret}"})


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
