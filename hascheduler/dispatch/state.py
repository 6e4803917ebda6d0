"""The whole state of one replica's core: the parts of a dispatcher, put together, and what changes several of them.

::

    rules ──► scheduling classes ──► limits ─┐
      │                                      ├─► queue ──► live jobs ──► schedules
      └─► pool ─► lane shares ───────────────┤
          accounts ── locks ◄── key rates ───┘      ledger: what was promised, read by live jobs and schedules

`state_snapshot` gives the inputs that would reproduce this state, which are the first part of a recording: the facts as
the core has them, then what it has promised on top. A promised dispatch is written as if its job had come back: it was
charged already, and the database shows it later, as it did to the core itself. Doubts, which last a second, and the
levels of rate limits, which begin full, are left out. Running jobs hold what their definitions demand today.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from sys import maxsize
from typing import Any

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.capacity.admission_limits import AdmissionLimits, SchedulingClasses
from hascheduler.dispatch.capacity.dominant_share import LaneShares
from hascheduler.dispatch.capacity.locks import LockTable
from hascheduler.dispatch.capacity.occupancy import Occupancy
from hascheduler.dispatch.capacity.rate_limits import KeyRates
from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.explainer import Explainer
from hascheduler.dispatch.held_partitions import HeldPartitions
from hascheduler.dispatch.inputs import AccountsRestored, Input, ProcessorLost, ProcessorRests, TermBegan, TransportSeen
from hascheduler.dispatch.ledger import Ledger
from hascheduler.dispatch.live_jobs.deadlines import Deadlines
from hascheduler.dispatch.live_jobs.table import LiveJobs
from hascheduler.dispatch.queue.criteria import measures
from hascheduler.dispatch.queue.pending_queue import PendingQueue
from hascheduler.dispatch.rules import Rules
from hascheduler.dispatch.schedules.planner import SchedulePlanner
from hascheduler.mirror import changes
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.partition import Hold, definition_of_key
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.definition import Definition
from hascheduler.schema.pause import drained_name


class CoreState:
    """Owner of the parts; each part owns its state."""

    def __init__(self, config: DispatchConfig) -> None:
        policy = config.policy
        self.ledger = Ledger()
        self.rules = Rules(config.part)
        self.pool = SlotPool()
        self.held = HeldPartitions()
        self.accounts = FairAccounts(policy, self.rules)
        self.shares = LaneShares(self.rules, self.pool)
        self.classes = SchedulingClasses(self.rules)
        self.limits = AdmissionLimits(self.rules, self.classes, self.pool, policy.max_concurrency)
        self.key_rates = KeyRates(self.rules)
        self.locks = LockTable(self.rules, self.key_rates)
        weights = measures(self.rules, self.pool, self.accounts, self.shares, policy.on_demand_bonus_max)
        self.queue = PendingQueue(
            policy,
            rules=self.rules,
            pool=self.pool,
            classes=self.classes,
            limits=self.limits,
            locks=self.locks,
            accounts=self.accounts,
            shares=self.shares,
            measures=weights,
        )
        self.jobs = LiveJobs(
            config,
            ledger=self.ledger,
            pool=self.pool,
            limits=self.limits,
            key_rates=self.key_rates,
            occupancy=Occupancy(self.rules, self.pool, self.limits, self.shares, self.locks),
            accounts=self.accounts,
            deadlines=Deadlines(config, self.rules),
            queue=self.queue,
        )
        self.times = SchedulePlanner(self.jobs, self.ledger, self.rules)
        self.explainer = Explainer(
            self.rules, self.jobs, self.queue, self.classes, self.limits, self.pool, self.locks, self.key_rates, weights
        )

    def advance(self, now: WallMs) -> None:
        """Let time pass until ``now``."""
        self.pool.advance(now)
        self.jobs.advance(now)
        self.accounts.advance(now)
        self.queue.freed(self.key_rates.advance(now))

    # Rules

    def set_rule(self, collection: Collection, id: str, noun: Any, now: int) -> None:
        """Set the noun of that id, or remove it if it is None: all that people set, but schedules."""
        if collection is Collection.DEFINITIONS:
            self._define(id, noun, now)
        elif collection is Collection.LANES:
            _put(self.rules.lanes, id, noun)
            self.shares.reweighed(id)
            self.queue.lane_changed(id)
        elif collection is Collection.TENANTS:
            had_quota = self.rules.quota(id) is not None
            _put(self.rules.tenants, id, noun)
            self.limits.rules_changed(now)
            if had_quota != (self.rules.quota(id) is not None):
                self.queue.replant(lambda job: job.tenant == id)
        elif collection is Collection.PAUSES:
            _put(self.rules.pauses, id, noun)
            name = drained_name(id)
            if name is not None:
                self.pool.drain(name, is_drained=noun is not None)
        elif collection is Collection.CALENDARS:
            _put(self.rules.calendars, id, noun)
            self.times.due_times.calendar_changed(id)
        elif collection is Collection.HOLDS:
            self._set_hold(id, noun, now)

    def _define(self, name: str, definition: Definition | None, now: int) -> None:
        self.rules.define(name, definition)
        self.queue.redefined(name)
        self.limits.rules_changed(now)
        self.key_rates.redefined(name)
        self.jobs.redefined(name)

    def _set_hold(self, key: str, hold: Hold | None, now: int) -> None:
        self.rules.put_hold(key, hold)
        name = definition_of_key(key)
        if name is None:
            self.limits.rules_changed(now)
        elif name in self.rules.whole_definitions:
            self._define(name, self.rules.whole_definitions[name], now)

    # Jobs

    def job_gone(self, gone: changes.JobGone, now: int) -> None:
        job = self.jobs.get(gone.id)
        if gone.state is JobState.SUCCEEDED and job is not None and job.state is not JobState.RUNNING:
            self.pool.took_up(self.pool.processor_of(gone.id) or "")  # it ran and ended meanwhile
        self.times.job_ended(gone.id, gone.state)
        self._learn(gone, now)
        self.ledger.job_gone(gone.id)
        job = self.jobs.get(gone.id)
        self.jobs.remove(gone.id)
        self.jobs.ended(gone.id, gone.state, job)

    def _learn(self, gone: changes.JobGone, now: int) -> None:
        """Learn the cost of a job whose work has ended; a target that is the job itself never occurs again."""
        job = self.jobs.get(gone.id)
        if job is None or job.started_at_ms is None or gone.finished_at_ms is None or job.target == job.id:
            return
        if job.state is JobState.RUNNING and gone.state in (JobState.SUCCEEDED, JobState.FAILED):
            elapsed_ms = max(gone.finished_at_ms - job.started_at_ms, 0)
            self.accounts.learn(job.definition, job.target, elapsed_ms, now)


def _put(table: dict[str, Any], name: str, noun: Any) -> None:
    if noun is None:
        table.pop(name, None)
    else:
        table[name] = noun


def state_snapshot(core: CoreState, now: WallMs, *, accepting: bool) -> Iterator[Input]:
    """Return the inputs, `TermBegan` last. All is read at once, and may be encoded while the core goes on."""
    promises = core.ledger.promises()
    dispatches = {move.job_id: move for move in promises if isinstance(move, Dispatch)}
    others = tuple(decision for decision in promises if not isinstance(decision, Dispatch))
    first: list[Input] = [
        AccountsRestored(core.accounts.snapshot(now, rows_max=maxsize)),
        *_rules(core.rules),
        *map(changes.ScheduleSeen, core.times.due_times.schedules()),
    ]
    for processor, lost_at_beat in core.pool.known():
        first.append(changes.ProcessorSeen(processor))
        if lost_at_beat is not None:
            first.append(ProcessorLost(processor.id, lost_at_beat))
    jobs = [_as_held(job, core.jobs.dependencies.unmet(job)) for job in core.jobs.all()]
    kept = list(core.held.kept())
    # After the jobs: those that run there were started before.
    rests = [ProcessorRests(id, rest) for id, rest in sorted(core.pool.rests.items())]
    return chain(first, kept, _seen(jobs, dispatches, now), rests, [TransportSeen(accepting), TermBegan(0, others)])


def _rules(rules: Rules) -> Iterator[changes.NounSeen]:
    tables: tuple[tuple[Collection, Mapping[str, Any]], ...] = (
        (Collection.HOLDS, rules.holds),
        (Collection.DEFINITIONS, rules.whole_definitions),
        (Collection.LANES, rules.lanes),
        (Collection.CALENDARS, rules.calendars),
        (Collection.TENANTS, rules.tenants),
        (Collection.PAUSES, rules.pauses),
    )
    for collection, nouns in tables:
        for id, noun in nouns.items():
            yield changes.NounSeen(collection, id, noun)


def _seen(jobs: Sequence[JobRef], dispatches: Mapping[str, Dispatch], now: WallMs) -> Iterator[changes.JobSeen]:
    for job in jobs:  # compiled, a comprehension would be read all at once
        yield changes.JobSeen(_as_dispatched(job, dispatches.get(job.id), now))


def _as_held(job: JobRef, unmet: Sequence[str]) -> JobRef:
    """Return the job without the dependencies that have ended: no input will report those again."""
    return job if len(unmet) == len(job.waits_for) else replace(job, waits_for=tuple(unmet))


def _as_dispatched(job: JobRef, move: Dispatch | None, now: WallMs) -> JobRef:
    if move is None or job.attempt >= move.attempt:
        return job
    return replace(job, state=JobState.DISPATCHED, attempt=move.attempt, processor=move.processor, dispatched_at_ms=now)
