"""What users ask for meanwhile: definitions, schedules, calendars and their edits, submits, cancels, retries; and
handlers that leave their effects."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.job import TRANSITIONS, Move, NewJob
from hascheduler.model.limit_keys import limit_keys
from hascheduler.model.values.instants import WallMs
from hascheduler.processor import Handlers, JobContext
from hascheduler.schema.calendar import Calendar, Days
from hascheduler.schema.definition import Definition, KeyLimit, RateLimit
from hascheduler.schema.retry import RetryPolicy
from hascheduler.schema.schedule import CatchUp, GraphJob, JobGraph, JobTemplate, Overlap, SchedulePolicy, graph_order
from hascheduler.schema.trigger import AnyOf, CalendarUse, Cron, Interval, Once, Trigger
from hascheduler.testing.memory.database import MemoryConnection
from hascheduler.testing.memory.jobs import MemoryJobStore
from hascheduler.testing.memory.resources import MemoryResourceStore, MemoryScheduleStore
from tests.checkers.evidence import Effect, Evidence, Submitted
from tests.cluster_simulation.cluster import RETENTION_MS
from tests.cluster_simulation.database import Server
from tests.cluster_simulation.loop import EPOCH_MS, SimLoop
from tests.cluster_simulation.network import Link, Network, Remote

_RETRY = RetryPolicy(attempts_max=4, backoff_ms=200, backoff_max_ms=1_000)
DEFINITIONS = (
    Definition(name="quick", retry=_RETRY),
    Definition(
        name="capped",
        max_concurrency=2,
        key_limits=(KeyLimit(key="target", max_concurrency=1, rate_limit=RateLimit(count=20, per_ms=1_000)),),
        retry=_RETRY,
    ),
    Definition(name="grouped", conflict_group="g", retry=_RETRY),
    Definition(name="flaky", retry=_RETRY),
)
_KEYED_BY = {each.name: each.keyed_by for each in DEFINITIONS}
TARGETS = ("a", "b", "c")
TENANTS = ("default", "acme")
FIRST_DAY = EPOCH_MS // 86_400_000
NEXT_DAY = FIRST_DAY + 1


def handlers_that_tell(evidence: Evidence, loop: SimLoop, chance: Random) -> Callable[[str], Handlers]:
    """For a processor of that id: each handler takes a while, and its run is written down whatever becomes of it."""

    def make(processor: str) -> Handlers:
        handlers = Handlers()

        async def work(job: JobContext) -> str:
            effect = Effect(job.id, job.attempt, processor, loop.now_s)
            evidence.effects.append(effect)
            try:
                took_s = chance.choice((0.01, 0.01, 0.05, 0.05, 0.2, 0.2, 1.0, 4.0))
                # In peace all are quick, so that what has piled up of one group can be worked off.
                await asyncio.sleep(min(took_s, 0.05) if evidence.until_ms else took_s)
                if job.definition == "flaky" and chance.random() < 0.4:
                    raise RuntimeError("flaky")
            finally:
                effect.ended_s = loop.now_s
            return "done"

        for definition in DEFINITIONS:
            handlers.handler(definition.name)(work)
        return handlers

    return make


@dataclass
class Load:
    """One client, whose requests go to the database as the API's do. What was acknowledged is an obligation."""

    _network: Network
    _server: Server
    _evidence: Evidence
    _chance: Random
    _say: Callable[[str], None]
    _planted: Callable[[Any], Any] = lambda store: store

    def __post_init__(self) -> None:
        link, connection = Link(self._network, self._server, "client"), MemoryConnection(self._server.database)
        self._definitions = Remote(MemoryResourceStore(connection, Collection.DEFINITIONS), link)
        self._calendars = Remote(MemoryResourceStore(connection, Collection.CALENDARS), link)
        self._schedules = Remote(MemoryScheduleStore(connection), link)
        self._jobs = Remote(self._planted(MemoryJobStore(connection, RETENTION_MS)), link)
        self._loop = self._network.loop

    async def prepare(self) -> None:
        """The definitions and the schedules; before anything goes wrong."""
        for each in DEFINITIONS:
            await self._definitions.create(each)
        now = self._now()
        all_of_them = SchedulePolicy(grace_ms=3_600_000, catch_up=CatchUp.ALL)
        policies = (
            all_of_them,
            SchedulePolicy(grace_ms=2_000, catch_up=CatchUp.NONE),
            SchedulePolicy(grace_ms=2_000, catch_up=CatchUp.LATEST),
            replace(all_of_them, overlap=Overlap.SKIP),
            replace(all_of_them, overlap=Overlap.BUFFER_ONE),
        )
        for number, policy in enumerate(policies):
            every_ms = self._chance.choice((700, 1_000, 2_000))
            definition = self._chance.choice(DEFINITIONS).name
            await self._schedule(f"every-{number}", Trigger(Interval(every_ms, now)), definition, policy, now)
        # On the first day the one never fires, and the other always does.
        await self._calendars.create(_calendar("closed", FIRST_DAY))
        await self._calendars.create(_calendar("open", FIRST_DAY, NEXT_DAY))
        several = AnyOf((Interval(2_000, now), Interval(3_000, now), Cron("* * * * * */5")))
        for trigger in (
            Trigger(several, calendars=CalendarUse((), ("closed",), "UTC")),
            Trigger(Interval(1_000, now), calendars=CalendarUse(("open",), (), "UTC")),
        ):
            await self._schedule(f"every-{len(self._evidence.schedules)}", trigger, "quick", all_of_them, now)
        for overlap in (Overlap.BUFFER_ONE, Overlap.CANCEL_RUNNING):
            name, graph, policy = f"every-graph-{overlap}", _graph(), replace(all_of_them, overlap=overlap)
            trigger = Trigger(Interval(2_000, now))
            await self._create(NewSchedule(name, trigger, graph.last.template, None, {}, now, policy, graph=graph))
        for number in range(5):
            at = WallMs(now + self._chance.randrange(1_000, 40_000))
            await self._schedule(f"once-{number}", Trigger(Once(at)), "quick", all_of_them, now)

    async def run(self, until_s: float) -> None:
        number = 0
        while self._loop.now_s < until_s:
            number += 1
            await asyncio.sleep(self._chance.uniform(0.05, 0.4))
            if number % 15 == 5:
                await self._edit_calendar(self._chance.choice(("open", "closed")))
            elif number % 6 == 0 and self._evidence.submits:
                await self._cancel(self._chance.choice(self._evidence.submits).id)
            elif number % 9 == 4 and self._evidence.submits:
                await self._retry(self._ended() or self._chance.choice(self._evidence.submits).id)
            elif number % 7 == 3:
                await self._submit_batch(number)
            else:
                await self._submit(f"job:{number:06}")

    async def _submit_batch(self, number: int) -> None:
        """And two jobs that wait for it, of which one ignores failures."""
        batch, tenant = f"batch:{number}", TENANTS[number % len(TENANTS)]
        for member in range(3):
            if not await self._submit(f"job:{number:06}-{member}", tenant=tenant, batch=batch):
                return  # the API knows no batch of jobs that may not be there
        for name, ignores in (("then", False), ("at-last", True)):
            ended_well = {"depends_on": (batch,), "waits_for": (batch,), "ignores_failures": ignores}
            await self._submit(f"job:{number:06}-{name}", tenant=tenant, **ended_well)

    async def let_all_days_count(self) -> None:
        """So that no time waits for the end of its day; from the first one on."""
        for calendar in (_calendar("open", FIRST_DAY, NEXT_DAY), _calendar("closed", FIRST_DAY)):
            is_put = False
            while not is_put:
                is_put = await self._put(calendar)
                await asyncio.sleep(0.5)

    async def _edit_calendar(self, name: str) -> None:
        await self._put(_calendar(name, FIRST_DAY, *self._chance.choice(((), (NEXT_DAY,)))))

    async def _put(self, calendar: Calendar) -> bool:
        try:
            stored = await self._calendars.get(calendar.name)
            rev = None if stored is None else stored["rev"]
            await (self._calendars.create(calendar) if rev is None else self._calendars.replace(calendar, rev))
        except StoreUnavailable as error:
            self._say(f"edit of {calendar.name}: {error}")
            return False
        self._say(f"{calendar.name} has the days {calendar.include.texts()}")
        return True

    async def _submit(self, id: str, **fields: Any) -> bool:
        """Whether it is known to be there."""
        job = NewJob(
            id=id,
            definition=self._chance.choice(DEFINITIONS).name,
            target=self._chance.choice(TARGETS),
            payload={},
            tenant=TENANTS[len(self._evidence.submits) % len(TENANTS)],
            lane="default",
            fairness_key=self._chance.choice(TARGETS),
            priority=self._chance.randrange(11),
            mode="queued",
            labels={},
            submitted_at_ms=self._now(),
        )
        job = replace(job, **fields)
        job = replace(job, limit_keys=limit_keys(_KEYED_BY[job.definition], job.payload, job.target, job.labels))
        submit = Submitted(id, self._loop.now_s)
        self._evidence.submits.append(submit)
        try:
            await self._jobs.submit(job)
        except StoreUnavailable as error:
            self._say(f"submit of {id}: {error}")
            return False
        submit.acknowledged = True
        return True

    async def _cancel(self, id: str) -> None:
        try:
            self._say(f"cancel {id}: {await self._jobs.cancel(id, self._now())}")
        except StoreUnavailable as error:
            self._say(f"cancel {id}: {error}")

    async def _retry(self, id: str) -> None:
        try:
            self._say(f"retry {id}: {await self._jobs.retry(id, self._now())}")
        except StoreUnavailable as error:
            self._say(f"retry {id}: {error}")

    def _ended(self) -> str | None:
        """One of the submitted jobs that failed or were cancelled, as far as anyone was told."""
        ended = {
            commit.id: commit.after is not None and commit.after["state"] in TRANSITIONS[Move.REVIVE].sources
            for commit in self._evidence.of(Collection.JOBS)
        }
        those = [submit.id for submit in self._evidence.submits if ended.get(submit.id)]
        return self._chance.choice(those) if those else None

    async def _schedule(
        self, name: str, trigger: Trigger, definition: str, policy: SchedulePolicy, now: WallMs
    ) -> None:
        template = JobTemplate(definition, self._chance.choice(TARGETS), "default", "default", "", 5, "queued")
        await self._create(NewSchedule(name, trigger, template, {}, {}, now, policy))

    async def _create(self, schedule: NewSchedule) -> None:
        await self._schedules.create(new_schedule_document(schedule))
        self._evidence.schedules[schedule.name] = schedule

    def _now(self) -> WallMs:
        return WallMs(EPOCH_MS + int(self._loop.now_s * 1000))


def _calendar(name: str, *days: int) -> Calendar:
    return Calendar(name=name, include=Days(tuple((day, day) for day in days)))


def _graph() -> JobGraph:
    """Two that may run beside each other, one of which may fail, and one after both."""
    needs: dict[str, tuple[str, ...]] = {"a": (), "b": (), "c": ("a", "b")}
    made = {"a": "quick", "b": "flaky", "c": "quick"}
    jobs = [
        GraphJob(ref, refs, JobTemplate(made[ref], ref, "default", "default", "", 5, "queued"))
        for ref, refs in needs.items()
    ]
    return JobGraph(tuple(jobs), graph_order(list(needs.items())))
