"""``hascheduler cluster`` against the real API with a small cluster behind it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from hascheduler.api.app import create_app
from hascheduler.api.server import ApiServer
from tests.api.doubles import World
from tests.cli.test_command_line import run


@pytest.fixture
async def url() -> AsyncIterator[str]:
    server = ApiServer(create_app(World().services()), "127.0.0.1", 0)
    await server.bind()
    serving = asyncio.create_task(server.run())
    yield f"http://127.0.0.1:{server.port}"
    serving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving


async def test_the_tables_show_who_leads_who_works_and_what_is_wrong(url: str) -> None:
    shown = await asyncio.to_thread(run, "cluster", "--url", url)
    assert shown.returncode == 0, shown.stderr
    for text in ("leader replica-1.aa", "term 7", "p-1.bb", "2/8", "pending 1", "state: missing"):
        assert text in shown.stdout


async def test_json_is_for_programs(url: str) -> None:
    shown = await asyncio.to_thread(run, "cluster", "--json", HASCHEDULER_URL=url)
    answer = json.loads(shown.stdout)
    assert answer["leader"]["term"] == 7
    assert answer["processors"][0]["name"] == "p-1"


async def test_a_server_that_is_no_replica_is_one_line(url: str) -> None:
    answer = await asyncio.to_thread(run, "cluster", "--url", f"{url}/elsewhere")
    assert answer.returncode == 1
    assert (answer.stderr.count("\n"), "404" in answer.stderr) == (1, True)
