"""A schedule whose jobs keep failing is paused, with the reason; resumed, it counts from zero."""

from tests.system.processes import Processes, eventually
from tests.system.replicas.accounts import counted, decided, verdicts
from tests.system.replicas.jobs import jobs_of

FAILURES = 3


async def test_a_schedule_whose_program_fails_is_paused_and_resumes_when_it_is_mended(processes: Processes) -> None:
    await processes.together("one", "two")
    modules = ("processors.log", "processors.command")
    await processes.processor("worker", *modules, slots=8, HASCHEDULER_COMMAND_ALLOW="/bin/false,/bin/true")
    once = await processes.http.put(f"{processes.any_url()}/v1/definitions/command", json={"retry": {"attempts": 1}})
    assert once.status_code < 300, once.text
    schedule = {
        "name": "fragile",
        "trigger": {"type": "interval", "every": "300ms"},
        "pause_after_failures": FAILURES,
        "job": {"definition": "command", "payload": {"argv": ["/bin/false"]}},
    }
    await processes.post("/v1/schedules", schedule)

    async def is_paused() -> bool:
        return bool((await processes.get("/v1/schedules/fragile"))["paused"])

    await eventually(is_paused, "it is paused")
    # Another schedule is the witness that time goes on and the leader decides, while this one stands still.
    await processes.schedule("witness", "300ms")
    await _fires(processes, "witness", 5)
    await _all_end(processes)
    shown = await processes.get("/v1/schedules/fragile")
    assert shown["failures_in_a_row"] >= FAILURES
    assert "failed in a row" in shown["paused_because"]
    assert shown["next_at"] is None
    jobs = await jobs_of(processes, "fragile")
    assert {job["state"] for job in jobs} == {"failed"}
    assert all(job["nominal_at"] <= shown["paused_at"] for job in jobs)
    assert shown["counts"]["fired"] == len(jobs) >= FAILURES

    mended = {"job": {"payload": {"argv": ["/bin/true"]}}}
    answer = await processes.http.patch(f"{processes.any_url()}/v1/schedules/fragile", json=mended)
    assert answer.status_code == 200, answer.text
    assert answer.json()["paused"]
    resumed = await processes.post("/v1/schedules/fragile/resume", {})
    assert (resumed["paused"], resumed["failures_in_a_row"]) == (False, 0)
    await _fires(processes, "fragile", len(jobs) + FAILURES + 1)
    await decided(processes, "fragile")
    assert counted(await verdicts(processes, "fragile")).keys() == {"fired", "paused"}
    await _all_end(processes)
    later = (await jobs_of(processes, "fragile"))[len(jobs) :]
    assert {job["state"] for job in later} == {"succeeded"}
    assert (await processes.get("/v1/schedules/fragile"))["failures_in_a_row"] == 0


async def _all_end(processes: Processes) -> None:
    async def have_ended() -> bool:
        return all(job["finished_at"] is not None for job in await jobs_of(processes, "fragile"))

    await eventually(have_ended, "all its jobs end")


async def _fires(processes: Processes, name: str, at_least: int) -> None:
    async def has_fired() -> bool:
        return bool((await processes.get(f"/v1/schedules/{name}"))["counts"]["fired"] >= at_least)

    await eventually(has_fired, f"{name} fires {at_least} times")
