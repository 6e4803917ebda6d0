"""Whatever happens to the leader, every nominal time has its effect, once."""

import signal

from tests.system.processes import Processes, eventually

EVERY_MS = 200
SCHEDULES = [f"tick-{number}" for number in range(5)]


async def _start(processes: Processes) -> None:
    await processes.together("one", "two", "three")
    await processes.processor("worker")
    for name in SCHEDULES:
        await processes.schedule(name, f"{EVERY_MS}ms")


async def _check(processes: Processes, at_least: int) -> None:
    await processes.settled()
    for name in SCHEDULES:
        processes.assert_no_gap(name, EVERY_MS, at_least)
    processes.assert_no_effect_twice()
    await processes.assert_terms_never_return()


async def test_killed_again_and_again_nothing_is_missed_or_doubled(processes: Processes) -> None:
    await _start(processes)
    term = 0
    for _ in range(3):
        leader, term = await processes.leader(not_in_term=term)
        await processes.fired(5, *SCHEDULES)
        await leader.kill()
        await processes.leader(not_in_term=term)
        await processes.replica(leader.name)
    await processes.fired(10, *SCHEDULES)
    await _check(processes, 25)


async def test_on_sigterm_the_lease_is_released_and_another_leads_at_once(processes: Processes) -> None:
    await _start(processes)
    leader, term = await processes.leader()
    await processes.fired(5, *SCHEDULES)
    assert await leader.terminate() == 0
    _, next_term = await processes.leader(not_in_term=term)
    assert next_term == term + 1
    await processes.fired(10, *SCHEDULES)
    await _check(processes, 15)


async def test_a_paused_leader_that_wakes_up_commits_nothing(processes: Processes) -> None:
    await _start(processes)
    leader, term = await processes.leader()
    await processes.fired(5, *SCHEDULES)
    leader.signal(signal.SIGSTOP)
    successor, _ = await processes.leader(not_in_term=term)
    assert successor is not leader
    await processes.fired(20, *SCHEDULES)
    leader.signal(signal.SIGCONT)

    async def follows() -> bool:
        cluster = (await processes.http.get(leader.url + "/v1/cluster")).json()
        return bool(cluster["ready"]) and cluster["leader"]["term"] > term

    await eventually(follows, "the old leader follows")
    await processes.fired(10, *SCHEDULES)
    await _check(processes, 35)
