"""What is changed over HTTP at a standby is in force on the leader.

Not how soon: only that it is, and that no time after the answer is decided as it was before.
"""

import time

from hascheduler.embedded.children import Daemon
from tests.system.processes import Processes
from tests.system.replicas.accounts import decided


async def _standby(processes: Processes) -> Daemon:
    """A replica that does not lead, of two, with a processor beside them."""
    await processes.together("one", "two")
    await processes.processor("worker", slots=16)
    leader, _ = await processes.leader()
    return next(replica for replica in processes.replicas.values() if replica is not leader)


async def _ask(processes: Processes, replica: Daemon, method: str, path: str, body: object = None) -> None:
    answer = await processes.http.request(method, replica.url + path, json=body)
    assert answer.status_code < 300, answer.text


async def test_a_new_trigger_and_payload_hold_for_every_time_after_the_answer(processes: Processes) -> None:
    standby = await _standby(processes)
    yearly = {"type": "cron", "expression": "0 0 1 1 *"}
    job = {"definition": "log", "payload": {"edition": 1}}
    await processes.post("/v1/schedules", {"name": "s", "trigger": yearly, "job": job})
    await _ask(processes, standby, "PATCH", "/v1/schedules/s", {"trigger": {"type": "interval", "every": "200ms"}})
    await processes.fired(3, "s")
    await _ask(processes, standby, "PATCH", "/v1/schedules/s", {"job": {"payload": {"edition": 2}}})
    answered_ms = time.time() * 1_000
    await processes.fired(4, "s")  # the first may be of before
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
        await processes.fired(1, name)
    await _ask(processes, standby, "POST", "/v1/schedules/paused/pause")
    paused_ms = time.time() * 1_000
    await _ask(processes, standby, "DELETE", "/v1/schedules/deleted")
    deleted_ms = time.time() * 1_000
    await processes.fired(6, "witness")
    assert all(at_ms <= paused_ms for at_ms in processes.nominal_times("paused"))
    assert all(at_ms <= deleted_ms for at_ms in processes.nominal_times("deleted"))
    await _ask(processes, standby, "POST", "/v1/schedules/paused/resume", {"catch_up": True})
    await processes.fired(9, "paused")
    await decided(processes, "paused")
    await processes.settled()
    # Within the grace, catching up fires each time of the pause.
    processes.assert_no_gap("paused", 200, 8)
    processes.assert_no_effect_twice()
