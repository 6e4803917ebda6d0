"""Release 0.2.0 beside this code: the SDK and the commands of each ask the API of the other, and each reads the
documents that the other has stored."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from hascheduler.api.http.server import ApiServer
from hascheduler.client import AsyncScheduler
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.noun import Noun, document_of, read_document
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.uniqueness import Uniqueness
from tests.system.upgrade.test_rolling_upgrade import release
from tests.unit.api.doubles import World, app_of

__all__ = ["release"]

NOUNS: dict[str, type[Noun]] = {"definition": Definition, "lane": Lane, "tenant": Tenant}
ASKS = """
import sys
from hascheduler.client import Refused, Scheduler

with Scheduler(sys.argv[1]) as scheduler:
    job = scheduler.submit("log", {"n": 1}, idempotency_key="k", labels={"team": "a"})
    assert scheduler.submit("log", {"n": 1}, idempotency_key="k", labels={"team": "a"}).id == job.id
    done = scheduler.submit_many([{"ref": "a", "definition": "log"}, {"definition": "log", "depends_on": ["ref:a"]}])
    assert [one.status for one in done.results] == [201, 201]
    assert scheduler.cancel(job.id) == "cancelled"
    assert scheduler.wait(job.id, timeout=5).state == "cancelled"
    assert len(list(scheduler.list(definition="log"))) == 3
    assert scheduler.cancel_where(definition="log").changed == 2
    try:
        scheduler.get("job:none")
    except Refused as refused:
        print(refused.status)
"""
DOCUMENTS = """
import json, sys
from dataclasses import replace
from hascheduler.model import documents
from hascheduler.model.definition import Definition, RateLimit
from hascheduler.model.lane import Lane
from hascheduler.model.retry import RetryPolicy
from hascheduler.model.tenant import Tenant

some, retry = RateLimit(5, 1_000), RetryPolicy(attempts_max=7, backoff_ms=10)
nouns = {
    "definition": [
        Definition("plain"),
        Definition("log", 1, 3, 5_000, "group", 2, some, retry=retry, timeout_ms=1_000, total_timeout_ms=9_000),
    ],
    "lane": [Lane("plain"), Lane("slow", 1, 2, (60_000,))],
    "tenant": [Tenant("plain"), Tenant("acme", 1, 4, 5, some, 6, some)],
}
if len(sys.argv) == 1:
    print(json.dumps({kind: [getattr(documents, f"encode_{kind}")(one) for one in all] for kind, all in nouns.items()}))
else:
    for kind, stored in json.loads(sys.argv[1]).items():
        read = [getattr(documents, f"decode_{kind}")(one["_id"], one) for one in stored]
        assert read == [replace(one, rev=9) for one in nouns[kind]], read
"""

COMMANDS = "import sys; from hascheduler.__main__ import main; sys.argv[0] = 'hascheduler'; main()"
NEW_FIELDS = {"unique": {"by": ["target"]}, "key_limits": [{"key": "target", "max_concurrency": 2}]}
"""What definitions of 0.2.0 do not have."""


@pytest.fixture
async def url() -> AsyncIterator[str]:
    server = ApiServer(app_of(World()), "127.0.0.1", 0)
    await server.bind()
    with capture_logs():
        serving = asyncio.create_task(server.run())
        yield f"http://127.0.0.1:{server.port}"
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def printed(code: Path, script: str, *arguments: str, url: str = "") -> str:
    """Return what the script prints with the code of a release; its commands ask the replica at ``url``."""
    environment = {**os.environ, "PYTHONPATH": str(code), "HASCHEDULER_URL": url}
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, *arguments, stdout=PIPE, stderr=PIPE, cwd=code, env=environment
    )
    out, err = await asyncio.wait_for(started.communicate(), 60)
    assert started.returncode == 0, err.decode()
    return out.decode()


async def test_the_sdk_of_the_release_asks_this_api(release: Path, url: str) -> None:
    assert await printed(release, ASKS, url) == "404\n"


async def test_each_reads_what_the_other_has_stored(release: Path) -> None:
    stored: dict[str, Any] = json.loads(await printed(release, DOCUMENTS))
    edited = {
        kind: [document_of(read_document(NOUNS[kind], one["_id"], one).model_copy(update={"rev": 9})) for one in all]
        for kind, all in stored.items()
    }
    assert all({*one} <= {*other} for kind in stored for one, other in zip(stored[kind], edited[kind], strict=True))
    await printed(release, DOCUMENTS, json.dumps(edited))


async def test_the_commands_of_the_release_edit_what_has_new_fields(release: Path, url: str) -> None:
    async with AsyncScheduler(url) as scheduler:
        await scheduler.definitions.put_document("log", NEW_FIELDS)
        for command in (
            "definition edit log --timeout 5s",
            "lane put slow --weight 2",
            "schedule add hourly --every 1h --definition log",
            "schedule edit hourly --label team=a",
            "job submit log",
        ):
            await printed(release, COMMANDS, *command.split(), url=url)
        assert "hourly" in await printed(release, COMMANDS, "schedule", "list", url=url)
        assert "pending" in await printed(release, COMMANDS, "job", "list", url=url)
        kept = await scheduler.definitions.get("log")
        assert (kept.timeout_ms, kept.unique, len(kept.key_limits)) == (5_000, Uniqueness(by=("target",)), 1)
        assert (await scheduler.schedules.get("hourly"))["labels"] == {"team": "a"}
