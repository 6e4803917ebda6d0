"""What is changed over HTTP at a standby is in force on the leader.

Not how soon: only that it is, and that no time after the answer is decided as it was before.
"""

import time
from typing import Any

from hascheduler.embedded.children import Daemon
from hascheduler.model.values.instants import parse_instant
from tests.system.processes import Processes, eventually
from tests.system.replicas.accounts import decided, verdicts
from tests.system.replicas.jobs import assert_never_two_at_once, ids_in_state, jobs_of


async def _standby(processes: Processes) -> Daemon:
    """A replica that does not lead, of two, with a processor beside them."""
    await processes.together("one", "two")
    await processes.processor("worker", slots=16)
    leader, _ = await processes.leader()
    return next(replica for replica in processes.replicas.values() if replica is not leader)


async def _ask(processes: Processes, replica: Daemon, method: str, path: str, body: object = None) -> None:
    answer = await processes.http.request(method, replica.url + path, json=body)
    assert answer.status_code < 300, answer.text


async def _fires_after(processes: Processes, name: str, instant_ms: float, at_least: int) -> None:
    async def has_fired() -> bool:
        return len([at_ms for at_ms in processes.nominal_times(name) if at_ms > instant_ms]) >= at_least

    await eventually(has_fired, f"{name} fires {at_least} times more")


async def test_a_new_trigger_and_payload_hold_for_every_time_after_the_answer(processes: Processes) -> None:
    standby = await _standby(processes)
    yearly = {"type": "cron", "expression": "0 0 1 1 *"}
    job = {"definition": "log", "payload": {"edition": 1}}
    await processes.post("/v1/schedules", {"name": "s", "trigger": yearly, "job": job})
    await _ask(processes, standby, "PATCH", "/v1/schedules/s", {"trigger": {"type": "interval", "every": "200ms"}})
    await _fires_after(processes, "s", 0, 3)
    await _ask(processes, standby, "PATCH", "/v1/schedules/s", {"job": {"payload": {"edition": 2}}})
    answered_ms = time.time() * 1_000
    await _fires_after(processes, "s", answered_ms, 3)
    await decided(processes, "s")
    await processes.settled()
    effects = [effect for effects in processes.effects().values() for effect in effects]
    assert {effect["payload"]["edition"] for effect in effects} == {1, 2}
    assert {effect["payload"]["edition"] for effect in effects if effect["nominal_ms"] > answered_ms} == {2}
    processes.assert_no_gap("s", 200, 6)


async def test_nothing_fires_after_a_pause_or_a_deletion_was_answered(processes: Processes) -> None:
    standby = await _standby(processes)
    for name in ("paused", "deleted", "witness"):
        await processes.schedule(name)
        await _fires_after(processes, name, 0, 1)
    await _ask(processes, standby, "POST", "/v1/schedules/paused/pause")
    paused_ms = time.time() * 1_000
    await _ask(processes, standby, "DELETE", "/v1/schedules/deleted")
    deleted_ms = time.time() * 1_000
    await _fires_after(processes, "witness", deleted_ms, 5)
    assert all(at_ms <= paused_ms for at_ms in processes.nominal_times("paused"))
    assert all(at_ms <= deleted_ms for at_ms in processes.nominal_times("deleted"))
    await _ask(processes, standby, "POST", "/v1/schedules/paused/resume", {"catch_up": True})
    await _fires_after(processes, "paused", time.time() * 1_000, 3)
    await decided(processes, "paused")
    await processes.settled()
    # Within the grace, catching up fires each time of the pause.
    processes.assert_no_gap("paused", 200, 8)
    processes.assert_no_effect_twice()


async def test_a_definitions_limit_holds_and_is_lifted(processes: Processes) -> None:
    standby = await _standby(processes)
    await _ask(processes, standby, "PUT", "/v1/definitions/sleep", {"max_concurrency": 1})
    schedule: dict[str, Any] = {
        "name": "s",
        "trigger": {"type": "interval", "every": "200ms"},
        "job": {"definition": "sleep", "payload": {"seconds": 0.3}},
    }
    # The leader reads of the limit before it reads of the schedule: both come in one stream.
    await processes.post("/v1/schedules", schedule)

    async def three_ended() -> bool:
        return len(await ids_in_state(processes, "s", "succeeded")) >= 3

    await eventually(three_ended, "three have ended")
    await _ask(processes, standby, "PATCH", "/v1/schedules/s", {"job": {"payload": {"seconds": 600}}})
    # Only those that have ended: while the others are read, they go on.
    assert_never_two_at_once([job for job in await jobs_of(processes, "s") if job["state"] == "succeeded"])
    await _ask(processes, standby, "PATCH", "/v1/definitions/sleep", {"max_concurrency": None})

    async def several_run() -> bool:
        return len(await ids_in_state(processes, "s", "running")) >= 3

    await eventually(several_run, "three run at once")
    shown = await decided(processes, "s")
    fired = [parse_instant(record["nominal_at"]) for record in await verdicts(processes, "s")]
    assert len(fired) == shown["counts"]["fired"]
