"""What becomes of the jobs of a processor that dies, pauses, or leaves."""

import signal

import psutil

from hascheduler.embedded.children import Daemon
from tests.system.processes import Processes, eventually

PATIENT = "10m"
"""No heartbeat that stands still is noticed within such a test."""


async def test_a_dead_processors_job_runs_elsewhere_with_the_next_attempt(processes: Processes) -> None:
    await processes.replica("one")
    first = await processes.processor("first")
    job_id = await processes.submit("sleep", seconds=3)
    await processes.in_state(job_id, "running")
    await first.kill()
    await processes.processor("second")
    job = await processes.in_state(job_id, "succeeded")
    assert job["attempt"] == 2
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["lost", "succeeded"]


async def test_the_job_of_a_processor_whose_process_is_proved_dead_does_not_wait_for_the_heartbeat_timeout(
    processes: Processes,
) -> None:
    await processes.replica("one", HASCHEDULER_HEARTBEAT_TIMEOUT=PATIENT)
    first = await processes.processor("first", HASCHEDULER_HEARTBEAT_TIMEOUT=PATIENT)
    job_id = await processes.submit("sleep", seconds=3)
    await processes.in_state(job_id, "running")
    await first.kill()
    await processes.processor("second", HASCHEDULER_HEARTBEAT_TIMEOUT=PATIENT)
    job = await processes.in_state(job_id, "succeeded")
    assert job["attempt"] == 2
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["lost", "succeeded"]
    assert len(processes.logged("processor_died", "one")) == 1
    assert processes.logged("processor_lost", "one") == []


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
    first = await processes.processor("first", HASCHEDULER_HEARTBEAT_TIMEOUT=PATIENT)
    for replica in replicas:
        await _is_watched(processes, "first", replica)
    job_id = await processes.submit("sleep", seconds=3)
    await processes.in_state(job_id, "running")
    await first.kill()
    await processes.lose_leader()
    await processes.processor("second", HASCHEDULER_HEARTBEAT_TIMEOUT=PATIENT)
    job = await processes.in_state(job_id, "succeeded")
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["lost", "succeeded"]


async def test_a_paused_processor_that_wakes_up_does_not_finish_what_runs_elsewhere(processes: Processes) -> None:
    await processes.replica("one")
    first = await processes.processor("first")
    job_id = await processes.submit("sleep", seconds=2)
    await processes.in_state(job_id, "running")
    first.signal(signal.SIGSTOP)
    await processes.processor("second")

    async def moved() -> bool:
        return bool((await processes.get(f"/v1/jobs/{job_id}"))["attempt"] == 2)

    await eventually(moved, "the job has its second attempt")
    first.signal(signal.SIGCONT)
    job = await processes.in_state(job_id, "succeeded")
    assert job["attempt"] == 2
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["lost", "succeeded"]
    again = await processes.submit("sleep", seconds=0.01)
    await processes.in_state(again, "succeeded")


async def test_a_leaving_processor_finishes_what_runs_and_gives_back_the_rest(processes: Processes) -> None:
    await processes.replica("one")
    first = await processes.processor("first", slots=1, HASCHEDULER_DRAIN_GRACE="5s")
    running = await processes.submit("sleep", seconds=1)
    await processes.in_state(running, "running")
    waiting = await processes.submit("sleep", seconds=0.01)
    assert await first.terminate() == 0
    job = await processes.get(f"/v1/jobs/{running}")
    assert job["state"] == "succeeded"
    assert job["attempt"] == 1
    await processes.processor("second")
    await processes.in_state(waiting, "succeeded")
    assert processes.logged("processor_died", "one") == []


async def test_a_drain_that_takes_too_long_gives_the_running_job_back(processes: Processes) -> None:
    await processes.replica("one")
    first = await processes.processor("first", HASCHEDULER_DRAIN_GRACE="200ms")
    job_id = await processes.submit("sleep", seconds=2)
    await processes.in_state(job_id, "running")
    assert await first.terminate() == 0
    await processes.processor("second")
    job = await processes.in_state(job_id, "succeeded")
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["given_back", "succeeded"]
    assert processes.logged("processor_died", "one") == []


async def test_a_running_job_is_cancelled_by_notice(processes: Processes) -> None:
    await processes.replica("one")
    await processes.processor("worker")
    job_id = await processes.submit("sleep", seconds=60)
    await processes.in_state(job_id, "running")
    answer = await processes.post(f"/v1/jobs/{job_id}/cancel", {})
    assert answer["answer"] == "already_running"
    await processes.in_state(job_id, "cancelled")
