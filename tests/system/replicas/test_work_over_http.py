"""Processors in other languages: the example clients, without the broker and without the database."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hascheduler.embedded.children import Daemon, start_daemon
from tests.system.processes import Processes, eventually

EXAMPLES = Path(__file__).parents[3] / "processors"
NEEDED = {"worker.mjs": ["node"], "worker.sh": ["curl", "jq", "timeout"]}
NAP = """
read -r payload
field() { printf %s "$payload" | jq ".$1 // 0"; }
if [ "$(field failing)" != 0 ] && mkdir "$MARKS/$(field mark)" 2>/dev/null; then
    echo as the payload says >&2
    exit 3
fi
sleep "$(field seconds)"
printf '{"slept": %s}' "$(field seconds)"
"""
"""What `worker.mjs` does by itself; it fails once."""

PATIENT = {"HASCHEDULER_TRANSPORT": "mongo", "HASCHEDULER_HEARTBEAT_TIMEOUT": "1m"}
"""Of replicas where no worker is killed: one that gets no CPU for some seconds is not dead."""

Start = Callable[..., Awaitable[Daemon]]


@pytest.fixture(params=NEEDED)
async def start(request: pytest.FixtureRequest, processes: Processes) -> Start:
    """Starts an example under a name, for the definition ``nap``, and waits until it is registered."""
    example = str(request.param)
    for program in NEEDED[example]:
        if shutil.which(program) is None:
            pytest.skip(f"{example} needs {program}")

    async def start(name: str, **environment: str) -> Daemon:
        command = [str(EXAMPLES / example)]
        if example == "worker.sh":
            command += ["nap", "sh", "-c", NAP]
        before = await processes.database.processors.count_documents({})
        process = processes.processors[name] = await start_daemon(
            name,
            command[1:],
            processes.folder / f"{name}.err",
            environment={
                **os.environ,
                "HASCHEDULER_URL": processes.any_url(),
                "NAME": "nap",
                "MARKS": str(processes.folder),
                **environment,
            },
            program=command[:1],
            output=processes.folder / f"{name}.out",
        )

        async def is_registered() -> bool:
            assert process.running, process.last_lines(20)
            return await processes.database.processors.count_documents({}) > before

        await eventually(is_registered, f"{name} is registered")
        return process

    return start


async def _submit(processes: Processes, **payload: object) -> str:
    return str((await processes.post("/v1/jobs", {"definition": "nap", "payload": payload}))["id"])


async def _in_state(processes: Processes, job_id: str, state: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        job = await processes.get(f"/v1/jobs/{job_id}")
        return job if job["state"] == state else None

    return await eventually(look, f"{job_id} is {state}")


def _outcomes(job: dict[str, Any]) -> list[str]:
    return [attempt["outcome"] for attempt in job["attempts"]]


async def test_a_worker_in_another_language_runs_jobs_stops_them_and_has_them_tried_again(
    processes: Processes, start: Start
) -> None:
    await processes.replica("one", **PATIENT)
    retry = {"attempts": 3, "backoff": "100ms"}
    url = f"{processes.any_url()}/v1/definitions/nap"
    (await processes.http.put(url, json={"retry": retry})).raise_for_status()
    await start("far")
    jobs = [await _submit(processes, seconds=0.1, mark=number) for number in range(20)]
    long = await _submit(processes, seconds=600, mark=20)
    failing = await _submit(processes, seconds=0.1, mark=21, failing=1)
    for job_id in jobs:
        job = await _in_state(processes, job_id, "succeeded")
        assert job["result"] == {"slept": 0.1}
        assert _outcomes(job) == ["succeeded"]
    await _in_state(processes, long, "running")
    assert await processes.post(f"/v1/jobs/{long}/cancel", {}) == {"answer": "already_running"}
    assert _outcomes(await _in_state(processes, long, "cancelled")) == ["cancelled"]
    job = await _in_state(processes, failing, "succeeded")
    assert _outcomes(job) == ["failed", "succeeded"]
    assert job["attempts"][0]["error"]


async def test_the_jobs_of_a_worker_that_is_killed_run_elsewhere(processes: Processes, start: Start) -> None:
    await processes.replica("one", HASCHEDULER_TRANSPORT="mongo")
    first = await start("first")
    job_id = await _submit(processes, seconds=1, mark=1)
    await _in_state(processes, job_id, "running")
    await first.kill()
    await start("second")
    job = await _in_state(processes, job_id, "succeeded")
    assert (job["attempt"], _outcomes(job)) == (2, ["lost", "succeeded"])


@pytest.mark.parametrize("start", ["worker.mjs"], indirect=True)
async def test_a_worker_that_is_told_to_leave_finishes_what_runs_and_takes_no_more(
    processes: Processes, start: Start
) -> None:
    await processes.replica("one", **PATIENT)
    first = await start("first")
    job_id = await _submit(processes, seconds=1)
    await _in_state(processes, job_id, "running")
    assert await first.terminate() == 0
    job = await processes.get(f"/v1/jobs/{job_id}")
    assert (job["state"], _outcomes(job)) == ("succeeded", ["succeeded"])
    assert await processes.database.processors.count_documents({}) == 0


async def test_a_worker_goes_on_with_another_replica(processes: Processes, start: Start) -> None:
    """It keeps its registration, and what it runs."""
    one, two = await processes.together("one", "two", **PATIENT)
    async with Address(one.url) as address:
        await start("far", HASCHEDULER_URL=address.url)
        job_id = await _submit(processes, seconds=1.5, mark=1)
        await _in_state(processes, job_id, "running")
        address.leads_to(two.url)
        assert await one.terminate() == 0
        job = await _in_state(processes, job_id, "succeeded")
        assert (job["attempt"], _outcomes(job)) == (1, ["succeeded"])
        await _in_state(processes, await _submit(processes, seconds=0.1, mark=2), "succeeded")


class Address:
    """One address in front of several replicas, as a load balancer is."""

    def __init__(self, url: str) -> None:
        self._port = 0
        self._open: set[asyncio.StreamWriter] = set()
        self.url = ""
        self.leads_to(url)

    def leads_to(self, url: str) -> None:
        """From the next connection on; those that are open are closed."""
        self._port = int(url.rsplit(":", 1)[1])
        for writer in self._open:
            writer.close()

    async def __aenter__(self) -> "Address":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._open:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            their_reader, their_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pass_on(reader, their_writer), self._pass_on(their_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            self._open.discard(writer)
            writer.close()
