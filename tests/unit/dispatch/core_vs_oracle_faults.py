"""The small cluster in trouble, with the same inputs for a leader, a standby, and the oracle.

Busy processors die, attempts come back, claims are lost, jobs appear that another leader dispatched, the broker takes
no messages for a while, the standby takes over, or a core that knows only a recording. After each of these
all decide on as the oracle does, which was told of nothing but the consequences.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import LOST_UNSTARTED, UNREGISTERED, Decision, Dispatch, Fail, Requeue, Settlement
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import Input, Settled, TermBegan, TransportSeen, TrustLost
from hascheduler.mirror.changes import JobGone, JobSeen, ProcessorSeen
from hascheduler.model.job import UNSTARTED_MAX, JobRef, JobState
from hascheduler.model.policy import Criteria
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.retry import LOST_ATTEMPTS_MAX_DEFAULT
from tests.unit.dispatch.core_vs_oracle import KEYS, SPANS_MS, CoreVsOracle

Pairs = list[tuple[str, str]]
_CAPACITY = {"max_concurrency", "paused", "slot"}


class CoreVsOracleFaults(CoreVsOracle):
    """Of lost claims only the leader learns, and charges them; so where some are lost no other one takes over."""

    def __init__(self, seed: int, order: Criteria | None = None) -> None:
        super().__init__(seed, order)
        chance = self._random
        self._config = DispatchConfig(
            policy=self.policy, dispatches_max=chance.choice((1, 2, 1_000)), start_timeout_ms=10**12
        )
        self.core, self.standby = Dispatcher(self._config), Dispatcher(self._config)
        self._term = 0
        self._claims_fail = chance.random() < 0.3
        self._apart: dict[str, int] = {}
        self._is_mute = False
        joined = list(map(ProcessorSeen, self.oracle.processors.values()))
        self.standby.step(self.now, joined)
        self.core.step(self.now, [*joined, self._new_term()])

    def step(self) -> tuple[Pairs, Pairs]:
        chance = self._random
        self.now = WallMs(self.now + (3_600_000 if chance.random() < 0.01 else chance.choice(SPANS_MS)))
        self.oracle.advance(self.now)
        self._end_doubts()
        inputs: list[Input] = []
        if chance.random() < 0.05 and not self._claims_fail:
            inputs.append(self._take_over())
        inputs += [fact for _ in range(chance.randint(0, 5)) for fact in self._happens()]
        self.standby.step(self.now, [fact for fact in inputs if not isinstance(fact, TermBegan)])
        repairs = self._repairs()
        if not (repairs or self._claims_fail):
            self._compare_explanations()
        decided: Pairs = []
        expected: Pairs = []
        while True:
            decisions = self._decide(inputs)
            assert [each for each in decisions if not isinstance(each, Dispatch)] == repairs
            for repair in repairs:
                # Who may start yet keeps its place until it is known that it has not.
                if repair.reason not in (UNREGISTERED, LOST_UNSTARTED):
                    self.oracle.held.pop(repair.job_id)
            decided += [(each.job_id, each.processor) for each in decisions if isinstance(each, Dispatch)]
            expected += [] if self._is_mute else self.oracle.dispatch()
            if decided != expected or not decisions:
                return decided, expected
            # Dispatches first: the standby charges them when it sees them, and what failed teaches what others cost.
            decisions.sort(key=lambda each: not isinstance(each, Dispatch))
            inputs, repairs = [fact for each in decisions for fact in self._comes_of(each)], []
            self.standby.step(self.now, [fact for fact in inputs if not isinstance(fact, Settled)])

    def _decide(self, inputs: list[Input]) -> list[Decision]:
        """All that the leader decides, in as many steps as that takes."""
        decisions: list[Decision] = []
        while more := self.core.step(self.now, inputs).decisions:
            decisions += more
            inputs = []
        return decisions

    def _repairs(self) -> list[Requeue | Fail]:
        """What must become of the jobs whose processor does not live."""
        living = self.oracle.processors.keys() - self.oracle.lost
        found: list[Requeue | Fail] = []
        for id in sorted(self.oracle.held):
            job = self._jobs[id]
            if job.processor in living:
                continue
            if job.state is JobState.RUNNING and job.losses + 1 >= LOST_ATTEMPTS_MAX_DEFAULT:
                lost = f"processor lost; {LOST_ATTEMPTS_MAX_DEFAULT} attempts lost, as many as lost_attempts allows"
                found.append(Fail(id, job.attempt, lost))
            else:
                unstarted = LOST_UNSTARTED if job.processor in self.oracle.processors else UNREGISTERED
                is_unstarted = job.state is JobState.DISPATCHED
                found.append(Requeue(id, job.attempt, unstarted if is_unstarted else "processor lost"))
        return found

    def _comes_of(self, decision: Decision) -> Iterator[Input]:
        """What the stream shows of it, or that it could not be carried out."""
        match decision:
            case Dispatch(job_id) if self._claims_fail and self._random.random() < 0.1:
                del self.oracle.held[job_id]
                self.oracle.paid.add(job_id)
                self._apart[job_id] = self.now + self._config.doubt_ms
                yield Settled(decision, Settlement.LOST)
            case Dispatch(job_id):
                for echo in self._echoes(decision):
                    yield self._not_started(echo.job) if isinstance(echo, JobSeen) else echo
            case Requeue(job_id):
                yield self._pending_again(job_id)
            case Fail(job_id):
                job = self._jobs.pop(job_id)
                self.oracle.learn(job, self.now - (job.started_at_ms or self.now))
                self.oracle.leave(job)
                yield JobGone(job_id, JobState.FAILED, self.now)

    def _not_started(self, job: JobRef) -> JobSeen:
        """Most are shown when they run already, as they would be after a while without news."""
        if self._random.random() < 0.8:
            self.oracle.rests.pop(job.processor or "", None)
            return JobSeen(job)
        return self._write(job.id, state=JobState.DISPATCHED, started_at_ms=None)

    def _pending_again(self, job_id: str, not_before_ms: int | None = None) -> JobSeen:
        seen = self._write(
            job_id, state=JobState.PENDING, processor=None, dispatched_at_ms=None, started_at_ms=None,
            not_before_ms=not_before_ms,
        )  # fmt: skip
        self.oracle.held.pop(job_id, None)
        self.oracle.waiting[job_id] = seen.job
        return seen

    def _write(self, job_id: str, **changes: Any) -> JobSeen:
        known = self._jobs[job_id]
        job = self._jobs[job_id] = replace(known, rev=known.rev + 1, **changes)
        return JobSeen(job)

    # Who leads

    def _new_term(self) -> TermBegan:
        self._term += 1
        return TermBegan(self._term)

    def _take_over(self) -> TermBegan:
        """The standby takes over, or a new core does that starts from the beginning of a recording."""
        if self._random.random() < 0.3:
            snapshot = [fact for fact in self.core.state_snapshot(self.now) if not isinstance(fact, TermBegan)]
            self.core, self.standby = Dispatcher(self._config), Dispatcher(self._config)
            for core in (self.core, self.standby):
                core.step(self.now, snapshot)
            self.oracle.begin_anew()
            self._tick()
        else:
            self.core.step(self.now, [TrustLost()])
            self.core, self.standby = self.standby, self.core
        return self._new_term()

    def _tick(self) -> None:
        self.now = WallMs(self.now + 1)
        self.oracle.advance(self.now)

    # What they say

    def _compare_explanations(self) -> None:
        """A core that does not lead has seen no decision yet: for it all that may run still waits."""
        oracle = self.oracle
        blocks = {id: oracle.blocks(job) for id, job in sorted(oracle.waiting.items())}
        may_go = sorted((oracle.waiting[id] for id, rules in blocks.items() if not rules), key=oracle.worth)
        queued = [oracle.waiting[id] for id, rules in blocks.items() if rules <= _CAPACITY]
        in_line = sorted((job for job in queued if oracle.could_run(job)), key=oracle.worth)
        for id in list(blocks)[:6]:
            explanation = self.standby.explain(id, self.now)
            assert explanation is not None
            rules = {each.rule for each in explanation.blocks}
            named = {
                "slot" if rule in (BlockReason.NO_SLOT, BlockReason.UNSCHEDULABLE) else str(rule) for rule in rules
            }
            assert named == blocks[id], id
            assert (BlockReason.UNSCHEDULABLE in rules) == (not oracle.could_run(oracle.waiting[id])), id
            rivals = may_go if not rules else in_line
            standing = explanation.position
            assert (standing is None) == (oracle.waiting[id] not in rivals), id
            if standing is not None:
                assert (standing.ahead, standing.first) == (rivals.index(oracle.waiting[id]), rivals[0].id), id

    # What happens

    def _kinds(self) -> list[tuple[int, Callable[[], Iterator[Input]]]]:
        return [
            *super()._kinds(), (6, self._give_back), (5, self._appear), (8, self._miss), (4, self._edit),
            (3, self._fall_silent), (4, self._tell_of_doubtful),
        ]  # fmt: skip

    def _end(self, job_id: str) -> Input:
        """One that has not started can't have succeeded: it starts now, or is cancelled."""
        job = self._jobs[job_id]
        if job.state is JobState.RUNNING:
            return super()._end(job_id)
        if self._random.random() < 0.6:
            self.oracle.rests.pop(job.processor or "", None)
            return self._write(job_id, state=JobState.RUNNING, started_at_ms=self.now)
        del self._jobs[job_id]
        self.oracle.leave(job)
        return JobGone(job_id, JobState.CANCELLED, self.now)

    def _give_back(self) -> Iterator[Input]:
        """A processor does, at once or to be tried again later."""
        if self.oracle.held:
            id = self._random.choice(sorted(self.oracle.held))
            yield self._pending_again(id, self._random.choice((None, None, self.now + 500)))

    def _miss(self) -> Iterator[Input]:
        """A processor did not take up a job, so a leader has called it back."""
        unstarted = sorted(id for id in self.oracle.held if self._jobs[id].state is JobState.DISPATCHED)
        if unstarted:
            job = self._jobs[self._random.choice(unstarted)]
            if job.unstarted + 1 < UNSTARTED_MAX:
                self._jobs[job.id] = replace(job, unstarted=job.unstarted + 1)
                self.oracle.missed(job.processor or "")
                yield self._pending_again(job.id)

    def _appear(self) -> Iterator[Input]:
        """Another leader dispatched it, within its limits or not."""
        if not self.oracle.processors:
            return
        [fresh] = super()._submit()
        assert isinstance(fresh, JobSeen)
        seen = self._write(
            fresh.job.id, state=JobState.RUNNING, attempt=self._random.randint(1, 6), started_at_ms=self.now,
            processor=self._random.choice(sorted(self.oracle.processors)),
            dispatched_at_ms=self.now,
        )  # fmt: skip
        assert seen.job.processor is not None
        self.oracle.rests.pop(seen.job.processor, None)
        self.oracle.hold(seen.job, seen.job.processor)
        yield seen

    def _edit(self) -> Iterator[Input]:
        """What no interface offers today: a waiting job becomes another's, or another kind of work."""
        chance = self._random
        if self.oracle.waiting:
            known = self._jobs[chance.choice(sorted(self.oracle.waiting))]
            seen = self._write(
                known.id, fairness_key=chance.choice(KEYS), definition=chance.choice("xyzw"),
                tenant=chance.choice(self._tenants), target=chance.choice("tu"),
                mode=chance.choice(("queued", "on_demand")),
            )  # fmt: skip
            if (seen.job.tenant, seen.job.fairness_key) != (known.tenant, known.fairness_key):
                self.oracle.arrive(seen.job)
                self.oracle.leave(known)
            self.oracle.waiting[known.id] = seen.job
            yield seen

    def _fall_silent(self) -> Iterator[Input]:
        self._is_mute = not self._is_mute
        yield TransportSeen(accepting=not self._is_mute)

    def _fall_out(self) -> Iterator[Input]:
        """Any processor, whatever runs there."""
        if self.oracle.processors:
            id = self._random.choice(sorted(self.oracle.processors))
            yield self._lost(id) if self._random.random() < 0.6 else self._gone(id)

    def _tell_of_doubtful(self) -> Iterator[Input]:
        """The job was read again: it is as it was, or it has ended."""
        if self._apart:
            id = self._random.choice(sorted(self._apart))
            del self._apart[id]
            if self._random.random() < 0.5:
                job = self._jobs.pop(id)
                self.oracle.leave(job)
                self.oracle.paid.discard(id)
                yield JobGone(id, JobState.CANCELLED)
            else:
                seen = self._write(id)
                self.oracle.waiting[id] = seen.job
                yield seen

    def _end_doubts(self) -> None:
        for id, until_ms in list(self._apart.items()):
            if until_ms <= self.now:
                del self._apart[id]
                self.oracle.waiting[id] = self._jobs[id]
