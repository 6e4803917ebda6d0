"""One lane, one kind, one flow (and one priority, where priorities age): its cells, and the one that goes first.

::

    Group ─► Tenancy     one tenant's cells, where the policy is fair
              └─► Cell   one of its fairness keys, one priority

Each tenancy has a heap with one entry per cell, the group one with an entry per tenancy, which says what the tenant has
consumed, too. An entry may be too good for what it stands for (its first job has left, its tenant or key has consumed
more since), never too bad: so when the entry at the top is what that is worth now, it is the first. That a tenant
is charged changes the place of its tenancy, and nothing within that: no key is looked at again.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.cells import SWEEP_MIN, Cell, CellKey
from hascheduler.dispatch.kinds import Kind
from hascheduler.dispatch.orders import Order
from hascheduler.dispatch.score import Flow
from hascheduler.model.job import JobRef

if TYPE_CHECKING:
    from hascheduler.dispatch.nodes import Node

Entry = tuple[object, ...]
_Front = Callable[["Group", Cell], JobRef | None]
_Worth = Callable[["Group", Cell, JobRef], Entry]
_Appraise = Callable[["Tenancy", JobRef], None]


class Tenancy:
    """What competes: the first job of one tenant (of all, where the policy can't tell them apart) in its group.

    ``best`` is that job, or None where it is not known, and ``worth`` the entry that it had. ``cost`` is what its key
    had consumed then, ``standing`` what its score makes of it among jobs of its flow, and ``since_ms`` when it was
    submitted. ``entry`` stands for it in the heap of its group, with ``tenant_cost`` in it.
    """

    __slots__ = (
        "best",
        "cost",
        "entry",
        "flow",
        "group",
        "heap",
        "kind",
        "since_ms",
        "standing",
        "step",
        "tenant",
        "tenant_cost",
        "worth",
    )

    def __init__(self, group: "Group", tenant: str | None) -> None:
        self.group = group
        self.tenant = tenant
        self.kind = group.kind
        self.flow = group.flow
        self.step = group.step
        self.heap: list[Entry] = []
        self.best: JobRef | None = None
        self.worth: Entry = ()
        self.entry: Entry = ()
        self.cost = 0
        self.tenant_cost = 0
        self.standing = 0
        self.since_ms = 0

    def __lt__(self, other: object) -> bool:
        return False  # the end of a tuple whose parts before it are the same: an old entry and its successor

    def forget_best(self) -> None:
        self.best = None
        self.group.top = None


class Group:
    """``top`` is the tenancy that goes first, or None where that is not known.

    ``step`` is the lane and the priority, where priorities age: what one rule ages. ``node`` is where the group
    competes.
    """

    __slots__ = (
        "_accounts",
        "_cells",
        "_full_at",
        "_heap",
        "_tenancies",
        "flow",
        "is_active",
        "kind",
        "lane",
        "node",
        "order",
        "step",
        "top",
    )

    def __init__(
        self,
        lane: str | None,
        kind: Kind,
        flow: Flow,
        step: tuple[str | None, int] | None,
        order: Order,
        *,
        accounts: FairAccounts,
    ) -> None:
        self.lane = lane
        self.kind = kind
        self.flow = flow
        self.step = step
        self.order = order
        self._accounts = accounts
        self._cells: dict[CellKey, Cell] = {}
        self._tenancies: dict[str | None, Tenancy] = {}
        self._heap: list[Entry] = []
        self._full_at = SWEEP_MIN
        self.top: Tenancy | None = None
        self.is_active = False
        self.node: Node | None = None

    def cells(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def cell_for(self, key: CellKey) -> Cell:
        known = self._cells.get(key)
        if known is None:
            known = self._cells[key] = Cell(key)
        return known

    def tenancy_of(self, cell: Cell) -> Tenancy:
        tenant = None if self.order.shares is None else cell.key[0]
        known = self._tenancies.get(tenant)
        if known is None:
            if len(self._tenancies) == 1:
                for other in self._tenancies.values():
                    self._offer(other, other.heap[0])  # it had no rival before, and so no entry
            known = self._tenancies[tenant] = Tenancy(self, tenant)
        return known

    @property
    def is_shared(self) -> bool:
        """Whether several tenants may have jobs here that could go."""
        return len(self._tenancies) > 1

    @property
    def is_full(self) -> bool:
        """Whether it is time to `sweep`."""
        return len(self._cells) >= self._full_at

    @property
    def is_empty(self) -> bool:
        return not self._cells

    def sweep(self, is_waiting: Callable[[JobRef], bool]) -> None:
        """Drop the cells in which nobody waits any more."""
        for cell in list(self._cells.values()):
            if not cell.sweep(is_waiting):
                del self._cells[cell.key]
        self._tenancies.clear()
        self._heap.clear()
        self.top = None
        for cell in self._cells.values():
            if cell.entry:
                self._enter(cell)
        self._full_at = max(SWEEP_MIN, 2 * len(self._cells))

    def push(self, cell: Cell, entry: Entry) -> None:
        """The cell has a new first job."""
        cell.entry = entry
        self._enter(cell)

    def forget_bests(self) -> None:
        for tenancy in self._tenancies.values():
            tenancy.forget_best()

    def choose(self, front: _Front, entry: _Worth, appraise: _Appraise) -> Tenancy | None:
        """Work out the top; ``front`` gives a cell's first job, None where it has none that may go."""
        heap = self._heap
        while len(self._tenancies) > 1:
            top = heap[0]
            tenancy: Tenancy = top[-1]  # type: ignore[assignment]  # every entry ends in its tenancy
            if top is not tenancy.entry:
                heapq.heappop(heap)
                continue
            if tenancy.best is None and not self._refresh(tenancy, front, entry, appraise):
                continue
            tenancy.tenant_cost = self._accounts.tenant_cost(tenancy.tenant)
            now_worth = self._among_tenants(tenancy, tenancy.worth)
            if now_worth == top:
                self.top = tenancy
                return tenancy
            tenancy.entry = now_worth
            heapq.heapreplace(heap, now_worth)
        for only in list(self._tenancies.values()):
            if only.best is not None or self._refresh(only, front, entry, appraise):
                only.tenant_cost = self._accounts.tenant_cost(only.tenant)
                self.top = only
                return only
        self.top = None
        return None

    def drop(self, cell: Cell) -> None:
        """It has no job that may go."""
        del self._cells[cell.key]

    def _refresh(self, tenancy: Tenancy, front: _Front, entry: _Worth, appraise: _Appraise) -> bool:
        """Work out its first job anew; one that has none is gone."""
        heap = tenancy.heap
        while heap:
            top = heap[0]
            cell: Cell = top[-1]  # type: ignore[assignment]  # every entry ends in its cell
            if top is not cell.entry:
                heapq.heappop(heap)
                continue
            job = front(self, cell)
            if job is None:
                heapq.heappop(heap)
                del self._cells[cell.key]
                continue
            now_worth = entry(self, cell, job)
            if now_worth == top:
                tenancy.best = job
                tenancy.worth = now_worth
                appraise(tenancy, job)
                return True
            cell.entry = now_worth
            heapq.heapreplace(heap, now_worth)
        tenancy.entry = ()
        del self._tenancies[tenancy.tenant]
        if not self.is_shared:
            self._heap.clear()
            for only in self._tenancies.values():
                only.entry = ()
        return False

    def _enter(self, cell: Cell) -> None:
        """What stands for the cell has changed, or is new."""
        tenancy = self.tenancy_of(cell)
        tenancy.forget_best()
        if self.order.is_fixed:
            heapq.heappush(tenancy.heap, cell.entry)
            if self.is_shared:
                self._offer(tenancy, cell.entry)

    def _offer(self, tenancy: Tenancy, worth: Entry) -> None:
        """It is worth no less than that."""
        tenancy.tenant_cost = self._accounts.tenant_cost(tenancy.tenant)
        entry = self._among_tenants(tenancy, worth)
        if not tenancy.entry or entry < tenancy.entry:
            tenancy.entry = entry
            heapq.heappush(self._heap, entry)

    def _among_tenants(self, tenancy: Tenancy, worth: Entry) -> Entry:
        at = self.order.shares or 0
        return (*worth[:at], tenancy.tenant_cost, *worth[at:-1], tenancy)
