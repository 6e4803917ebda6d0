"""A small random cluster, with the same inputs for the core and the oracle: in each step they must decide the same."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.dispatch.decisions import Dispatch, Settlement
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input, ProcessorLost, Settled, TermBegan
from hascheduler.mirror.changes import JobGone, JobSeen, NounSeen, ProcessorGone, ProcessorSeen
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.policy import PRESETS, Criteria, Criterion, IdleKeyStart
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.resources import resources
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.definition import ConflictScope, Definition, KeyLimit, RateLimit
from hascheduler.schema.lane import Lane
from hascheduler.schema.pause import EVERYTHING, StandingPause, drain_id
from hascheduler.schema.tenant import Tenant
from tests.unit.dispatch.nouns import make_job, make_processor, noun_seen, wall
from tests.unit.dispatch.oracle import Oracle

KEYS = "abc"
LIMIT_KEYS = ("payload.customer", "payload.region")
TENANTS = "TUV"
NEVER_MS = 10**15
"""So late that no job expires: which of them goes first is compared here, not what becomes of those that expire."""
SPANS_MS = (0, 0, 1, 40, 500, 1_000, 10_000, 61_000, 64_000, 300_000)


class CoreVsOracle:
    """Values are few, so that ties, caps and conflicts happen all the time. All chance comes from ``seed``."""

    def __init__(self, seed: int, order: Criteria | None = None) -> None:
        self._random = chance = Random(seed)
        self.policy = PolicyConfig(
            criteria=order or _any_criteria(chance),
            max_concurrency=chance.choice((None, None, 3, 6)),
            on_demand_bonus_max=chance.choice((None, 4_096_000, 5_000_000, 20_480_000)),
            idle_key_start=chance.choice(list(IdleKeyStart)),
            learn_cost=chance.random() < 0.7,
            cost_alpha=chance.choice((300, 1_000, 0)),
            idle_ttl_ms=chance.choice((24 * 3_600_000, 60_000)),
        )
        self.core = Dispatcher(DispatchConfig(policy=self.policy))
        self.oracle = Oracle(self.policy)
        self.now = wall(0)
        self._jobs: dict[str, JobRef] = {}
        self._count = 0
        self._tenants = TENANTS[: chance.choice((1, 2, 3, 3))]
        self.oracle.advance(self.now)
        self.core.step(self.now, [TermBegan(1), *(fact for _ in range(chance.randint(1, 3)) for fact in self._join())])

    def step(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Time passes, things happen, both decide: what the core dispatches, and what the oracle does."""
        self.now = WallMs(self.now + (3_600_000 if self._random.random() < 0.01 else self._random.choice(SPANS_MS)))
        self.oracle.advance(self.now)
        inputs = [fact for _ in range(self._random.randint(0, 5)) for fact in self._happens()]
        decisions = self.core.step(self.now, inputs).decisions
        dispatches = [each for each in decisions if isinstance(each, Dispatch)]
        assert len(dispatches) == len(decisions)
        expected = self.oracle.dispatch()
        if [(each.job_id, each.processor) for each in dispatches] == expected:
            rest = self.core.step(self.now, [echo for each in dispatches for echo in self._echoes(each)])
            assert rest.decisions == (), "everything that may go goes in one step"
        return [(each.job_id, each.processor) for each in dispatches], expected

    def waiting(self, count: int) -> list[JobRef]:
        return [self.oracle.waiting[id] for id in sorted(self.oracle.waiting)[:count]]

    def _echoes(self, dispatch: Dispatch) -> Iterator[Input]:
        known = self._jobs[dispatch.job_id]
        job = replace(
            known, rev=known.rev + 2, state=JobState.RUNNING, attempt=dispatch.attempt, processor=dispatch.processor,
            dispatched_at_ms=self.now, started_at_ms=self.now,
        )  # fmt: skip
        self._jobs[job.id] = job
        yield JobSeen(job)
        yield Settled(dispatch, Settlement.DONE)

    # What happens

    def _happens(self) -> Iterator[Input]:
        kinds = self._kinds()
        [happen] = self._random.choices([what for _, what in kinds], [weight for weight, _ in kinds])
        return happen()

    def _kinds(self) -> list[tuple[int, Callable[[], Iterator[Input]]]]:
        """What may happen, and how often it does."""
        return [
            (50, self._submit), (25, self._finish), (5, self._cancel), (6, self._reprioritize), (4, self._define),
            (1, self._undefine), (3, self._set_lane), (1, self._set_tenant), (3, self._join), (2, self._fall_out),
            (2, self._pause), (2, self._drain),
        ]  # fmt: skip

    def _submit(self) -> Iterator[Input]:
        chance = self._random
        self._count += 1
        id = chance.choice((f"j{self._count}", f"j{self._count}", f"fire:s:{self._count}"))
        # Three schedules have that name, one after the other; and some jobs do not say of which they are.
        created_at_ms = WallMs(chance.choice((1, 2, 3))) if id.startswith("fire") and chance.random() < 0.8 else None
        job = make_job(
            id, definition=chance.choice("xyzw"), target=chance.choice(("t", "u", id)),
            tenant=chance.choice(self._tenants), lane=chance.choice("LM"), fairness_key=chance.choice(KEYS),
            priority=chance.choice((0, 5, 5, 10, chance.randrange(11))),
            mode=chance.choice(("queued", "queued", "on_demand")), sequence=chance.randrange(3),
            submitted_at_ms=WallMs(self.now - chance.choice((0, 0, 0, 1_000, 64_000, 400_000))),
            not_before_ms=chance.choice((None, None, None, self.now + 1_000)),
            serial=id.startswith("fire") and chance.random() < 0.7,
            resources=chance.choice((None, None, None, resources({"cpu": 2}), ())),
            schedule_created_at_ms=created_at_ms,
            expires_at_ms=WallMs(NEVER_MS + chance.choice((1, 2, 2, 3))) if chance.random() < 0.6 else None,
            limit_keys=tuple((key, chance.choice(("1", "2", ""))) for key in LIMIT_KEYS if chance.random() < 0.7),
        )  # fmt: skip
        self._jobs[id] = job
        self.oracle.arrive(job)
        yield JobSeen(job)

    def _finish(self) -> Iterator[Input]:
        if self.oracle.held:
            yield self._end(self._random.choice(sorted(self.oracle.held)))

    def _end(self, job_id: str) -> Input:
        job = self._jobs.pop(job_id)
        state = self._random.choice((JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED))
        elapsed_ms = self._random.choice((0, 100, 1_000, 5_000))
        if state is not JobState.CANCELLED:
            self.oracle.learn(job, elapsed_ms)
        self.oracle.leave(job)
        return JobGone(job.id, state, WallMs((job.started_at_ms or 0) + elapsed_ms))

    def _cancel(self) -> Iterator[Input]:
        if self.oracle.waiting:
            job = self._jobs.pop(self._random.choice(sorted(self.oracle.waiting)))
            self.oracle.leave(job)
            yield JobGone(job.id, JobState.CANCELLED)

    def _reprioritize(self) -> Iterator[Input]:
        if self.oracle.waiting:
            known = self._jobs[self._random.choice(sorted(self.oracle.waiting))]
            job = replace(known, rev=known.rev + 1, priority=self._random.randrange(11), lane=self._random.choice("LM"))
            self._jobs[job.id] = self.oracle.waiting[job.id] = job
            yield JobSeen(job)

    def _define(self) -> Iterator[Input]:
        chance = self._random
        definition = Definition(
            name=chance.choice("xyz"),
            max_concurrency=chance.choice((None, None, 1, 2)),
            default_cost_ms=chance.choice((0, 1_000, 1_000, 3_000)),
            conflict_group=chance.choice((None, None, "g", "h")),
            conflict_scope=chance.choice(list(ConflictScope)),
            tier=chance.choice((None, 1, 2, 3)),
            rate_limit=chance.choice(
                (None, None, None, RateLimit(count=1, per_ms=1_000), RateLimit(count=2, per_ms=700))
            ),
            resources=resources(chance.choice(({}, {}, {"cpu": 1}, {"cpu": 3, "mem": 1}))),
            key_limits=tuple(
                KeyLimit(
                    key=key,
                    max_concurrency=chance.choice((None, 1, 2)),
                    rate_limit=chance.choice(
                        (None, None, RateLimit(count=1, per_ms=800), RateLimit(count=2, per_ms=9_000))
                    ),
                )
                for key in LIMIT_KEYS
                if chance.random() < 0.3
            ),
        )
        self.oracle.define(definition.name, definition)
        yield noun_seen(definition)

    def _undefine(self) -> Iterator[Input]:
        if self.oracle.definitions:
            name = self._random.choice(sorted(self.oracle.definitions))
            self.oracle.define(name, None)
            yield NounSeen(Collection.DEFINITIONS, name)

    def _set_lane(self) -> Iterator[Input]:
        chance, name = self._random, self._random.choice("LM")
        if self.oracle.lanes.pop(name, None) and chance.random() < 0.3:
            yield NounSeen(Collection.LANES, name)
            return
        steps = chance.choice(((60_000,), (1_000,), tuple(range(1_000, 12_000, 1_000))))
        own = _any_criteria(chance)
        lane = Lane(
            name=name,
            rev=1,
            weight=chance.randint(1, 3),
            promote_after_ms=steps,
            criteria=chance.choice((None, own, own)),
        )
        self.oracle.lanes[name] = lane
        yield noun_seen(lane)

    def _set_tenant(self) -> Iterator[Input]:
        name = self._random.choice(TENANTS)
        if self.oracle.tenants.pop(name, None) and self._random.random() < 0.3:
            yield NounSeen(Collection.TENANTS, name)
            return
        tenant = Tenant(name=name, rev=1, max_running=self._random.choice((None, 1, 2)))
        self.oracle.tenants[name] = tenant
        yield noun_seen(tenant)

    def _pause(self) -> Iterator[Input]:
        """Everything is paused, or goes on: the latter more often, or little would be compared."""
        if self.oracle.pause is not None:
            self.oracle.pause = None
            yield NounSeen(Collection.PAUSES, EVERYTHING)
        elif self._random.random() < 0.15:
            of_schedules = self._random.random() < 0.3
            self.oracle.pause = StandingPause(
                id=EVERYTHING, rev=1, since_ms=self.now, by="deployer", schedules_only=of_schedules
            )
            yield noun_seen(self.oracle.pause)

    def _drain(self) -> Iterator[Input]:
        """A name is drained or undrained, whether or not a processor has it at the moment."""
        name = self._random.choice("pqr")
        if name in self.oracle.drained:
            self.oracle.drained.discard(name)
            yield NounSeen(Collection.PAUSES, drain_id(name))
        elif self._random.random() < 0.15:
            self.oracle.drained.add(name)
            yield noun_seen(StandingPause(id=drain_id(name), rev=1, since_ms=self.now, by="deployer"))

    def _join(self) -> Iterator[Input]:
        """A processor registers, or comes back, or changes, or begins to drain."""
        chance, id = self._random, self._random.choice("pqr")
        known = self.oracle.processors.get(id)
        processor: ProcessorRef = make_processor(
            id, definitions=frozenset(chance.choice(("*", "x", "y", "xy", "yz", "xyz"))), slots=chance.randint(1, 3),
            beat=1 if known is None else known.beat + 1, draining=chance.random() < 0.1,
            resources=resources(chance.choice(({}, {"cpu": 2}, {"cpu": 4, "mem": 2}))),
        )  # fmt: skip
        if known is not None and known.draining and not processor.draining and id in self.oracle.rests:
            self.oracle.rests[id].until_ms = self.now
        self.oracle.processors[id] = processor
        self.oracle.lost.discard(id)
        yield ProcessorSeen(processor)

    def _fall_out(self) -> Iterator[Input]:
        """An idle processor dies or leaves; what becomes of the jobs of a busy one is another room's test."""
        idle = self.oracle.processors.keys() - {held.processor for held in self.oracle.held.values()}
        if not idle:
            return
        id = self._random.choice(sorted(idle))
        yield self._gone(id) if self._random.random() >= 0.5 else self._lost(id)

    def _lost(self, id: str) -> Input:
        self.oracle.lost.add(id)
        return ProcessorLost(id, self.oracle.processors[id].beat)

    def _gone(self, id: str) -> Input:
        del self.oracle.processors[id]
        self.oracle.rests.pop(id, None)
        self.oracle.lost.discard(id)
        return ProcessorGone(id)


def _any_criteria(chance: Random) -> Criteria:
    chance = Random(chance.random())  # one number, however many criteria there are: what else happens stays as it was
    some = [each for each in Criterion if each is not Criterion.ARRIVAL]
    chance.shuffle(some)
    own: Criteria = (*some[: chance.randint(0, len(some))], Criterion.ARRIVAL)
    return chance.choice((*PRESETS.values(), own, own, own, own))
