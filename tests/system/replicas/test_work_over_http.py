"""Processors in other languages: the example clients, without the broker and without the database."""

import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hascheduler.embedded.children import Daemon, start_daemon
from tests.chaos.proxy import open_line
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


def _outcomes(job: dict[str, Any]) -> list[str]:
    return [attempt["outcome"] for attempt in job["attempts"]]


async def test_a_worker_in_another_language_runs_jobs_stops_them_and_has_them_tried_again(
    processes: Processes, start: Start
) -> None:
    await processes.replica("one", **PATIENT)
    retry = {"attempts": 3, "backoff": "100ms"}
    await processes.put("/v1/definitions/nap", {"retry": retry})
    await start("far")
    jobs = [await processes.submit("nap", seconds=0.1, mark=number) for number in range(20)]
    long = await processes.submit("nap", seconds=600, mark=20)
    failing = await processes.submit("nap", seconds=0.1, mark=21, failing=1)
    for job_id in jobs:
        job = await processes.in_state(job_id, "succeeded")
        assert job["result"] == {"slept": 0.1}
        assert _outcomes(job) == ["succeeded"]
    await processes.in_state(long, "running")
    assert await processes.post(f"/v1/jobs/{long}/cancel", {}) == {"answer": "already_running"}
    assert _outcomes(await processes.in_state(long, "cancelled")) == ["cancelled"]
    job = await processes.in_state(failing, "succeeded")
    assert _outcomes(job) == ["failed", "succeeded"]
    assert job["attempts"][0]["error"]


async def test_the_jobs_of_a_worker_that_is_killed_run_elsewhere(processes: Processes, start: Start) -> None:
    await processes.replica("one", HASCHEDULER_TRANSPORT="mongo")
    first = await start("first")
    job_id = await processes.submit("nap", seconds=1, mark=1)
    await processes.in_state(job_id, "running")
    await first.kill()
    await start("second")
    job = await processes.in_state(job_id, "succeeded")
    assert (job["attempt"], _outcomes(job)) == (2, ["lost", "succeeded"])


@pytest.mark.parametrize("start", ["worker.mjs"], indirect=True)
async def test_a_worker_that_is_told_to_leave_finishes_what_runs_and_takes_no_more(
    processes: Processes, start: Start
) -> None:
    await processes.replica("one", **PATIENT)
    first = await start("first")
    job_id = await processes.submit("nap", seconds=1)
    await processes.in_state(job_id, "running")
    assert await first.terminate() == 0
    job = await processes.get(f"/v1/jobs/{job_id}")
    assert (job["state"], _outcomes(job)) == ("succeeded", ["succeeded"])
    assert await processes.database.processors.count_documents({}) == 0


async def test_a_worker_goes_on_with_another_replica(processes: Processes, start: Start) -> None:
    """It keeps its registration, and what it runs."""
    one, two = await processes.together("one", "two", **PATIENT)
    balancer = await open_line("127.0.0.1", urlsplit(one.url).port or 0)
    try:
        await start("far", HASCHEDULER_URL=f"http://127.0.0.1:{balancer.port}")
        job_id = await processes.submit("nap", seconds=1.5, mark=1)
        await processes.in_state(job_id, "running")
        balancer.target = ("127.0.0.1", urlsplit(two.url).port or 0)
        balancer.reset()
        assert await one.terminate() == 0
        job = await processes.in_state(job_id, "succeeded")
        assert (job["attempt"], _outcomes(job)) == (1, ["succeeded"])
        await processes.in_state(await processes.submit("nap", seconds=0.1, mark=2), "succeeded")
    finally:
        await balancer.close()
