"""The jobs that wait, and which of them goes next.

::

    Line ─► Node      one lane and one tier, as far as the policy begins with those
             └─► Group    one kind, one flow (and one priority, where priorities age)
                  └─► Tenancy  one tenant, where the policy is fair
                       └─► Cell     one fairness key, one priority: oldest first
    Parking: jobs that a lock holds back

A decision looks at the nodes, and in the best of them at the first job of each group that may run now. What a group
says of its first job may be too good, never too bad (see `groups`), so only the winner has to be looked at again: when
it is not what was said, its group says anew, and the choice is made again. Adding and removing a job cost the same
however many there are.
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.cells import Cell, CellKey, arrival
from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.criteria import Measures
from hascheduler.dispatch.dominant_share import LaneShares
from hascheduler.dispatch.gates import Gates
from hascheduler.dispatch.groups import Entry, Group, Tenancy
from hascheduler.dispatch.kinds import Kind, Kinds
from hascheduler.dispatch.locks import Lock, LockTable
from hascheduler.dispatch.nodes import Node
from hascheduler.dispatch.orders import Order, own_criteria
from hascheduler.dispatch.parking import Origin, Parking
from hascheduler.dispatch.pool import SlotPool
from hascheduler.dispatch.rules import Rules
from hascheduler.dispatch.score import (
    GROWING,
    GROWN,
    ON_DEMAND,
    QUEUED,
    RARITY_POINTS,
    Flow,
    aged_priority,
    bonuses,
    grown_after_ms,
    rarity,
    standing,
    submitted_by,
)
from hascheduler.dispatch.waits import Waits
from hascheduler.model.job import JobRef
from hascheduler.model.policy import Criterion

_GroupKey = tuple[str | None, Kind, Flow, int | None]
_NodeKey = tuple[str | None, int | None]
_Item = TypeVar("_Item")
_GROUPS_MAX = 4_096
_KINDS_MAX = 1_024
"""Before those that are empty are looked for."""


class Line:
    """Owner of the waiting jobs. It reads the rest: rules, slots, gates, locks, costs and shares."""

    def __init__(
        self,
        policy: PolicyConfig,
        *,
        rules: Rules,
        pool: SlotPool,
        kinds: Kinds,
        gates: Gates,
        locks: LockTable,
        accounts: FairAccounts,
        shares: LaneShares,
        measures: Measures,
    ) -> None:
        self._rules = rules
        self._pool = pool
        self._kinds = kinds
        self._gates = gates
        self._locks = locks
        self._accounts = accounts
        self._shares = shares
        self._measures = measures
        self._order = Order(policy.criteria)
        self._own_orders: dict[str, Order] = {}
        self._bonus_max = policy.on_demand_bonus_max
        self._grown_after_ms = grown_after_ms(policy)
        self._grown_through_ms = -(2**63)
        self._growing: list[tuple[int, str]] = []
        self._queued: dict[str, JobRef] = {}
        self.waits = Waits()
        self._groups: dict[_GroupKey, Group] = {}
        self._nodes: dict[_NodeKey, Node] = {}
        self._parking = Parking()
        self._freed: dict[Lock, None] = {}
        self._tenant: str | None = None
        self._has_tenants = False
        self._groups_max = _GROUPS_MAX
        self._kinds_max = _KINDS_MAX
        self._unfit = 0
        self._unfit_since: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self._queued)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._queued

    def jobs(self) -> Iterable[JobRef]:
        """All that wait, in no order that matters."""
        return self._queued.values()

    def jobs_of(self, kinds: Collection[Kind]) -> Iterator[JobRef]:
        """Those of these kinds that wait; one may come twice."""
        for group in self._groups.values():
            if group.kind in kinds:
                for cell in group.cells():
                    yield from (job for job in cell.jobs() if self._is_waiting_in(group, job))
        for (group, _), jobs in self._parking.jobs():
            if group.kind in kinds:
                yield from (job for job in jobs if self._is_waiting_in(group, job))

    # What comes and goes

    def add(self, job: JobRef) -> None:
        """Have the job wait, or move it if its place has changed."""
        known = self._queued.get(job.id)
        if known is not None:
            if known is job or _place(known) == _place(job):
                return
            self.remove(job.id)
        if len(self._groups) > self._groups_max or len(self._kinds) > self._kinds_max:
            self._tidy()
        self._queued[job.id] = job
        self.waits.began(job)
        self._put(self._group_for(job, self._kinds.of(job)), job)

    def remove(self, job_id: str) -> None:
        job = self._queued.pop(job_id, None)
        if job is None:
            return
        self.waits.ended(job)
        self.freed(self._locks.wanted(job))  # it may have been the one that the others let go first

    def freed(self, locks: Iterable[Lock]) -> None:
        """Nobody holds these any more, or who went first among those that wait for them does so no longer."""
        for lock in locks:
            if lock in self._parking:
                self._freed[lock] = None

    def redefined(self, name: str) -> None:
        """The definition is another now: its tier and its conflict group may be."""
        kinds = set(self._kinds.redefined(name))
        for group in self._groups.values():
            if group.kind in kinds:
                self._regroup(group)
        for (group, key), job in self._parking.take_of_definition(name):
            if self._is_waiting(job):
                self._to_cell(group, key, job)

    def lane_changed(self, name: str) -> None:
        before = self._own_orders.pop(name, None)
        own = own_criteria(self._order.criteria, self._rules.lane(name))
        if own is not None:
            self._own_orders[name] = Order(own)
        if own != (before.criteria if before else None):
            for key, group in list(self._groups.items()):
                if group.lane == name:
                    self._rest(group)
                    del self._groups[key]
            self.replant(lambda job: job.lane == name)

    def replant(self, which: Callable[[JobRef], bool]) -> None:
        """Other rules say where those jobs belong."""
        for job in [job for job in self._queued.values() if which(job)]:
            self.remove(job.id)
            # As another object, so that it is not taken for the one that is still in its old cell.
            self.add(replace(job))

    # What is next

    def first(self, now: int) -> tuple[JobRef, str] | None:
        """The job that goes next and the processor that should take it, or None; it stays in the line."""
        self._advance(now)
        while True:
            self._unpark()
            best = self._best(self._ready(now), now)
            if self._freed:
                continue  # on the way a job was parked that others had waited behind
            if best is None:
                return None
            job = _best_of(best)
            if not self._is_current(best, job):
                best.forget_best()
                continue
            processor_id = self._pool.choose(best.kind.definition.name, best.kind.needs)
            if processor_id is not None:
                best.forget_best()  # most likely it goes now
                return job, processor_id
            self._unfit |= 1 << best.kind.bit

    def order_of(self, lane: str) -> Order:
        """How the jobs of that lane are ordered among each other."""
        return self._own_orders.get(lane, self._order) if self._own_orders else self._order

    def has_own_orders(self) -> bool:
        return bool(self._own_orders)

    def _ready(self, now: int) -> int:
        since = (self._pool.relieved, self._kinds.changes)
        if since != self._unfit_since:
            self._unfit_since, self._unfit = since, 0
        return self._gates.open(now) & ~self._unfit

    def _best(self, ready: int, now: int) -> Tenancy | None:
        """The one whose first job goes first, if that is what it says."""
        while nodes := [node for node in self._nodes.values() if node.mask & ready]:
            order, nodes = self._best_nodes(nodes)
            groups = nodes[0].of(ready) if len(nodes) == 1 else [group for node in nodes for group in node.of(ready)]
            firsts = self._firsts(groups) if order.is_fixed else self._scanned(groups, now)
            for criterion in order.rest:
                if len(firsts) < 2:
                    break
                if criterion is Criterion.FAIRNESS and self._has_tenants:
                    firsts = self._of_least_tenants(firsts)
                firsts = _least(firsts, self._values(criterion, firsts, now))
            if firsts:
                return firsts[0] if len(firsts) == 1 else min(firsts, key=lambda first: arrival(_best_of(first)))
        return None

    def _firsts(self, groups: list[Group]) -> list[Tenancy]:
        """The top of each group, worked out where it is not known."""
        if self._has_tenants:
            cost = self._accounts.tenant_cost
            # A tenant that was charged may have another one before it now.
            tops = [
                top if (top := group.top) is not None and top.tenant_cost == cost(top.tenant) else self._choose(group)
                for group in groups
            ]
        else:
            tops = [group.top or self._choose(group) for group in groups]
        return [top for top in tops if top is not None] if None in tops else cast(list[Tenancy], tops)

    def _scanned(self, groups: list[Group], now: int) -> list[Tenancy]:
        return [first for group in groups if (first := self._scan(group, now)) is not None]

    def _of_least_tenants(self, firsts: list[Tenancy]) -> list[Tenancy]:
        """Those of the tenants that have consumed least by now."""
        tenants = [_best_of(first).tenant for first in firsts]
        costs = {tenant: self._accounts.tenant_cost(tenant) for tenant in set(tenants)}
        return _least(firsts, [costs[tenant] for tenant in tenants]) if len(costs) > 1 else firsts

    def _best_nodes(self, nodes: list[Node]) -> tuple[Order, list[Node]]:
        """Those that may hold the next job, and the order that finds it among them."""
        order = self._order
        if self._own_orders:
            # Lanes with orders of their own can't be compared job by job.
            lane = min(self._shares.least({node.lane or "" for node in nodes}))
            nodes = [node for node in nodes if node.lane == lane]
            order = self.order_of(lane)
        for criterion in order.nodes:
            if len(nodes) < 2:
                break
            if criterion is Criterion.TIER:
                nodes = _least(nodes, [node.rank for node in nodes])
            else:
                lanes = self._shares.least({node.lane or "" for node in nodes})
                nodes = [node for node in nodes if node.lane in lanes]
        return order, nodes

    def _values(self, criterion: Criterion, firsts: list[Tenancy], now: int) -> list[Any]:
        """What the criterion makes of what each says of its first job."""
        if criterion is Criterion.FAIRNESS:
            return [first.cost for first in firsts]  # of the key, as it was then: not more than it is now
        if criterion is Criterion.SCORE:
            return self._scores(firsts, now)
        if criterion is Criterion.AGED_PRIORITY:
            return self._aged(firsts, now)
        measure = self._measures[criterion]
        return [measure.value(_best_of(first), now) for first in firsts]

    def _scores(self, firsts: list[Tenancy], now: int) -> list[int]:
        """Smaller goes first. Rarity, which is dear to work out, is left out where it can't make one the first."""
        less = bonuses(now, self._bonus_max)
        values = [first.standing - less[first.flow] for first in firsts]
        within_reach = min(values) + RARITY_POINTS
        for n, value in enumerate(values):
            if value <= within_reach:
                values[n] = value - rarity(self._pool.free(firsts[n].kind.definition.name))
        return values

    def _aged(self, firsts: list[Tenancy], now: int) -> list[int]:
        """0 for those of the highest aged priority, 1 for the others.

        Of the jobs that one rule ages the oldest has the highest; and how old another must be for the same is one
        number for each rule.
        """
        oldest: dict[tuple[str | None, int] | None, Tenancy] = {}
        for first in firsts:
            known = oldest.get(first.step)
            if known is None or first.since_ms < known.since_ms:
                oldest[first.step] = first
        steps = [(step, _best_of(first)) for step, first in oldest.items()]
        lanes = [self._rules.lane(job.lane) for _, job in steps]
        highest = max(aged_priority(job, now, lane) for (_, job), lane in zip(steps, lanes, strict=True))
        old_enough = {
            step: submitted_by(job.priority, highest, now, lane) for (step, job), lane in zip(steps, lanes, strict=True)
        }
        return [0 if first.since_ms <= old_enough[first.step] else 1 for first in firsts]

    # Groups

    def _group_for(self, job: JobRef, kind: Kind) -> Group:
        if job.tenant != self._tenant:
            # Once there were several, what groups say may be of one that has no jobs any more.
            self._has_tenants = self._tenant is not None
            self._tenant = job.tenant
        order = self.order_of(job.lane)
        lane = job.lane if order.has_lane or order.ages else None
        key = (lane, kind, self._flow_of(job, order), job.priority if order.ages else None)
        known = self._groups.get(key)
        if known is None:
            step = (lane, job.priority) if order.ages else None
            known = self._groups[key] = Group(lane, kind, key[2], step, order, accounts=self._accounts)
        return known

    def _flow_of(self, job: JobRef, order: Order) -> Flow:
        if job.mode != ON_DEMAND or not order.has_score:
            return QUEUED
        if self._grown_after_ms is None:
            return GROWING
        if job.submitted_at_ms <= self._grown_through_ms:
            return GROWN
        heapq.heappush(self._growing, (job.submitted_at_ms, job.id))
        return GROWING

    def _put(self, group: Group, job: JobRef) -> None:
        account = (job.tenant, job.fairness_key) if group.order.has_fairness else (None, None)
        key = (*account, job.priority)
        lock = self._locks.held_of(job)
        if lock is not None:
            self._park(lock, (group, key), job)
        else:
            self._to_cell(group, key, job)

    def _to_cell(self, group: Group, key: CellKey, job: JobRef) -> None:
        if group.is_full:
            group.sweep(self._is_waiting)
        cell = group.cell_for(key)
        if cell.is_full:
            cell.sweep(self._is_waiting)
        # An entry that stands for a tombstone may be from another life of its key, when that had consumed more.
        while (first := cell.first) is not None and not self._is_waiting_in(group, first):
            cell.drop()
        if cell.put(job):
            group.push(cell, self._entry(group, cell, job))
            if not group.is_active:
                self._node_for(group).activate(group)

    def _node_for(self, group: Group) -> Node:
        order = group.order
        lane = group.lane if Criterion.LANE in order.nodes else None
        key = (lane, group.kind.definition.tier if order.has_tier else None)
        if group.node is None or (group.node.lane, group.node.tier) != key:
            group.node = self._nodes.get(key) or self._nodes.setdefault(key, Node(*key))
        return group.node

    def _rest(self, group: Group) -> None:
        """It has nothing to offer."""
        if group.is_active and group.node is not None:
            group.node.deactivate(group)

    def _regroup(self, group: Group) -> None:
        was_active = group.is_active
        self._rest(group)
        group.forget_bests()
        if was_active:
            self._node_for(group).activate(group)

    def _entry(self, group: Group, cell: Cell, job: JobRef) -> Entry:
        tail = (job.submitted_at_ms, job.sequence, job.id, cell)
        match group.order.fixed:
            case (Criterion.FAIRNESS, Criterion.SCORE):
                return (self._accounts.cost(job.tenant, job.fairness_key), standing(job, group.flow), *tail)
            case (Criterion.SCORE, Criterion.FAIRNESS):
                return (standing(job, group.flow), self._accounts.cost(job.tenant, job.fairness_key), *tail)
            case (Criterion.FAIRNESS,):
                return (self._accounts.cost(job.tenant, job.fairness_key), *tail)
            case (Criterion.SCORE,):
                return (standing(job, group.flow), *tail)
            case _:
                return tail

    def _is_current(self, first: Tenancy, job: JobRef) -> bool:
        """Whether what it says of its first job is still so."""
        group = first.group
        if group.order.has_fairness and self._accounts.cost(job.tenant, job.fairness_key) != first.cost:
            return False
        has_locks = job.serial or group.kind.definition.conflict_group is not None
        return self._is_waiting_in(group, job) and not (has_locks and self._locks.held_of(job) is not None)

    def _choose(self, group: Group) -> Tenancy | None:
        top = group.choose(self._front, self._entry, self._appraise)
        if top is None:
            self._rest(group)
        return top

    def _scan(self, group: Group, now: int) -> Tenancy | None:
        """Compare the first jobs of all cells."""
        criteria = [each for each in group.order.rest if each is not Criterion.LANE and each is not Criterion.TIER]
        best: tuple[object, ...] | None = None
        first: Tenancy | None = None
        for cell in list(group.cells()):
            job = self._front(group, cell)
            if job is None:
                group.drop(cell)
                continue
            worth = (*(self._measures[each].value(job, now) for each in criteria), arrival(job))
            if best is None or worth < best:
                best = worth
                first = group.tenancy_of(cell)
                first.best = job
        if first is None:
            self._rest(group)
        else:
            self._appraise(first, _best_of(first))
        return first

    def _appraise(self, first: Tenancy, job: JobRef) -> None:
        first.cost = self._accounts.cost(job.tenant, job.fairness_key)
        first.standing = standing(job, first.flow)
        first.since_ms = job.submitted_at_ms

    def _front(self, group: Group, cell: Cell) -> JobRef | None:
        """The first of the cell that waits and that no lock holds back; those before it are dropped, or parked."""
        queued, is_growing = self._queued, group.flow == GROWING
        has_locks = group.kind.definition.conflict_group is not None
        while (job := cell.first) is not None:
            if queued.get(job.id) is not job or (is_growing and job.submitted_at_ms <= self._grown_through_ms):
                cell.drop()
                continue
            lock = self._locks.held_of(job) if has_locks or job.serial else None
            if lock is None:
                return job
            cell.drop()
            self._park(lock, (group, cell.key), job)
        return None

    def _is_waiting(self, job: JobRef) -> bool:
        return self._queued.get(job.id) is job

    def _is_waiting_in(self, group: Group, job: JobRef) -> bool:
        return self._is_waiting(job) and not self._has_grown(group, job)

    def _has_grown(self, group: Group, job: JobRef) -> bool:
        return group.flow == GROWING and job.submitted_at_ms <= self._grown_through_ms

    # Locks and time

    def _park(self, lock: Lock, origin: Origin, job: JobRef) -> None:
        self._parking.park(lock, origin, job, self._is_waiting_in)
        # Those behind it that wait for another of its locks need not wait for it.
        self.freed(other for other in self._locks.wanted(job) if other != lock)

    def _unpark(self) -> None:
        while self._freed:
            lock, _ = self._freed.popitem()
            if self._locks.is_held(lock):
                continue
            for (group, key), job in self._parking.take_first(lock, self._is_waiting_in):
                self._to_cell(group, key, job)

    def _advance(self, now: int) -> None:
        """On-demand jobs whose bonus has reached its maximum age like queued ones from then on."""
        if self._grown_after_ms is None:
            return
        self._grown_through_ms = max(self._grown_through_ms, now - self._grown_after_ms)
        while self._growing and self._growing[0][0] <= self._grown_through_ms:
            submitted_at_ms, job_id = heapq.heappop(self._growing)
            job = self._queued.get(job_id)
            if job is not None and job.submitted_at_ms == submitted_at_ms and job.mode == ON_DEMAND:
                self._put(self._group_for(job, self._kinds.of(job)), job)
                self.freed(self._locks.wanted(job))  # others of its old cell may have waited for it to go first

    def _tidy(self) -> None:
        """Forget the groups that nobody is in any more, and now and then the kinds."""
        if len(self._kinds) > self._kinds_max and len(self._queued) <= _GROUPS_MAX:
            self._begin_anew()
        parked = {group for (group, _), _ in self._parking.jobs()}
        for key, group in list(self._groups.items()):
            group.sweep(self._is_waiting)
            if group.is_empty and group not in parked:
                self._rest(group)
                del self._groups[key]
        used = {group.node for group in self._groups.values()}
        self._nodes = {key: node for key, node in self._nodes.items() if node in used}
        self._groups_max = max(_GROUPS_MAX, 2 * len(self._groups))
        self._kinds_max = max(_KINDS_MAX, 2 * len(self._kinds))

    def _begin_anew(self) -> None:
        """Kinds are bits in masks, which can only be given out again all together."""
        jobs = list(self._queued.values())
        for job in jobs:
            self.waits.ended(job)
        for table in (self._queued, self._groups, self._nodes, self._growing, self._freed):
            table.clear()
        self._parking.clear()
        self._tenant, self._has_tenants = None, False
        self._kinds.forget()
        for job in jobs:
            self.add(job)


def _place(job: JobRef) -> tuple[object, ...]:
    """All that says where a job belongs."""
    return (
        job.definition, job.target, job.tenant, job.lane, job.fairness_key, job.priority, job.mode, job.submitted_at_ms,
        job.sequence, job.serial, job.resources, job.schedule_created_at_ms,
    )  # fmt: skip


def _least(items: list[_Item], values: list[Any]) -> list[_Item]:
    least = min(values)
    return [item for item, value in zip(items, values, strict=True) if value == least]


def _best_of(first: Tenancy) -> JobRef:
    assert first.best is not None
    return first.best
