"""Everything at once: a random world drives the core, and what must hold is checked after every step.

The database checks each write (see `database`); here it is the decisions, and at the end that nothing was left undone:
once the faults cease, every due nominal time has its job, every job ends, and no journal entry stays open.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hascheduler.dispatch.decisions import Dispatch, Fire, Publish, Send
from hascheduler.dispatch.inputs import ProcessorLost
from hascheduler.model.documents import Collection
from hascheduler.model.instants import WallMs
from hascheduler.model.job import LIVE, JobState, NewJob, fire_job_id
from hascheduler.model.trigger import IntervalTrigger
from hascheduler.triggers import next_nominal
from tests.dispatch.database import Database
from tests.dispatch.leadership import Leadership, Luck
from tests.dispatch.nouns import make_processor, make_schedule, wall

SLOTS = 2
DEFINITIONS = ("x", "y")
EVERY_MS = {"tick": 1_000, "tock": 700}
COUNTS = st.integers(0, 6)


class World(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = wall(0)
        self.database = Database()
        self.messages: list[Publish] = []
        self.leadership = Leadership(self.database, self.publish)
        self.deaf = False
        self.dead: set[str] = set()
        self.fired: set[tuple[int, int, Fire]] = set()
        self.calm = True
        self.numbers = 0

    @initialize()
    def begin(self) -> None:
        self.register_processor("*")
        self.make_schedule("tick")
        self.take_over()
        self.leadership.deliver(100)
        self.leadership.begin()

    def publish(self, send: Send) -> None:
        if isinstance(send, Publish) and not self.deaf:
            self.messages.append(send)

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    # People

    @rule(definition=st.sampled_from(DEFINITIONS), priority=st.integers(0, 10), wait=st.sampled_from([None, 500]))
    def submit(self, definition: str, priority: int, wait: int | None) -> None:
        not_before = None if wait is None else WallMs(self.now + wait)
        self.database.submit(
            NewJob(
                f"job{self.number()}", definition, "t", None, "default", "default", "", priority, "queued", {},
                self.now, not_before_ms=not_before,
            )
        )  # fmt: skip

    @precondition(lambda self: self.database.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self.database.cancel(data.draw(st.sampled_from(sorted(self.database.jobs))), self.now)

    @rule(name=st.sampled_from(sorted(EVERY_MS)))
    def make_schedule(self, name: str) -> None:
        schedules = self.database.documents[Collection.SCHEDULES]
        if name not in schedules:
            made = make_schedule(
                name, trigger=IntervalTrigger(EVERY_MS[name], wall(0)), cursor_ms=self.now, created_at_ms=self.now
            )
            self.database.put_schedule(made)

    @rule(name=st.sampled_from(sorted(EVERY_MS)), delete=st.booleans())
    def change_schedule(self, name: str, delete: bool) -> None:
        if name in self.database.documents[Collection.SCHEDULES]:
            if delete:
                self.database.delete(Collection.SCHEDULES, name)
                # The same instant would make the new one's first nominal time the old one's last.
                self.now = WallMs(self.now + 1)
            else:
                self.database.edit_schedule(name)

    # Processors

    @precondition(lambda self: len(self.database.documents[Collection.PROCESSORS]) < 4)
    @rule(definition=st.sampled_from([*DEFINITIONS, "*"]))
    def register_processor(self, definition: str) -> None:
        self.database.register(make_processor(f"p{self.number()}", definitions=frozenset({definition}), slots=SLOTS))

    @precondition(lambda self: self.database.documents[Collection.PROCESSORS])
    @rule(data=st.data(), fate=st.sampled_from(["beat", "suspect", "die", "leave"]))
    def live_or_die(self, data: st.DataObject, fate: str) -> None:
        id = data.draw(st.sampled_from(sorted(self.database.documents[Collection.PROCESSORS])))
        match fate:
            case "beat" if id not in self.dead:
                self.database.beat(id)
            case "leave":
                self.database.delete(Collection.PROCESSORS, id)
            case "die":
                self.dead.add(id)
                self.lose(id)
            case _:
                self.lose(id)

    def lose(self, id: str) -> None:
        known = self.leadership.mirror.nouns(Collection.PROCESSORS).get(id)
        if known is not None:
            self.leadership.told.append(ProcessorLost(id, known.beat))

    @precondition(lambda self: self.messages)
    @rule(data=st.data(), fate=st.sampled_from(["keep", "lose", "start", "start", "start"]))
    def receive(self, data: st.DataObject, fate: str) -> None:
        place = data.draw(st.integers(0, len(self.messages) - 1))
        message = self.messages[place]
        if fate != "keep":
            del self.messages[place]
        if fate != "lose" and message.processor not in self.dead:
            self.database.start(message.job_id, message.attempt, message.processor)

    @precondition(lambda self: any(job["processor"] for job in self.database.jobs.values()))
    @rule(data=st.data(), fate=st.sampled_from(["give back", JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED]))
    def end_attempt(self, data: st.DataObject, fate: str | JobState) -> None:
        held = sorted(id for id, job in self.database.jobs.items() if job["processor"])
        id = data.draw(st.sampled_from(held))
        job = self.database.jobs[id]
        # A processor that is thought dead may still be at work: only the attempt counts.
        if isinstance(fate, JobState):
            self.database.finish(id, job["attempt"], job["processor"], fate)
        else:
            self.database.give_back(id, job["attempt"], job["processor"])

    # The replica

    @rule(span_ms=st.sampled_from([1, 100, 300, 1_000, 6_000]))
    def pass_time(self, span_ms: int) -> None:
        self.now = WallMs(self.now + span_ms)

    @rule(count=st.integers(1, 20))
    def deliver(self, count: int) -> None:
        self.leadership.deliver(count)

    @rule()
    def fetch(self) -> None:
        self.leadership.fetch()

    @precondition(lambda self: self.leadership.has_room)
    @rule()
    def step(self) -> None:
        step = self.leadership.step(self.now)
        self.calm = self.calm and not step.reasserted
        term = self.leadership.term.number if self.leadership.term is not None else 0
        for decision in step.decisions:
            if isinstance(decision, Fire) and not step.reasserted:
                made_at_ms = self.leadership.mirror.nouns(Collection.SCHEDULES)[decision.schedule].created_at_ms
                assert (term, made_at_ms, decision) not in self.fired, f"{decision} was decided twice in one term"
                self.fired.add((term, made_at_ms, decision))
            if isinstance(decision, Dispatch) and not step.reasserted:
                assert self.leadership.core.is_live(decision.processor)
                slots = self.leadership.mirror.nouns(Collection.PROCESSORS)[decision.processor].slots
                assert self.leadership.core.occupied(decision.processor) <= slots

    @precondition(lambda self: self.leadership.term is not None and self.leadership.term.to_journal)
    @rule()
    def write_journal(self) -> None:
        self.leadership.write_journal()

    @precondition(lambda self: self.leadership.term is not None and self.leadership.term.to_apply)
    @rule(luck=st.sampled_from([Luck.GOOD, *Luck]), from_place=st.integers(0, 3))
    def carry_out(self, luck: Luck, from_place: int) -> None:
        self.calm = self.calm and luck is Luck.GOOD
        self.leadership.carry_out(self.now, luck, from_place)

    @rule(luck=st.sampled_from([Luck.GOOD, Luck.GOOD, *Luck]), span_ms=st.sampled_from([50, 400, 1_100]))
    def go_round(self, luck: Luck, span_ms: int) -> None:
        """The ordinary turn of everything, so that a short random run gets somewhere."""
        self.now = WallMs(self.now + span_ms)
        self.leadership.deliver(10)
        self.leadership.fetch()
        if self.leadership.may_begin:
            self.leadership.begin()
        if self.leadership.has_room:
            self.step()
        if self.leadership.term is not None and self.leadership.term.to_journal:
            self.leadership.write_journal()
        if self.leadership.term is not None and self.leadership.term.to_apply:
            self.carry_out(luck, 0)

    @rule(deaf=st.booleans())
    def lose_messages(self, deaf: bool) -> None:
        self.deaf = deaf

    # Leaders come and go

    @rule(overlap=COUNTS, how=st.sampled_from(["crash", "lose", "resync"]))
    def end_term(self, overlap: int, how: str) -> None:
        match how:
            case "crash":
                self.leadership.crash(overlap)
            case "resync":
                self.leadership.resync(overlap)
            case _:
                self.leadership.lose_term()

    @precondition(lambda self: self.leadership.term is None and not self.leadership.taking_over)
    @rule()
    def take_over(self) -> None:
        self.leadership.take_over(self.now)

    @precondition(lambda self: self.leadership.may_begin)
    @rule()
    def begin_term(self) -> None:
        self.leadership.begin()

    @precondition(lambda self: self.leadership.paused)
    @rule(data=st.data())
    def wake_old_leader(self, data: st.DataObject) -> None:
        which = data.draw(st.integers(0, len(self.leadership.paused) - 1))
        self.leadership.resume_paused(which, self.now)

    # What must hold

    @invariant()
    def slots_are_not_overbooked(self) -> None:
        if self.calm:
            for id, processor in self.database.documents[Collection.PROCESSORS].items():
                assert len(self.database.occupants(id)) <= processor["slots"], f"{id} is overbooked"

    def teardown(self) -> None:
        self.deaf = False
        if self.leadership.term is None and not self.leadership.taking_over:
            self.take_over()
        self.database.register(make_processor("healer", slots=1_000))
        horizon = self.now
        for _ in range(80):
            self.heal_a_little()
            if self.is_settled(horizon):
                return
        unfinished = {id: job["state"] for id, job in self.database.jobs.items() if job["state"] in LIVE}
        opened = self.leadership.term and self.leadership.term.open
        raise AssertionError(f"not settled: live {unfinished}, missing {self.missing(horizon)}, open {opened}")

    def heal_a_little(self) -> None:
        while self.leadership.paused:
            self.leadership.resume_paused(0, self.now)
        for id in self.database.documents[Collection.PROCESSORS]:
            if id in self.dead:
                self.lose(id)
            else:
                self.database.beat(id)
        self.leadership.deliver(10_000)
        self.leadership.fetch()
        if self.leadership.may_begin:
            self.leadership.begin()
        if self.leadership.has_room:
            self.step()
        assert self.leadership.term is not None
        while self.leadership.term.to_journal:
            self.leadership.write_journal()
        while self.leadership.term.to_apply:
            self.leadership.carry_out(self.now, Luck.GOOD)
        for message in self.messages:
            if message.processor not in self.dead:
                self.database.start(message.job_id, message.attempt, message.processor)
        self.messages.clear()
        for id, job in list(self.database.jobs.items()):
            if job["state"] == JobState.RUNNING and job["processor"] not in self.dead:
                self.database.finish(id, job["attempt"], job["processor"], JobState.SUCCEEDED)
        self.now = WallMs(self.now + 600)

    def is_settled(self, horizon: WallMs) -> bool:
        assert self.leadership.term is not None
        old = [job for job in self.database.jobs.values() if job["submitted_at_ms"] <= horizon]
        open_since = next(iter(self.leadership.term.open), None)
        caught_up = open_since is None or open_since > len(self.leadership.journal) - 3
        return caught_up and not self.missing(horizon) and all(job["state"] not in LIVE for job in old)

    def missing(self, horizon: WallMs) -> list[str]:
        """The due nominal times of the schedules that have no job."""
        ids = []
        for name, fields in self.database.documents[Collection.SCHEDULES].items():
            trigger = IntervalTrigger(EVERY_MS[name], wall(0))
            nominal_ms = next_nominal(trigger, fields["created_at_ms"])
            while nominal_ms is not None and nominal_ms <= horizon:
                if fire_job_id(name, nominal_ms) not in self.database.jobs:
                    ids.append(fire_job_id(name, nominal_ms))
                nominal_ms = next_nominal(trigger, nominal_ms)
        return ids


World.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None, print_blob=True)
TestWorld = World.TestCase
