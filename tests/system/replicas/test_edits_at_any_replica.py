"""Edits and pauses at any replica while the schedules fire and nobody leads: each time in force has one verdict.

A leader that is stopped is missed only when its lease is over: the edits of these seconds come before the times that
they are not to change are decided. One that is killed is followed at once: those edits race with the next one's fires.
"""

import asyncio
import random
import signal
import time
from collections import Counter
from typing import Any

import httpx2

from hascheduler.embedded.children import Daemon
from hascheduler.model.values.instants import parse_instant
from tests.system.processes import Processes, eventually
from tests.system.replicas.timeline import Timeline

ANCHOR = "1970-01-01T00:00:00Z"
GRIDS_MS = (100, 150, 200)
EDITS = 10
"""Of each schedule, with a leader, without, and while leaders change."""


async def test_whichever_replica_is_asked_each_time_in_force_has_one_verdict(processes: Processes) -> None:
    await processes.together("one", "two", "three")
    await processes.processor("worker", slots=64)
    editors = [_Editor(processes, name) for name in ("a", "b", "c")]
    for editor in editors:
        await editor.create()
    await _all_edit(editors, list(processes.replicas.values()))
    stopped, term = await processes.leader()
    standbys = [replica for replica in processes.replicas.values() if replica is not stopped]
    stopped.signal(signal.SIGSTOP)
    await _all_edit(editors, standbys)
    leader, term = await processes.leader(not_in_term=term)
    stopped.signal(signal.SIGCONT)
    await leader.kill()
    await _all_edit(editors, [stopped, *(standby for standby in standbys if standby is not leader)])
    await processes.leader(not_in_term=term)
    for editor in editors:
        await editor.check()
    await processes.settled()
    processes.assert_no_effect_twice()


async def _all_edit(editors: "list[_Editor]", replicas: list[Daemon]) -> None:
    await asyncio.gather(*(editor.edit(EDITS, replicas) for editor in editors))


class _Editor:
    """Edits one schedule, one edit after the other, and keeps account of when."""

    def __init__(self, processes: Processes, name: str) -> None:
        self._processes = processes
        self._replicas: list[Daemon] = []
        self._name = name
        self._chance = random.Random(name)
        self._timeline = Timeline(time.time() * 1_000)

    async def create(self) -> None:
        body = {
            "name": self._name,
            "trigger": {"type": "interval", "every": "100ms", "anchor": ANCHOR},
            # However long nobody leads, nothing is too late.
            "misfire": {"grace": "1h"},
            "job": {"definition": "log"},
        }
        before_ms = time.time() * 1_000
        await self._processes.post("/v1/schedules", body)
        self._timeline.every(before_ms, time.time() * 1_000, 100)

    async def edit(self, times: int, replicas: list[Daemon]) -> None:
        timeline, self._replicas = self._timeline, replicas
        for _ in range(times):
            match self._chance.choice(["every", "payload", "pause", "pause"]):
                case "every":
                    every_ms = self._chance.choice([grid for grid in GRIDS_MS if grid != timeline.every_ms])
                    body = {"trigger": {"every": f"{every_ms}ms"}}
                    timeline.every(*await self._ask("PATCH", "", body), every_ms)
                case "payload":
                    await self._ask("PATCH", "", {"job": {"payload": self._chance.random()}})
                case _ if timeline.is_paused:
                    await self._resume(catch_up=self._chance.random() < 0.5)
                case _:
                    timeline.paused(*await self._ask("POST", "/pause", {}))
            await asyncio.sleep(self._chance.random() / 3)

    async def check(self) -> None:
        if self._timeline.is_paused:
            await self._resume(catch_up=True)
        before_ms = time.time() * 1_000
        schedule = await _decided(self._processes, self._name)
        self._timeline.every(before_ms, time.time() * 1_000, None)
        records = await _verdicts(self._processes, self._name)
        assert {verdict: count for verdict, count in schedule["counts"].items() if count} == _counted(records)
        assert _counted(records).keys() <= {"fired", "paused"}
        spans = [(parse_instant(r["nominal_at"]), parse_instant(r["through_at"]), r["count"]) for r in records]
        fired = [first_ms for (first_ms, _, _), r in zip(spans, records, strict=True) if r["verdict"] == "fired"]
        assert fired == sorted(set(fired))
        passed_over = [span for span, record in zip(spans, records, strict=True) if record["verdict"] == "paused"]
        self._timeline.check(set(fired), passed_over)

    async def _resume(self, *, catch_up: bool) -> None:
        self._timeline.resumed(*await self._ask("POST", "/resume", {"catch_up": catch_up}), catch_up=catch_up)

    async def _ask(self, method: str, path: str, body: dict[str, Any]) -> tuple[float, float]:
        """When it was asked for, and when it was certain.

        Without an answer, and where too many edits wait for a leader, it is asked again: no edit counts twice.
        """
        before_ms = time.time() * 1_000
        while True:
            url = f"{self._chance.choice(self._replicas).url}/v1/schedules/{self._name}{path}"
            try:
                answer = await self._processes.http.request(method, url, json=body)
            except httpx2.TransportError:
                continue
            if answer.status_code == 409:
                await asyncio.sleep(0.05)
                continue
            assert answer.status_code == 200, answer.text
            return before_ms, time.time() * 1_000


async def _verdicts(processes: Processes, name: str) -> list[dict[str, Any]]:
    """All records of the schedule, oldest first."""
    records: list[dict[str, Any]] = []
    after = ""
    while True:
        page = await processes.get(f"/v1/schedules/{name}/verdicts?limit=200{after}")
        records += page["items"]
        if page["next"] is None:
            return records[::-1]
        after = f"&after={page['next']}"


async def _decided(processes: Processes, name: str) -> dict[str, Any]:
    """The schedule, paused so that it stands still, once all of its times up to then have a verdict."""
    await processes.post(f"/v1/schedules/{name}/pause", {})

    async def nothing_is_due() -> bool:
        page = await processes.get(f"/v1/schedules/{name}/verdicts?limit=1")
        return bool(page["undecided"]["because"] != "due")

    await eventually(nothing_is_due, f"each time of {name} has its verdict")
    return await processes.get(f"/v1/schedules/{name}")


def _counted(records: list[dict[str, Any]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for record in records:
        counts[record["verdict"]] += record["count"]
    return counts
