"""Tokens at real replicas on a real database: one that is made at one opens all, and one that is revoked opens none."""

from typing import Any

import httpx

from tests.system.processes import Processes, eventually

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
            body = {"name": "tick", "trigger": {"type": "interval", "every": "1h"}, "job": {"definition": "log"}}
            shown = (await ci.post("/v1/schedules", json=body)).json()
            assert shown["job"]["tenant"] == "acme"

            assert (await boss.delete(f"/v1/tokens/{made['id']}")).status_code == 204
            await eventually(lambda: status_is(401), "the other replica has forgotten the token")

        async def told() -> list[tuple[str, str, int]] | None:
            items = (await boss.get("/v1/audit")).json()["items"][::-1]
            found = [(item["who"], f"{item['method']} {item['route']}", item["status"]) for item in items]
            return found if len(found) == 4 else None

        assert await eventually(told, "the audit log is complete") == [
            ("HASCHEDULER_ADMIN_TOKEN", "POST /v1/tokens", 201),
            ("ci", "PUT /v1/lanes/{name}", 403),
            ("ci", "POST /v1/schedules", 201),
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
