"""The health port of real processes: before there is a database, while they work, and when it can't be had."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from hascheduler.embedded.children import free_port
from tests.system.processes import Processes, eventually

Told = dict[str, tuple[int, str]]
PATHS = ("/livez", "/readyz", "/leaderz")
SERVE = ["serve"]
WORK = ["processor", "processors.log"]
YES = (200, "")
WAITS = (503, "waiting for MongoDB")
FOLLOWS = (503, "another replica leads, or none")


async def told(port: int) -> Told | None:
    """The status and the reason of each path that is there; None while nobody listens."""
    found: Told = {}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        for path in PATHS:
            try:
                answer = await http.get(path)
            except httpx.TransportError:
                return None
            if answer.status_code != httpx.codes.NOT_FOUND:
                found[path] = answer.status_code, answer.json()["reason"]
    return found


async def started(arguments: list[str], tmp_path: Path, **settings: str) -> asyncio.subprocess.Process:
    environment = {**os.environ, "HASCHEDULER_HTTP_PORT": "0", **settings}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hascheduler", *arguments, env=environment, stderr=asyncio.subprocess.PIPE, cwd=tmp_path
    )


@pytest.mark.parametrize(
    ("arguments", "waiting"),
    [
        (SERVE, {"/livez": YES, "/readyz": WAITS, "/leaderz": FOLLOWS}),
        (WORK, {"/livez": YES, "/readyz": WAITS}),
    ],
)
async def test_who_waits_for_the_database_lives_is_not_ready_and_ends_when_told_to(
    arguments: list[str], waiting: Told, tmp_path: Path
) -> None:
    port = free_port()
    nobody = f"mongodb://127.0.0.1:{free_port()}/?serverSelectionTimeoutMS=500"
    process = await started(arguments, tmp_path, HASCHEDULER_MONGODB_URI=nobody, HASCHEDULER_HEALTH_PORT=str(port))
    try:
        assert await eventually(lambda: told(port), "it answers") == waiting
        async with httpx.AsyncClient() as http:
            assert "hascheduler_build_info" in (await http.get(f"http://127.0.0.1:{port}/metrics")).text
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 15) == 0
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_replicas_are_ready_and_a_processor_is_while_it_can_take_work(
    processes: Processes,
) -> None:
    ports = {name: free_port() for name in ("one", "two", "worker")}

    def settings(name: str) -> dict[str, str]:
        return {"HASCHEDULER_HEALTH_PORT": str(ports[name])}

    for name in ("one", "two"):
        await processes.replica(name, **settings(name))
    worker = await processes.processor("worker", "processors.sleep", slots=8, **settings("worker"))
    leader, _ = await processes.leader()

    async def settled() -> dict[str, Told | None] | None:
        now = {name: await told(port) for name, port in ports.items()}
        is_settled = all(each and each["/readyz"] == YES for each in now.values())
        return now if is_settled and now[leader.name] == dict.fromkeys(PATHS, YES) else None

    now = await eventually(settled, "all are ready, and one knows that it leads")
    follower = "two" if leader.name == "one" else "one"
    assert now[follower] == {"/livez": YES, "/readyz": YES, "/leaderz": FOLLOWS}
    assert now["worker"] == {"/livez": YES, "/readyz": YES}

    # A job that takes its time holds the processor in its drain for as long as the test looks.
    await processes.post("/v1/jobs", {"definition": "sleep", "payload": {"seconds": 15}})

    async def runs() -> bool:
        return await processes.database.jobs.count_documents({"state": "running"}) == 1

    await eventually(runs, "the job runs")
    worker.signal(signal.SIGTERM)

    async def drains() -> Told | None:
        now = await told(ports["worker"])
        return now if now and now["/readyz"] != YES else None

    assert await eventually(drains, "it drains") == {"/livez": YES, "/readyz": (503, "it is draining")}


@pytest.mark.parametrize("arguments", [SERVE, WORK])
@pytest.mark.parametrize(
    ("setting", "blamed"),
    [
        ({"HASCHEDULER_HEALTH_PORT": "99999"}, "HASCHEDULER_HEALTH_PORT"),
        ({"HASCHEDULER_HEALTH_PORT": "ninety"}, "HASCHEDULER_HEALTH_PORT"),
        ({"HASCHEDULER_HEALTH_PORT": "taken"}, "HASCHEDULER_HEALTH_PORT"),
        ({"HASCHEDULER_HEALTH_PORT": "0", "HASCHEDULER_HEALTH_HOST": "192.0.2.1"}, "HASCHEDULER_HEALTH_HOST"),
    ],
)
async def test_a_port_that_can_not_be_had_is_one_line_and_the_callers_fault(
    arguments: list[str], setting: dict[str, Any], blamed: str, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = {name: str(taken.getsockname()[1]) if value == "taken" else value for name, value in setting.items()}
        process = await started(arguments, tmp_path, **given)
        _, error = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    lines = error.decode().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith(f"hascheduler: {blamed}")
