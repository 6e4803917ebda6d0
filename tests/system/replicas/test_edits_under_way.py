"""Edits that race with fires, and a leader that is killed meanwhile: no time is lost, none is doubled."""

import asyncio
import random
import time

from hascheduler.model.values.instants import WallMs, parse_instant
from tests.system.processes import Processes, eventually
from tests.system.replicas.accounts import counted, decided, verdicts

NAMES = ("a", "b", "c")
EDITING_S = 10
ANCHOR = "2020-01-01T00:00:00Z"


async def test_edits_that_race_with_fires_lose_and_double_nothing(processes: Processes) -> None:
    await processes.together("one", "two", "three")
    await processes.processor("worker", slots=64)
    for name in NAMES:
        trigger = {"type": "interval", "every": "100ms", "anchor": ANCHOR}
        await processes.post("/v1/schedules", {"name": name, "trigger": trigger, "job": {"definition": "log"}})
    chance = random.Random(7)
    in_force: dict[str, list[tuple[float, float, int]]] = {name: [] for name in NAMES}
    """Of each schedule, between which instants every how many ms is certain to have been in force, unpaused."""
    every = dict.fromkeys(NAMES, 100)
    since = dict.fromkeys(NAMES, time.time() * 1_000)
    deadline = time.monotonic() + EDITING_S
    killed = False
    while time.monotonic() < deadline:
        name = chance.choice(NAMES)
        before_ms = time.time() * 1_000
        match chance.choice(["every", "payload", "pause"]):
            case "every":
                wanted = chance.choice([100, 150, 200])
                body = {"trigger": {"every": f"{wanted}ms", "anchor": ANCHOR}}
                await _patch(processes, name, body)
                in_force[name].append((since[name], before_ms, every[name]))
                every[name], since[name] = wanted, time.time() * 1_000
            case "payload":
                await _patch(processes, name, {"job": {"payload": {"n": chance.random()}}})
            case _:
                await processes.post(f"/v1/schedules/{name}/pause", {})
                in_force[name].append((since[name], before_ms, every[name]))
                await asyncio.sleep(chance.random() / 5)
                await processes.post(f"/v1/schedules/{name}/resume", {})
                since[name] = time.time() * 1_000
        if not killed and time.monotonic() > deadline - EDITING_S / 2:
            leader, term = await processes.leader()
            await leader.kill()
            await processes.leader(not_in_term=term)
            killed = True
        await asyncio.sleep(chance.random() / 10)
    for name in NAMES:
        in_force[name].append((since[name], time.time() * 1_000, every[name]))
        schedule = await decided(processes, name)
        records = await verdicts(processes, name)
        assert {verdict: count for verdict, count in schedule["counts"].items() if count} == counted(records)
        fired = [parse_instant(record["nominal_at"]) for record in records if record["verdict"] == "fired"]
        assert fired == sorted(set(fired))
        assert len(fired) > EDITING_S
        others = [record for record in records if record["verdict"] != "fired"]
        assert {record["verdict"] for record in others} <= {"paused", "coalesced"}
        passed_over = [(parse_instant(r["nominal_at"]), parse_instant(r["through_at"])) for r in others]
        for from_ms, until_ms, every_ms in in_force[name]:
            first_ms = (int(from_ms) // every_ms + 1) * every_ms
            for at_ms in range(first_ms, int(until_ms), every_ms):
                covered = any(first <= at_ms <= last for first, last in passed_over)
                assert (at_ms in fired) != covered, f"{name} at {at_ms}: fired {at_ms in fired}, passed over {covered}"
    await processes.settled()
    processes.assert_no_effect_twice()


async def test_an_edit_between_the_nominal_and_the_jittered_time_loses_and_doubles_nothing(
    processes: Processes,
) -> None:
    await processes.replica("one")
    await processes.processor("worker")
    trigger = {"type": "interval", "every": "3s", "jitter": "2900ms", "anchor": ANCHOR}
    await processes.post("/v1/schedules", {"name": "j", "trigger": trigger, "job": {"definition": "log"}})

    async def waits_for_its_jitter() -> WallMs | None:
        shown = await processes.get("/v1/schedules/j")
        nominal_ms, due_ms = parse_instant(shown["next_at"]), parse_instant(shown["next_due_at"])
        return nominal_ms if nominal_ms + 50 < time.time() * 1_000 < due_ms - 300 else None

    pending_ms = await eventually(waits_for_its_jitter, "a nominal time has come and is not due yet", limit_s=60)
    await _patch(processes, "j", {"trigger": {"every": "500ms", "jitter": None}})

    async def goes_on() -> bool:
        return int((await processes.get("/v1/schedules/j"))["counts"]["fired"]) >= 5

    await eventually(goes_on, "the new trigger fires")
    await decided(processes, "j")
    fired = [parse_instant(r["nominal_at"]) for r in await verdicts(processes, "j") if r["verdict"] == "fired"]
    assert fired.count(pending_ms) == 1
    later = [at_ms for at_ms in fired if at_ms > pending_ms]
    assert later == list(range(later[0], later[-1] + 1, 500))
    await processes.settled()
    processes.assert_no_effect_twice()


async def _patch(processes: Processes, name: str, body: object) -> None:
    answer = await processes.http.patch(f"{processes.any_url()}/v1/schedules/{name}", json=body)
    assert answer.status_code == 200, answer.text
