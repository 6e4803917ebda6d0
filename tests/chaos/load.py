"""Users, meanwhile: schedules, submits and cancels over HTTP at whichever replica answers.

What was acknowledged is an obligation, and so is each nominal time of a schedule that was acknowledged. A submit
without an answer is repeated under its key, as a client does, until one comes or the row ends.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import httpx

from hascheduler.model.durations import parse_duration
from hascheduler.model.instants import WallMs, format_instant, parse_instant
from hascheduler.model.trigger import Interval, Trigger
from hascheduler.ports import CancelAnswer
from hascheduler.triggers import next_nominal
from tests.chaos.cluster import Cluster
from tests.checkers.evidence import Submitted

_RETRY = {"attempts": 10, "backoff": "200ms", "max": "1s"}
DEFINITIONS: dict[str, dict[str, Any]] = {
    "quick": {"retry": _RETRY},
    "capped": {"retry": _RETRY, "max_concurrency": 4},
    "grouped": {"retry": _RETRY, "conflict_group": "g"},
    "flaky": {"retry": _RETRY},
    "slow": {"retry": _RETRY, "max_concurrency": 20},
    "long": {"retry": _RETRY},
}
_MIX = ("quick", "quick", "quick", "capped", "grouped", "flaky", "slow")
WITH_LONG = (*_MIX * 2, "long")
"""Some that last longer than a processor is waited for: whoever is cut off still has them when others get them."""
TARGETS = ("a", "b", "c", "d")
_AT_ONCE_MAX = 60
_PAUSE_S = 0.3


@dataclass(frozen=True)
class LoadPlan:
    """``schedules`` that fire once a second each, ``submits_per_s``, and every so many submits a cancel (0: none)."""

    schedules: int = 50
    submits_per_s: float = 15
    cancel_every: int = 0
    grace: str = "1h"
    definitions: tuple[str, ...] = _MIX
    scheduled: str = "quick"


@dataclass
class Load:
    """Owner of what was promised from outside."""

    cluster: Cluster
    plan: LoadPlan
    chance: Random
    submits: list[Submitted] = field(default_factory=list)
    cancels: list[tuple[str, float]] = field(default_factory=list)
    keys: dict[str, Submitted] = field(default_factory=dict)
    schedules: dict[str, Any] = field(default_factory=dict)
    refused: int = 0
    _number: int = 0
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE_MAX))
    over: bool = False

    async def prepare(self) -> None:
        """The definitions and the schedules, before anything goes wrong."""
        for name, rules in DEFINITIONS.items():
            await self._until_answered("PUT", f"/v1/definitions/{name}", rules)
        await asyncio.gather(*(self._schedule(number) for number in range(self.plan.schedules)))

    async def _schedule(self, number: int) -> None:
        count = self.plan.schedules
        anchor = format_instant(WallMs(self.cluster.epoch_ms + 1_000 * number // count))
        # Most of them catch up with everything; some as their owners would have it.
        catch_up = ("all", "all", "all", "all", "latest", "none")[number % 6]
        overlap = "skip" if number % 10 == 7 else "allow"
        body = {
            "name": f"every-{number}",
            "trigger": {"type": "interval", "every": "1s", "anchor": anchor},
            "misfire": {"grace": self.plan.grace if catch_up == "all" else "3s", "catch_up": catch_up},
            "overlap": overlap,
            # A job that takes longer than a second gives its overlap something to skip.
            "job": {"definition": "slow" if overlap == "skip" else self.plan.scheduled, "target": f"t{number}"},
        }
        made = await self._until_answered("POST", "/v1/schedules", body)
        trigger = made["trigger"]
        pattern = Interval(parse_duration(trigger["every"]), parse_instant(trigger["anchor"]))
        self.schedules[made["name"]] = SimpleNamespace(trigger=Trigger(pattern), now=parse_instant(made["created_at"]))

    async def run(self) -> None:
        """Submit at the plan's rate until `over`; then every submit that is under way gets a last chance."""
        async with asyncio.TaskGroup() as tasks:
            while not self.over:
                if self.plan.submits_per_s <= 0:
                    await asyncio.sleep(0.1)
                    continue
                await asyncio.sleep(self.chance.expovariate(self.plan.submits_per_s))
                tasks.create_task(self.submit(self.chance.choice(self.plan.definitions)))
                if self.plan.cancel_every and self._number % self.plan.cancel_every == 0 and self.submits:
                    tasks.create_task(self.cancel(self.chance.choice(self.submits).id))

    async def submit(self, definition: str, **fields: Any) -> Submitted:
        self._number += 1
        key = f"chaos-{self._number}"
        submit = self.keys[key] = Submitted("", self.cluster.now_s())
        body = {"definition": definition, "target": self.chance.choice(TARGETS), **fields}
        async with self._room:
            answer = await self._asked("POST", "/v1/jobs", body, {"Idempotency-Key": key})
        if answer is not None:
            submit.id = answer["id"]
            submit.acknowledged = True
            self.submits.append(submit)
        return submit

    async def cancel(self, id: str) -> None:
        """Once, whatever comes of it; what is answered is kept to."""
        async with self._room:
            with suppress(httpx.HTTPError, LookupError):
                answer = await self.cluster.http.post(f"{self._any_url()}/v1/jobs/{id}/cancel")
                if answer.status_code == httpx.codes.OK and answer.json()["answer"] == CancelAnswer.CANCELLED:
                    self.cancels.append((id, self.cluster.now_s()))

    async def _asked(self, method: str, path: str, body: Any, headers: dict[str, str]) -> dict[str, Any] | None:
        """The answer, or None if none came before the end."""
        while True:
            with suppress(httpx.HTTPError, LookupError):
                url = self._any_url()
                answer = await self.cluster.http.request(method, url + path, json=body, headers=headers)
                if answer.status_code < 300:
                    content: dict[str, Any] = answer.json()
                    return content
                assert answer.status_code == 429 or answer.status_code >= 500, answer.text
                self.refused += 1
            if self.over:
                return None
            await asyncio.sleep(_PAUSE_S)

    async def _until_answered(self, method: str, path: str, body: Any) -> dict[str, Any]:
        answer = await self._asked(method, path, body, {})
        assert answer is not None
        return answer

    def obligations(self, until_ms: int) -> int:
        """Acknowledged submits, and nominal times that have come."""
        return len(self.submits) + sum(nominal_times(schedule, until_ms) for schedule in self.schedules.values())

    def _any_url(self) -> str:
        cluster = self.cluster
        up = [
            life
            for life in cluster.replicas.values()
            if life.up and life.stopped_at is None and life.name not in cluster.out_of_reach
        ]
        return self.chance.choice(up).url


def nominal_times(schedule: Any, until_ms: int) -> int:
    """How many there are by then."""
    count, nominal_ms = 0, next_nominal(schedule.trigger, schedule.now)
    while nominal_ms is not None and nominal_ms <= until_ms:
        count += 1
        nominal_ms = next_nominal(schedule.trigger, nominal_ms)
    return count
