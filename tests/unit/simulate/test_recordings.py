"""The inputs and decisions of a leader, written, read back, and decided again."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import product
from random import Random
from typing import Any

import pytest

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, RecordVerdict, Settlement
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import (
    AccountsRestored,
    Input,
    ProcessorLost,
    ProcessorRests,
    Resynced,
    Settled,
    TermBegan,
    TransportSeen,
    TrustLost,
)
from hascheduler.dispatch.recording import (
    RecordedStep,
    RecordingEnd,
    RecordingHeading,
    heading_line,
    read_recording,
    step_line,
)
from hascheduler.errors import InvalidInput
from hascheduler.mirror import changes
from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import fired_job
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.partition import Hold
from hascheduler.model.policy import PRESETS, criteria
from hascheduler.model.processor import Rest
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.schema.calendar import Calendar, read_days
from hascheduler.schema.definition import Definition, RateLimit
from hascheduler.schema.lane import Lane
from hascheduler.schema.pause import EVERYTHING, StandingPause
from hascheduler.schema.retry import RetryPolicy
from hascheduler.schema.tenant import Tenant
from hascheduler.simulate.recorded import recorded_scenario, replay
from tests.tiers import spread
from tests.unit.dispatch.nouns import make_job, make_processor, make_schedule, noun_seen, wall

INPUTS: list[Input] = [
    changes.JobSeen(make_job("a", resources=(("cpu", 2),), serial=True, not_before_ms=wall(5))),
    changes.JobGone("a", JobState.FAILED, 7),
    changes.JobGone("b"),
    changes.JobSeen(make_job("c", batch="batch:x", waits_for=("batch:y", "a"))),
    changes.BatchSeen("batch:x", is_live=True, failed=("a", JobState.FAILED)),
    changes.BatchSeen("batch:y", is_live=False),
    changes.ScheduleSeen(make_schedule("s")),
    changes.ScheduleGone("s"),
    noun_seen(
        Definition(
            name="log", rev=3, max_concurrency=2, default_cost_ms=1_000, conflict_group="git", tier=4,
            rate_limit=RateLimit(count=2, per_ms=1_000), resources=(("cpu", 1),), retry=RetryPolicy(attempts_max=2),
            timeout_ms=9_000, total_timeout_ms=99_000,
        )
    ),
    changes.NounSeen(Collection.DEFINITIONS, "log"),
    noun_seen(Lane(name="l", rev=1, weight=2, promote_after_ms=(60_000,), criteria=criteria("aged_priority"))),
    changes.NounSeen(Collection.LANES, "l"),
    noun_seen(
        Calendar(
            name="c", rev=2, weekdays=(0, 4), include=read_days(["--12-25"]),
            exclude=read_days(["2030-01-01/2030-01-03"]),
        )
    ),
    changes.NounSeen(Collection.CALENDARS, "c"),
    noun_seen(Tenant(name="t", rev=1, max_running=3)),
    changes.NounSeen(Collection.TENANTS, "t"),
    noun_seen(
        StandingPause(id=EVERYTHING, rev=1, since_ms=wall(0), by="deployer", because="it burns", schedules_only=True)
    ),
    changes.NounSeen(Collection.PAUSES, EVERYTHING),
    noun_seen(Hold("cap/all", 2, is_held=True)),
    changes.NounSeen(Collection.HOLDS, "cap/all"),
    changes.ProcessorSeen(make_processor("p", resources=(("cpu", 8),))),
    changes.ProcessorGone("p"),
    ProcessorLost("p", 4),
    ProcessorRests("p", Rest(3, 1, wall(5), "a")),
    TransportSeen(False),
    TermBegan(3, (Dispatch("a", 1, "p"),)),
    TrustLost(),
    Resynced(),
    AccountsRestored(AccountsSnapshot((("t", "k", 5, 6),), (("log", "t", 7, 8),), 9)),
    Settled(Dispatch("a", 1, "p"), Settlement.LOST),
    Settled(
        RecordVerdict(VerdictRun("s", Verdict.MISSED, wall(1), wall(2), 2), make_schedule("s").basis_at(0)),
        Settlement.DONE,
    ),
]  # fmt: skip
CONFIG = DispatchConfig(policy=PolicyConfig(on_demand_bonus_max=None))
HEADING = RecordingHeading(wall(0), "r1", 7, CONFIG)


def written(*steps: RecordedStep | RecordingEnd, heading: RecordingHeading = HEADING) -> list[str]:
    lines = [heading_line(heading)]
    lines += [{"end": step.reason} if isinstance(step, RecordingEnd) else step_line(step) for step in steps]
    return [json.dumps(line) for line in lines]


def test_whatever_a_leader_may_be_told_is_read_as_it_was_written() -> None:
    step = RecordedStep(wall(1), tuple(INPUTS), (Dispatch("a", 1, "p"),))
    heading, steps = read_recording(written(step, RecordedStep(wall(2), (), None), RecordingEnd("over")))
    assert heading == HEADING
    assert list(steps) == [step, RecordedStep(wall(2), (), None), RecordingEnd("over")]
    assert {type(each) for each in INPUTS} == set(Input.__args__)


@pytest.mark.parametrize("carried", [{}, {"keyed_by": ("target",)}, {"after": ("a", "b")}, {"is_graph": True}])
def test_what_a_fire_carries_is_read_as_it_was_written(carried: dict[str, Any]) -> None:
    basis = replace(make_schedule("s").basis_at(0), created_at_ms=wall(0))
    fire = Fire("s", wall(1), basis, **carried)
    _, steps = read_recording(written(RecordedStep(wall(1), (Settled(fire, Settlement.DONE),), None)))
    [step] = steps
    assert isinstance(step, RecordedStep)
    [settled] = step.inputs
    # Decisions that differ in these alone are equal.
    assert isinstance(settled, Settled)
    assert asdict(settled.decision) == asdict(fire)


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ([], "line.1"),
        (["{"], "line.1"),
        (['{"hascheduler_recording": 2}'], "line.1"),
        (['{"hascheduler_recording": 1, "config": {}}'], "line.1"),
        ([*written(), "[]"], "line.2"),
        ([*written(), '{"now": 1}'], "line.2"),
        ([*written(), "", '{"now": 1, "inputs": [["nonsense"]]}'], "line.3"),
        ([*written(), '{"now": 1, "inputs": [[]]}'], "line.2"),
        ([*written(), '{"now": 1, "inputs": [["jobs", "a", {}]]}'], "line.2"),
        ([*written(), '{"now": 1, "inputs": [["settled", [], "done"]]}'], "line.2"),
        ([*written(), '{"now": 1, "inputs": 5}'], "line.2"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(lines: list[str], place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        list(read_recording(lines)[1])
    assert ".".join(map(str, refused.value.path)) == place


class Load:
    """A small busy cluster by chance: what the stream would tell its leader, and the leader's steps."""

    def __init__(self, seed: int, policy: PolicyConfig, *, arrives: float = 0.6, ends: float = 0.7) -> None:
        self._random = Random(seed)
        self._arrives, self._ends = arrives, ends
        self.core = Dispatcher(DispatchConfig(policy=policy))
        self.now = wall(0)
        self._running: dict[str, JobRef] = {}
        self._jobs: dict[str, JobRef] = {}
        self._schedule = make_schedule("s")
        self._waiting_for_echo: tuple[Decision, ...] = ()
        self.step(
            noun_seen(Definition(name="x", rev=1, max_concurrency=3, tier=4)),
            noun_seen(Definition(name="y", rev=1, conflict_group="git", tier=6)),
            noun_seen(Lane(name="heavy", rev=1, weight=2)),
            changes.ScheduleSeen(self._schedule),
            *(changes.ProcessorSeen(make_processor(name, slots=2)) for name in "pq"),
            TermBegan(1),
        )

    def step(self, *inputs: Input) -> RecordedStep:
        decisions = self.core.step(self.now, inputs).decisions
        self._waiting_for_echo = decisions
        return RecordedStep(self.now, inputs, decisions)

    def steps(self, count: int) -> Iterator[RecordedStep]:
        for n in range(count):
            self.now = WallMs(self.now + self._random.choice((0, 1, 40, 700)))
            yield self.step(*self._echoes(), *self._happens(n))

    def _echoes(self) -> Iterator[Input]:
        for decision in self._waiting_for_echo:
            if isinstance(decision, Fire | RecordVerdict):
                if isinstance(decision, Fire):
                    self._jobs[decision.job_id] = fired_job(self._schedule, decision.nominal_ms)
                    yield changes.JobSeen(self._jobs[decision.job_id])
                self._schedule = replace(self._schedule, cursor_ms=decision.nominal_ms, tally=decision.tally)
                yield changes.ScheduleSeen(self._schedule)
            if isinstance(decision, Dispatch):
                known = self._jobs[decision.job_id]
                job = replace(
                    known, rev=known.rev + 2, state=JobState.RUNNING, attempt=decision.attempt,
                    processor=decision.processor, dispatched_at_ms=self.now, started_at_ms=self.now,
                )  # fmt: skip
                self._jobs[job.id] = self._running[job.id] = job
                yield changes.JobSeen(job)
            yield Settled(decision, Settlement.DONE)

    def _happens(self, n: int) -> Iterator[Input]:
        chance = self._random
        if chance.random() < self._arrives:
            job = make_job(
                f"j{n}", definition=chance.choice("xyz"), target=chance.choice("tu"),
                lane=chance.choice(("heavy", "d")), fairness_key=chance.choice("abc"), priority=chance.randrange(11),
                submitted_at_ms=self.now,
                mode=chance.choice(("queued", "on_demand")),
            )  # fmt: skip
            self._jobs[job.id] = job
            yield changes.JobSeen(job)
        if self._running and chance.random() < self._ends:
            job_id = chance.choice(sorted(self._running))
            del self._running[job_id], self._jobs[job_id]
            yield changes.JobGone(job_id, JobState.SUCCEEDED, self.now)


@pytest.mark.parametrize(("seed", "preset"), spread(product(range(12), PRESETS), check=5))
def test_the_replay_of_a_busy_leader_decides_the_same_from_whichever_moment_on(preset: str, seed: int) -> None:
    policy = PolicyConfig(criteria=PRESETS[preset])
    require_same_decisions(Load(seed, policy), policy, warm_up=60, recorded=150)


@pytest.mark.parametrize(("seed", "warm_up"), [(6, 40), (6, 41), (16, 41), (16, 43), (18, 40)])
def test_a_key_whose_last_job_ends_in_the_millisecond_of_the_recording_begins_in_the_replay_as_it_did(
    seed: int, warm_up: int
) -> None:
    policy = PolicyConfig(criteria=PRESETS["fair"])
    require_same_decisions(Load(seed, policy, arrives=0.3, ends=0.5), policy, warm_up=warm_up, recorded=80)


def require_same_decisions(load: Load, policy: PolicyConfig, *, warm_up: int, recorded: int) -> None:
    """That the replay of ``recorded`` steps after as many as ``warm_up`` decides the same."""
    list(load.steps(warm_up))
    known = [RecordedStep(load.now, (told,), None) for told in load.core.state_snapshot(load.now)]
    steps = list(load.steps(recorded))
    heading = RecordingHeading(load.now, "r1", 1, DispatchConfig(policy=policy))
    replayed = replay(*read_recording(written(*known, *steps, RecordingEnd("over"), heading=heading)))
    assert replayed.difference is None
    assert (replayed.steps, replayed.end) == (recorded, "over")
    assert replayed.decisions == sum(len(step.decisions or ()) for step in steps) > 20


def test_a_decision_that_is_not_what_was_recorded_is_shown() -> None:
    load = Load(1, PolicyConfig())
    known = [RecordedStep(load.now, (told,), None) for told in load.core.state_snapshot(load.now)]
    recorded = list(load.steps(40))
    number, step = next((n, step) for n, step in enumerate(recorded, 1) if step.decisions)
    recorded[number - 1] = replace(step, decisions=(Dispatch("other", 1, "p"),))
    replayed = replay(RecordingHeading(load.now, "r1", 1, DispatchConfig()), [*known, *recorded])
    assert (replayed.steps, replayed.difference) == (number, (recorded[number - 1], step.decisions))


def test_a_recording_gives_the_work_that_was_asked_for() -> None:
    def seen(id: str, **fields: Any) -> changes.JobSeen:
        return changes.JobSeen(make_job(id, definition="x", submitted_at_ms=wall(0), **fields))

    def running(id: str, since: int) -> changes.JobSeen:
        began: dict[str, Any] = {"started_at_ms": wall(since), "expires_at_ms": wall(90_000)}
        return seen(id, state=JobState.RUNNING, attempt=1, processor="p", **began)

    definition = noun_seen(Definition(name="x", rev=1, default_cost_ms=9_000))
    steps = [
        RecordedStep(wall(10_000), (definition, changes.ProcessorSeen(make_processor("p"))), None),
        RecordedStep(wall(10_000), (running("before", 4_000), seen("waits", expires_at_ms=wall(90_000))), None),
        RecordedStep(wall(10_000), (seen("dropped"),), None),
        RecordedStep(
            wall(10_500), (changes.JobGone("before", JobState.SUCCEEDED, wall(10_400)), running("waits", 10_450)), ()
        ),
        RecordedStep(wall(10_600), (changes.JobGone("dropped", JobState.CANCELLED), running("goes on", 10_550)), ()),
        RecordedStep(
            wall(12_000), (changes.JobGone("waits", JobState.FAILED, wall(11_450)), changes.ProcessorGone("p")), ()
        ),
    ]
    scenario = recorded_scenario(RecordingHeading(wall(10_000), "r1", 1, CONFIG), steps)
    assert {job.id: (job.submit_at_ms, job.duration_ms) for job in scenario.jobs} == {
        "before": (-10_000, 400),
        "waits": (-10_000, 1_000),
        "goes on": (-10_000, 9_000),
    }
    assert {job.id: job.expires_at_ms for job in scenario.jobs if job.expires_at_ms} == {"waits": 80_000}
    [processor] = scenario.processors
    assert (processor.join_at_ms, processor.leave_at_ms) == (0, 2_000)
    assert scenario.policy.config() == CONFIG.policy
    assert (scenario.left_out, scenario.note) == (
        {"due_later": (), "cancelled": ("dropped",)},
        "as recorded by r1; jobs left out: 1 cancelled before they started",
    )
