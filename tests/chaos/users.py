"""Users, meanwhile: schedules, submits and cancels over HTTP at whichever replica answers, and a follower of events.

What was acknowledged is an obligation, and so is each nominal time of a schedule that was acknowledged. A submit
without an answer is repeated under its key, as a client does, until one comes or the row ends.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar

from hascheduler.client import AsyncScheduler, Refused, Unavailable
from hascheduler.model.values.instants import WallMs, format_instant, parse_duration, parse_instant
from hascheduler.ports import CancelAnswer
from hascheduler.schema.trigger import Interval, Trigger
from hascheduler.triggers import next_nominal
from tests.chaos.cluster import ANSWER_S, Cluster
from tests.checkers.evidence import SeenEvent, Submitted

_RETRY = {"attempts": 10, "backoff": "200ms", "max": "1s"}
DEFINITIONS: dict[str, dict[str, Any]] = {
    "quick": {"retry": _RETRY},
    "capped": {"retry": _RETRY, "max_concurrency": 4},
    "grouped": {"retry": _RETRY, "conflict_group": "g"},
    "flaky": {"retry": _RETRY},
    "slow": {"retry": _RETRY, "max_concurrency": 20},
    "long": {"retry": _RETRY},
    "block": {"retry": _RETRY},
}
_MIX = ("quick", "quick", "quick", "capped", "grouped", "flaky", "slow")
WITH_LONG = (*_MIX * 2, "long")
"""Some that last longer than a processor is waited for: one that is cut off still has them when others get them."""
TARGETS = ("a", "b", "c", "d")
_AT_ONCE_MAX = 60
_BATCH_EVERY = 20
"""One submit of so many is an atomic batch."""
T = TypeVar("T")
_PAUSE_S = 0.3


@dataclass(frozen=True)
class LoadPlan:
    """``schedules`` that fire once a second each, ``submits_per_s``, and every so many submits a cancel (0: none)."""

    schedules: int = 50
    submits_per_s: float = 15
    cancel_every: int = 0
    catch_up_max: int = 1_000
    definitions: tuple[str, ...] = _MIX
    scheduled: str = "quick"


@dataclass
class Load:
    """Owner of what was promised from outside."""

    cluster: Cluster
    plan: LoadPlan
    chance: Random
    tenants: Sequence[str] = ()
    """Those of several shards, the shards' in turns; none: there is one shard, and one tenant."""
    submits: list[Submitted] = field(default_factory=list)
    cancels: list[tuple[str, float]] = field(default_factory=list)
    keys: dict[str, Submitted] = field(default_factory=dict)
    schedules: dict[str, Any] = field(default_factory=dict)
    _number: int = 0
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE_MAX))
    over: bool = False

    async def prepare(self) -> None:
        """The definitions and the schedules, before anything goes wrong."""
        for name, rules in DEFINITIONS.items():
            # Tenants of different shards can't share a conflict group.
            scope = {"conflict_scope": "tenant"} if self.tenants and "conflict_group" in rules else {}
            await self.answered(partial(_put_definition, name, {**rules, **scope}))
        await asyncio.gather(*(self._schedule(number) for number in range(self.plan.schedules)))

    async def _schedule(self, number: int) -> None:
        count = self.plan.schedules
        anchor = format_instant(WallMs(self.cluster.epoch_ms + 1_000 * number // count))
        # Most of them catch up with everything; some as their owners would have it.
        catch_up = ("all", "all", "all", "all", "latest", "none")[number % 6]
        overlap = "skip" if number % 10 == 7 else "allow"
        tenant = {"tenant": self.tenants[number % len(self.tenants)]} if self.tenants else {}
        body = {
            "name": f"every-{number}",
            "trigger": {"type": "interval", "every": "1s", "anchor": anchor},
            "misfire": {
                "grace": "1h" if catch_up == "all" else "3s",
                "catch_up": catch_up,
                "limit": self.plan.catch_up_max,
            },
            "overlap": overlap,
            # A job that takes longer than a second gives its overlap something to skip.
            "job": {
                "definition": "slow" if overlap == "skip" else self.plan.scheduled,
                "target": f"t{number}",
                **tenant,
            },
        }
        made = await self.answered(lambda scheduler: scheduler.schedules.create_document(body))
        trigger: Any = made["trigger"]
        pattern = Interval(parse_duration(trigger["every"]), parse_instant(trigger["anchor"]))
        self.schedules[made["name"]] = SimpleNamespace(
            trigger=Trigger(pattern), now=parse_instant(made["created_at"]), graph=None, **tenant
        )

    async def run(self) -> None:
        """Submit at the plan's rate until `over`; then every submit that is under way gets a last chance."""
        async with asyncio.TaskGroup() as tasks:
            while not self.over:
                if self.plan.submits_per_s <= 0:
                    await asyncio.sleep(0.1)
                    continue
                await asyncio.sleep(self.chance.expovariate(self.plan.submits_per_s))
                if self._number % _BATCH_EVERY == 0:
                    tasks.create_task(self.submit_together(self.chance.choice(self.plan.definitions)))
                else:
                    tasks.create_task(self.submit(self.chance.choice(self.plan.definitions)))
                if self.plan.cancel_every and self._number % self.plan.cancel_every == 0 and self.submits:
                    tasks.create_task(self.cancel(self.chance.choice(self.submits).id))

    async def submit(self, definition: str, **fields: Any) -> Submitted:
        self._number += 1
        key = f"chaos-{self._number}"
        submit = self.keys[key] = Submitted("", self.cluster.now_s())
        options: dict[str, Any] = {"target": self.chance.choice(TARGETS), **fields}
        if self.tenants:
            options["tenant"] = self.chance.choice(self.tenants)
        async with self._room:
            job = await self._asked(lambda scheduler: scheduler.submit(definition, idempotency_key=key, **options))
        if job is not None:
            submit.id = job.id
            submit.acknowledged = True
            self.submits.append(submit)
        return submit

    async def submit_together(self, definition: str) -> None:
        """Submit an atomic batch; its jobs have the batch's key with their numbers."""
        self._number += 1
        key = f"chaos-{self._number}"
        # Several shards take no batch of several tenants.
        tenant = {"tenant": self.chance.choice(self.tenants)} if self.tenants else {}
        jobs = [{"definition": definition, "target": target, **tenant} for target in TARGETS]
        submits = [Submitted("", self.cluster.now_s()) for _ in jobs]
        self.keys |= {f"{key}#{number}": submit for number, submit in enumerate(submits)}
        async with self._room:
            batch = await self._asked(lambda scheduler: scheduler.submit_batch(jobs, idempotency_key=key, atomic=True))
        if batch is not None:
            for submit, made in zip(submits, batch["results"], strict=True):
                submit.id, submit.acknowledged = made["job"] or "", True
            self.submits += submits

    async def cancel(self, id: str) -> None:
        """Once, whatever comes of it; what is answered is kept to."""
        async with self._room:
            with suppress(Refused, Unavailable, LookupError):
                if await self.any_scheduler().cancel(id) == CancelAnswer.CANCELLED:
                    self.cancels.append((id, self.cluster.now_s()))

    async def _asked(self, question: Callable[[AsyncScheduler], Awaitable[T]]) -> T | None:
        """The answer, or None if none came before the end. Each try is one request to any replica: who is asked when
        it is in trouble is what is looked at, so the scheduler's own patience is none."""
        while True:
            try:
                return await question(self.any_scheduler())
            except (Refused, Unavailable) as failure:
                if failure.status is not None and failure.status != 429 and failure.status < 500:
                    raise
            except LookupError:
                pass  # nobody is up
            if self.over:
                return None
            await asyncio.sleep(_PAUSE_S)

    async def answered(self, question: Callable[[AsyncScheduler], Awaitable[T]]) -> T:
        answer = await self._asked(question)
        assert answer is not None
        return answer

    def obligations(self, until_ms: int) -> int:
        """Acknowledged submits, and nominal times that have come."""
        return len(self.submits) + sum(nominal_times(schedule, until_ms) for schedule in self.schedules.values())

    def any_scheduler(self) -> AsyncScheduler:
        cluster = self.cluster
        up = [
            life
            for life in cluster.replicas.values()
            if life.up and life.stopped_at is None and life.name not in cluster.out_of_reach
        ]
        url = self.chance.choice(up).url
        return AsyncScheduler(url, http=cluster.http, patience=0, answer_timeout=ANSWER_S)


def _put_definition(name: str, rules: Any, scheduler: AsyncScheduler) -> Awaitable[Any]:
    return scheduler.definitions.put_document(name, rules)


def nominal_times(schedule: Any, until_ms: int) -> int:
    """How many there are by then."""
    count, nominal_ms = 0, next_nominal(schedule.trigger, schedule.now)
    while nominal_ms is not None and nominal_ms <= until_ms:
        count += 1
        nominal_ms = next_nominal(schedule.trigger, nominal_ms)
    return count


_AGAIN_S = 0.3


@dataclass
class Follower:
    """Owner of the events that it got; a new run of them begins where it was told of a gap."""

    load: Load
    runs: list[list[SeenEvent]] = field(default_factory=lambda: [[]])

    async def run(self) -> None:
        after: str | None = None
        while True:
            try:
                async for event in self.load.any_scheduler().events.stream(after=after):
                    if event.type == "reset":
                        self.runs.append([])
                    elif event.fields.get("job") and event.id != after:
                        self.runs[-1].append(SeenEvent(event.fields["job"], event.type))
                    after = event.id or after
            except (Refused, Unavailable, LookupError):
                pass  # the next one goes on
            await asyncio.sleep(_AGAIN_S)
