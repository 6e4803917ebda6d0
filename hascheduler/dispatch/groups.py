"""One lane, one kind, one flow (and one priority, where priorities age): its cells, and the one that goes first.

The heap holds one entry per cell. An entry may be too good for its cell (its first job has left, its key has consumed
more since), never too bad: so when the entry at the top is what its cell is worth now, that cell is the first.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hascheduler.dispatch.cells import SWEEP_MIN, Cell
from hascheduler.dispatch.kinds import Kind
from hascheduler.dispatch.orders import Order
from hascheduler.dispatch.score import Flow
from hascheduler.model.job import JobRef

if TYPE_CHECKING:
    from hascheduler.dispatch.nodes import Node

Entry = tuple[object, ...]


class Group:
    """``best`` is the first job, or None where that is not known.

    ``cost`` is what its key had consumed then, ``standing`` what its score makes of it among jobs of its flow, and
    ``since_ms`` when it was submitted. ``step`` is the lane and the priority, where priorities age: what one rule ages.
    ``node`` is where the group competes.
    """

    __slots__ = (
        "_cells",
        "_full_at",
        "_heap",
        "best",
        "cost",
        "flow",
        "is_active",
        "kind",
        "lane",
        "node",
        "order",
        "since_ms",
        "standing",
        "step",
    )

    def __init__(
        self, lane: str | None, kind: Kind, flow: Flow, step: tuple[str | None, int] | None, order: Order
    ) -> None:
        self.lane = lane
        self.kind = kind
        self.flow = flow
        self.step = step
        self.order = order
        self._cells: dict[tuple[str | None, int], Cell] = {}
        self._heap: list[Entry] = []
        self._full_at = SWEEP_MIN
        self.best: JobRef | None = None
        self.cost = 0
        self.standing = 0
        self.since_ms = 0
        self.is_active = False
        self.node: Node | None = None

    def cells(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def cell_for(self, key: tuple[str | None, int]) -> Cell:
        known = self._cells.get(key)
        if known is None:
            known = self._cells[key] = Cell(key)
        return known

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
        self._heap = [cell.entry for cell in self._cells.values() if cell.entry]
        heapq.heapify(self._heap)
        self._full_at = max(SWEEP_MIN, 2 * len(self._cells))
        self.best = None

    def push(self, cell: Cell, entry: Entry) -> None:
        """The cell has a new first job."""
        cell.entry = entry
        heapq.heappush(self._heap, entry)
        self.best = None

    def refresh(
        self, front: Callable[["Group", Cell], JobRef | None], entry: Callable[["Group", Cell, JobRef], Entry]
    ) -> JobRef | None:
        """Work out the first job anew; ``front`` gives a cell's first, None where it has none that may go."""
        heap = self._heap
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
                self.best = job
                return job
            cell.entry = now_worth
            heapq.heapreplace(heap, now_worth)
        self.best = None
        return None

    def drop(self, cell: Cell) -> None:
        """It has no job that may go."""
        del self._cells[cell.key]
