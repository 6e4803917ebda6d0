"""People, processors, faults and one leadership after another: a world that goes on by chance, one act at a time.

The database checks each write (see `database`), `World` each decision. `heal` lets the faults cease, and then nothing
may stay undone: every due nominal time has one verdict, every job ends, and no journal entry stays open.
"""

from collections.abc import Callable
from typing import TypeGuard

from hascheduler.dispatch.decisions import Cancel, Dispatch, Fire, Publish, RecordVerdict, Send, Settlement
from hascheduler.dispatch.inputs import ProcessorLost, Settled, TransportSeen
from hascheduler.model.collection import Collection
from hascheduler.model.job import LIVE, TRANSITIONS, JobState, Move, NewJob
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from hascheduler.schema.definition import RateLimit
from hascheduler.schema.tenant import Tenant
from tests.unit.dispatch.chance import Chance
from tests.unit.dispatch.database import Database
from tests.unit.dispatch.leadership import Leadership, Luck
from tests.unit.dispatch.nouns import make_processor, wall
from tests.unit.dispatch.timetable import Timetable

SLOTS = 2
PROCESSORS_MAX = 4
DEFINITIONS = ("x", "y")
ENDS = {"succeed": JobState.SUCCEEDED, "fail": JobState.FAILED, "stop": JobState.CANCELLED}
HEALING_ROUNDS_MIN, HEALING_ROUNDS_MAX = 20, 80  # the least: long enough for overdue promises to be decided again
OPEN_ENTRIES_MAX = 3  # a healthy leader's newest are still on their way


class World:
    def __init__(self, chance: Chance, *, limited: bool = False) -> None:
        self.chance = chance
        self._more: list[Callable[[], None]] = [self.limit] * 3 if limited else []
        self.now = wall(0)
        self.database = Database()
        self.timetable = Timetable(chance, self.database)
        self.leadership = Leadership(self.database, self._publish)
        self._messages: list[Publish] = []
        self._deaf = False
        self._dead: set[str] = set()
        self._concluded: set[tuple[int, int, Fire | RecordVerdict]] = set()
        self._fired: dict[str, int | None] = {}
        """When the schedule was created that decided to make the job."""
        self._calm = True
        self._unlucky: bool | None = None
        self._numbers = self._batches = 0
        self.database.register(make_processor("p0", slots=SLOTS))
        self.timetable.create_plain("tick", self.now)
        self.leadership.take_over(self.now)
        self.leadership.deliver(100)
        self.leadership.begin()

    def live(self, acts: int) -> None:
        for _ in range(acts):
            self.act()
        self.heal()

    def act(self) -> None:
        """One thing happens; the ordinary ones most often, so that a run gets somewhere."""
        if self._unlucky is None:
            self._unlucky = self.chance.among([False, True])
        ordinary: list[Callable[[], None]] = [self.go_round] * 10 + [self.work] * 8 + [self.submit] * 3
        rare = [
            self.cancel, self.change_schedule, self.register_processor, self.live_or_die, self.pass_time, self.deliver,
            self.step, self.write_journal, self.carry_out, self.lose_messages, self.end_term, self.take_over,
            self.wake_old_leader, self.reprioritize, self.revive,
        ]  # fmt: skip
        self.chance.among(ordinary + rare + self._more)()
        self._check_slots()

    # People

    def submit(self) -> None:
        not_before = self.chance.among([None, None, WallMs(self.now + 500)])
        expires_at = self.chance.among([None, None, None, WallMs(self.now + 2_000)])
        jobs = self.database.jobs
        others = [id for id in list(jobs)[-6:] if id.startswith("job") and jobs[id]["state"] != JobState.SUCCEEDED]
        waits_for = {self.chance.among(others) for _ in range(self.chance.among([0, 0, 0, 1, 2]))} if others else set()
        batch = self.chance.among([None, None, f"batch:{self._batches}"])
        if batch is None and self._batches and self.chance.among([True, False]):
            waits_for.add(f"batch:{self.chance.among(range(max(self._batches - 2, 1), self._batches + 1))}")
        if batch is not None:
            # What joins a batch that others may wait for already waits for none of those.
            waits_for = {id for id in waits_for if not jobs[id]["depends_on"]}
        if self.chance.among([True, False, False]):
            self._batches += 1
        self._numbers += 1
        self.database.submit(
            NewJob(
                id=f"job{self._numbers}", definition=self.chance.among(DEFINITIONS), target="t", payload=None,
                tenant="default", lane="default", fairness_key="", priority=self.chance.among(range(11)), mode="queued",
                labels={}, submitted_at_ms=self.now, not_before_ms=not_before, expires_at_ms=expires_at,
                batch=batch, depends_on=tuple(sorted(waits_for)), waits_for=tuple(sorted(waits_for)),
                ignores_failures=self.chance.among([False, False, True]),
            )
        )  # fmt: skip

    def cancel(self) -> None:
        live = [id for id, job in self.database.jobs.items() if job["state"] in LIVE]
        if live:
            self.database.cancel(self.chance.among(live), self.now)

    def reprioritize(self) -> None:
        if self.database.jobs:
            self.database.reprioritize(self.chance.among(list(self.database.jobs)), self.chance.among(range(11)))

    def revive(self) -> None:
        ended = [id for id, job in self.database.jobs.items() if job["state"] in TRANSITIONS[Move.REVIVE].sources]
        if ended:
            id = self.chance.among(ended)
            again = [each for each in self.database.jobs[id]["depends_on"] if self.chance.among([True, False])]
            self.database.revive(id, again)

    def limit(self) -> None:
        """The one tenant gets other limits, or none: its fires must have room then."""
        rates = [None, None, RateLimit(count=1, per_ms=1_000), RateLimit(count=3, per_ms=5_000)]
        most = self.chance.among([None, 1, 2, 4])
        self._numbers += 1
        self.database.limit(
            Tenant(name="default", rev=self._numbers, max_pending=most, fire_rate=self.chance.among(rates))
        )

    def change_schedule(self) -> None:
        self.now = self.timetable.change(self.now)

    # Processors

    def register_processor(self) -> None:
        self._numbers += 1
        if len(self.database.documents[Collection.PROCESSORS]) < PROCESSORS_MAX:
            supported = frozenset({self.chance.among([*DEFINITIONS, "*"])})
            self.database.register(make_processor(f"p{self._numbers}", definitions=supported, slots=SLOTS))

    def live_or_die(self) -> None:
        ids = sorted(self.database.documents[Collection.PROCESSORS])
        id = self.chance.among(["nobody", *ids])
        match self.chance.among(["beat", "suspect", "die", "leave"]):
            case "beat" if id not in self._dead:
                self.database.beat(id)
            case "leave":
                self.database.delete(Collection.PROCESSORS, id)
                self._dead.add(id)
            case "die":
                self._dead.add(id)
                self._lose(id)
            case _:
                self._lose(id)

    def _lose(self, id: str) -> None:
        known = self.leadership.mirror.nouns(Collection.PROCESSORS).get(id)
        if known is not None:
            self.leadership.inputs.append(ProcessorLost(id, known.beat))

    def work(self) -> None:
        """Some messages arrive, perhaps twice; some attempts end, even of processors that are thought dead."""
        for message in list(self._messages):
            fate = self.chance.among(["later", "start", "start", "start", "again", "lost"])
            if fate in ("start", "lost"):
                self._messages.remove(message)
            if fate in ("start", "again") and message.processor not in self._dead:
                self.database.start(message.job_id, message.attempt, message.processor)
        for id, job in list(self.database.jobs.items()):
            if job["processor"] and job["processor"] not in self._dead:
                self._end(
                    id, self.chance.among(["later", "later", "succeed", "fail", "stop", "give back", "try again"])
                )

    def _end(self, id: str, fate: str) -> None:
        job = self.database.jobs[id]
        if fate in ENDS:
            self.database.finish(id, job["attempt"], job["processor"], ENDS[fate])
        elif fate == "try again":
            self.database.try_again(id, job["attempt"], job["processor"], WallMs(self.now + 300))
        elif fate == "give back":
            self.database.give_back(id, job["attempt"], job["processor"])

    def _publish(self, send: Send) -> None:
        if isinstance(send, Publish) and not self._deaf:
            self._messages.append(send)

    def lose_messages(self) -> None:
        self._deaf = self.chance.among([True, False])
        self.leadership.inputs.append(TransportSeen(self.chance.among([True, True, False])))

    # The replica

    def pass_time(self) -> None:
        self.now = WallMs(self.now + self.chance.among([1, 100, 1_000, 6_000]))

    def deliver(self) -> None:
        self.leadership.deliver(self.chance.among(range(1, 20)))

    def step(self) -> None:
        if not self.leadership.has_room:
            return
        # What came before one that was lost may be decided again: that changes nothing.
        lost = {getattr(each.decision, "schedule", None) for each in self.leadership.inputs if _is_lost(each)}
        self._concluded = {concluded for concluded in self._concluded if concluded[2].schedule not in lost}
        step = self.leadership.step(self.now)
        fires = (decision for decision in step.decisions if isinstance(decision, Fire))
        self._fired |= {fire.job_id: fire.basis.created_at_ms for fire in fires}
        term = self.leadership.term.number if self.leadership.term is not None else 0
        if step.retried:
            return
        for decision in step.decisions:
            if isinstance(decision, Fire | RecordVerdict):
                made_at_ms = self.leadership.mirror.nouns(Collection.SCHEDULES)[decision.schedule].created_at_ms
                assert (term, made_at_ms, decision) not in self._concluded, f"{decision} was decided twice in one term"
                self._concluded.add((term, made_at_ms, decision))
                if isinstance(decision, RecordVerdict) and decision.run.verdict is Verdict.SKIPPED:
                    assert self._made_at(decision.run.because_of or "") == made_at_ms, f"{decision} names a stranger"
            elif isinstance(decision, Cancel) and decision.reason.startswith("replaced by "):
                by = decision.reason.removeprefix("replaced by ")
                assert self._made_at(decision.job_id) == self._made_at(by), f"{decision} is about a stranger"
            elif isinstance(decision, Dispatch):
                processor = self.leadership.mirror.nouns(Collection.PROCESSORS)[decision.processor]
                assert self.leadership.core.state.pool.is_live(processor.id)
                assert self.leadership.core.occupied(processor.id) <= processor.slots

    def _made_at(self, job_id: str) -> int:
        """When the schedule was created that made the job, or is about to: another one may have its name by now."""
        job = self.database.jobs.get(job_id)
        return int(self._fired[job_id] or 0 if job is None else job["schedule_created_at_ms"])

    def write_journal(self) -> None:
        if self.leadership.term is not None and self.leadership.term.to_journal:
            self.leadership.write_journal()

    def carry_out(self) -> None:
        if self.leadership.term is not None and self.leadership.term.to_apply:
            luck = self.chance.among([Luck.GOOD] * 8 + list(Luck)) if self._unlucky else Luck.GOOD
            self._calm = self._calm and luck is Luck.GOOD
            self.leadership.carry_out(self.now, luck, from_place=self.chance.among(range(4)))

    def go_round(self) -> None:
        self.now = WallMs(self.now + self.chance.among([50, 200, 400]))
        self.leadership.deliver(self.chance.among([5, 20, 100]))
        self.leadership.fetch()
        if self.leadership.may_begin:
            self.leadership.begin()
        turns = [self.step, self.write_journal, self.carry_out]
        for turn in turns[: self.chance.among([0, 1, 2, 3, 3, 3, 3, 3])]:
            turn()

    # Leaders come and go

    def end_term(self) -> None:
        overlap = self.chance.among(range(6))
        match self.chance.among(["crash", "lose", "resync", "stay"]):
            case "crash":
                self.leadership.crash(overlap)
            case "resync":
                self.leadership.resync(overlap)
            case "lose":
                self.leadership.lose_term()

    def take_over(self) -> None:
        if self.leadership.term is None and not self.leadership.taking_over:
            self.leadership.take_over(self.now)

    def wake_old_leader(self) -> None:
        if self.leadership.paused:
            self.leadership.resume_paused(self.chance.among(range(len(self.leadership.paused))), self.now)

    # What must hold

    def _check_slots(self) -> None:
        if self._calm:
            for id, processor in self.database.documents[Collection.PROCESSORS].items():
                assert len(self.database.occupants(id)) <= processor["slots"], f"{id} is overbooked"

    def heal(self) -> None:
        """Let the faults cease; raises where something stays undone."""
        self._deaf = False
        self.leadership.inputs.append(TransportSeen(True))
        if self._more:
            self.database.delete(Collection.TENANTS, "default")
        self.take_over()
        self.database.register(make_processor("healer", slots=1_000))
        horizon = self.now
        for healing_round in range(HEALING_ROUNDS_MAX):
            self._heal_a_little()
            if healing_round >= HEALING_ROUNDS_MIN and not self._undone(horizon):
                self._check_that_the_mind_is_right()
                return
        raise AssertionError(f"left undone: {self._undone(horizon)}")

    def _heal_a_little(self) -> None:
        while self.leadership.paused:
            self.leadership.resume_paused(0, self.now)
        for id in self.database.documents[Collection.PROCESSORS]:
            if id in self._dead:
                self._lose(id)
            else:
                self.database.beat(id)
        self._carry_through()
        for message in self._messages:
            if message.processor not in self._dead:
                self.database.start(message.job_id, message.attempt, message.processor)
        self._messages.clear()
        for id, job in list(self.database.jobs.items()):
            if job["state"] == JobState.RUNNING and job["processor"] not in self._dead:
                self._end(id, "succeed")
        self.now = WallMs(self.now + 600)

    def _carry_through(self) -> None:
        self.leadership.deliver(10_000)
        self.leadership.fetch()
        if self.leadership.may_begin:
            self.leadership.begin()
        self.step()
        term = self.leadership.term
        assert term is not None
        while term.to_journal:
            self.leadership.write_journal()
        while term.to_apply:
            self.leadership.carry_out(self.now, Luck.GOOD)

    def _check_that_the_mind_is_right(self) -> None:
        for _ in range(5):
            self._carry_through()
        for id in self.database.documents[Collection.PROCESSORS]:
            assert self.leadership.core.occupied(id) == len(self.database.occupants(id)), f"slots of {id} leaked"
        self.timetable.check_tallies()

    def _undone(self, horizon: WallMs) -> list[str]:
        jobs = self.database.jobs
        undone = [id for id, job in jobs.items() if job["submitted_at_ms"] <= horizon and job["state"] in LIVE]
        undone += self.timetable.undecided(horizon)
        term = self.leadership.term
        if term is None:
            return [*undone, "nobody leads"]
        oldest = next(iter(term.open), None)
        if oldest is not None and oldest <= len(self.leadership.journal) - OPEN_ENTRIES_MAX:
            undone.append(f"entry {oldest} of {len(self.leadership.journal)} is open: {term.open[oldest]}")
        return undone


def _is_lost(input: object) -> TypeGuard[Settled]:
    return isinstance(input, Settled) and input.settlement is Settlement.LOST
