"""What becomes of the jobs of a processor that dies, pauses, or leaves."""

import json
import signal
from pathlib import Path
from typing import Any

import psutil

from hascheduler.embedded.children import Daemon
from tests.system.processes import Processes, eventually


async def _submit(processes: Processes, seconds: float) -> str:
    job = await processes.post("/v1/jobs", {"definition": "sleep", "payload": {"seconds": seconds}})
    return str(job["id"])


async def _in_state(processes: Processes, job_id: str, state: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        job = await processes.get(f"/v1/jobs/{job_id}")
        return job if job["state"] == state else None

    return await eventually(look, f"{job_id} is {state}")


async def test_a_dead_processors_job_runs_elsewhere_with_the_next_attempt(processes: Processes) -> None:
    await processes.replica("one")
    first = await processes.processor("first")
    job_id = await _submit(processes, 3)
    await _in_state(processes, job_id, "running")
    await first.kill()
    await processes.processor("second")
    job = await _in_state(processes, job_id, "succeeded")
    assert job["attempt"] == 2
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["lost", "succeeded"]


def _logged(folder: Path, name: str, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / f"{name}.err").read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


PATIENT = "10m"
"""No heartbeat that stands still is noticed within such a test."""


async def test_the_job_of_a_processor_whose_process_is_proved_dead_does_not_wait_for_the_heartbeat_timeout(
    processes: Processes,
) -> None:
    await processes.replica("one", HASCHEDULER_HEARTBEAT_TIMEOUT=PATIENT)
    first = await processes.processor("first", HASCHEDULER_HEARTBEAT_TIMEOUT=PATIENT)
    job_id = await _submit(processes, 3)
    await _in_state(processes, job_id, "running")
    await first.kill()
    await processes.processor("second", HASCHEDULER_HEARTBEAT_TIMEOUT=PATIENT)
    job = await _in_state(processes, job_id, "succeeded")
    assert job["attempt"] == 2
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["lost", "succeeded"]
    assert len(_logged(processes.folder, "one", "processor_died")) == 1
    assert _logged(processes.folder, "one", "processor_lost") == []


async def _is_watched(processes: Processes, processor: str, replica: Daemon) -> None:
    """Wait until the replica has a connection to the endpoint at which that processor is watched."""
    [registered] = await processes.database.processors.find({"name": processor}).to_list()
    port = int(registered["liveness_endpoint"].rpartition(":")[2])

    async def look() -> bool:
        opened = psutil.Process(replica.pid).net_connections("tcp")
        return any(each.status == psutil.CONN_ESTABLISHED and each.raddr.port == port for each in opened)

    await eventually(look, f"{replica.name} watches {processor}")


async def test_the_next_leader_has_the_proof_too(processes: Processes) -> None:
    replicas = await processes.together("one", "two", HASCHEDULER_HEARTBEAT_TIMEOUT=PATIENT)
    leader, term = await processes.leader()
    first = await processes.processor("first", HASCHEDULER_HEARTBEAT_TIMEOUT=PATIENT)
    for replica in replicas:
        await _is_watched(processes, "first", replica)
    job_id = await _submit(processes, 3)
    await _in_state(processes, job_id, "running")
    await first.kill()
    await leader.kill()
    await processes.leader(not_in_term=term)
    await processes.processor("second", HASCHEDULER_HEARTBEAT_TIMEOUT=PATIENT)
    job = await _in_state(processes, job_id, "succeeded")
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["lost", "succeeded"]


async def test_a_paused_processor_that_wakes_up_does_not_finish_what_runs_elsewhere(processes: Processes) -> None:
    await processes.replica("one")
    first = await processes.processor("first")
    job_id = await _submit(processes, 2)
    await _in_state(processes, job_id, "running")
    first.signal(signal.SIGSTOP)
    await processes.processor("second")

    async def moved() -> bool:
        return bool((await processes.get(f"/v1/jobs/{job_id}"))["attempt"] == 2)

    await eventually(moved, "the job has its second attempt")
    first.signal(signal.SIGCONT)
    job = await _in_state(processes, job_id, "succeeded")
    assert job["attempt"] == 2
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["lost", "succeeded"]
    again = await _submit(processes, 0.01)
    await _in_state(processes, again, "succeeded")


async def test_a_leaving_processor_finishes_what_runs_and_gives_back_the_rest(processes: Processes) -> None:
    await processes.replica("one")
    first = await processes.processor("first", slots=1, HASCHEDULER_DRAIN_GRACE="5s")
    running = await _submit(processes, 1)
    await _in_state(processes, running, "running")
    waiting = await _submit(processes, 0.01)
    assert await first.terminate() == 0
    job = await processes.get(f"/v1/jobs/{running}")
    assert job["state"] == "succeeded"
    assert job["attempt"] == 1
    await processes.processor("second")
    await _in_state(processes, waiting, "succeeded")
    assert _logged(processes.folder, "one", "processor_died") == []


async def test_a_drain_that_takes_too_long_gives_the_running_job_back(processes: Processes) -> None:
    await processes.replica("one")
    first = await processes.processor("first", HASCHEDULER_DRAIN_GRACE="200ms")
    job_id = await _submit(processes, 2)
    await _in_state(processes, job_id, "running")
    assert await first.terminate() == 0
    await processes.processor("second")
    job = await _in_state(processes, job_id, "succeeded")
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["given_back", "succeeded"]
    assert _logged(processes.folder, "one", "processor_died") == []


async def test_a_running_job_is_cancelled_by_notice(processes: Processes) -> None:
    await processes.replica("one")
    await processes.processor("worker")
    job_id = await _submit(processes, 60)
    await _in_state(processes, job_id, "running")
    answer = await processes.post(f"/v1/jobs/{job_id}/cancel", {})
    assert answer["answer"] == "already_running"
    await _in_state(processes, job_id, "cancelled")
