"""When jobs begin that share slots: first come, first served, in steps of a minute.

A job takes a slot for its cost. Of its first minute it takes no more than it needs, so one slot runs several short jobs
in a minute; whatever is left of a minute is not tied to a slot. A job that does not fit into what is left of this
minute waits for the next, and all behind it wait too.

More slots never let any job begin later. For suppose that minute m is the first by whose end fewer jobs have begun with
more slots. Then a job waits there, so its minute is full; but all jobs before it began no later than with fewer slots,
and a job takes the less of a minute the earlier it began. So they take no more of minute m than with fewer slots, where
that job had room beside them.
"""

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

STEP_MS = 60_000
_SLICE = 100


class AlikeJobs(NamedTuple):
    """``jobs`` of ``cost_ms`` each."""

    jobs: int
    cost_ms: int


AlikeJobsByStep = Mapping[int, Sequence[AlikeJobs]]
"""By step, in the order in which they are served."""


@dataclass(slots=True)
class Service:
    """What became of the jobs that arrived, by step.

    ``began`` are the batches that began, ``waiting`` the jobs that had not by its end. ``wanted`` are the slots with
    which nothing would have waited, ``jobs`` those that held a slot before, waited or arrived. ``waits`` are, by the
    step of arrival, in how many steps the last of them began; what waits at the end is taken to begin then.
    """

    slots: int
    began: dict[int, list[AlikeJobs]] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)
    waits: dict[int, int] = field(default_factory=dict)


class _HeldSlots:
    """The slots that are held in the steps to come."""

    def __init__(self) -> None:
        self.whole = 0
        """Jobs that take all of the present step."""
        self._ends: dict[int, int] = {}
        self._parts_ms: dict[int, int] = {}
        self._parts: dict[int, int] = {}

    def begin(self, step: int, count: int, cost_ms: int) -> None:
        """``count`` jobs begin in ``step``, whose own part of the first minute is counted elsewhere."""
        steps, part_ms = divmod(cost_ms, STEP_MS)
        if steps:
            self.whole += count
            self._ends[step + steps] = self._ends.get(step + steps, 0) + count
            if part_ms:
                self._end_within(step + steps, count, part_ms)

    def go_on(self, count: int, left_ms: int) -> None:
        """``count`` jobs run before the first step, and have ``left_ms`` to go."""
        if left_ms < STEP_MS:
            self._end_within(0, count, left_ms)
        else:
            self.begin(0, count, left_ms)

    def take(self, step: int) -> tuple[int, int]:
        """The ms of ``step`` that are held by what began before, and by how many jobs."""
        self.whole -= self._ends.pop(step, 0)
        return self.whole * STEP_MS + self._parts_ms.pop(step, 0), self.whole + self._parts.pop(step, 0)

    def _end_within(self, step: int, count: int, part_ms: int) -> None:
        self._parts_ms[step] = self._parts_ms.get(step, 0) + count * part_ms
        self._parts[step] = self._parts.get(step, 0) + count


def serve(
    arriving: AlikeJobsByStep, slots: int, steps: int, running: Iterable[AlikeJobs] = ()
) -> Generator[None, None, Service]:
    """What ``slots`` make of what arrives in ``steps`` steps; it yields now and then, and returns a `Service`.

    ``running`` hold slots at the beginning, with the cost that each has left. Costs are positive.
    """
    service, held = Service(slots), _HeldSlots()
    for count, left_ms in running:
        held.go_on(count, left_ms)
    queue: deque[tuple[int, AlikeJobs]] = deque()
    waiting, queued_ms = 0, 0
    for step in range(steps):
        if step % _SLICE == _SLICE - 1:
            yield
        held_ms, held_jobs = held.take(step)
        for batch in arriving.get(step, ()):
            queue.append((step, batch))
            waiting += batch.jobs
            queued_ms += batch.jobs * min(batch.cost_ms, STEP_MS)
        service.wanted.append(-(-(held_ms + queued_ms) // STEP_MS))
        service.jobs.append(held_jobs + waiting)
        left_ms = slots * STEP_MS - held_ms
        while queue:
            came, (count, cost_ms) = queue[0]
            first_ms = min(cost_ms, STEP_MS)
            beginning = min(count, left_ms // first_ms)
            if beginning <= 0:
                break
            held.begin(step, beginning, cost_ms)
            service.began.setdefault(step, []).append(AlikeJobs(beginning, cost_ms))
            service.waits[came] = step - came
            waiting -= beginning
            queued_ms -= beginning * first_ms
            left_ms -= beginning * first_ms
            if beginning < count:
                queue[0] = (came, AlikeJobs(count - beginning, cost_ms))
                break
            queue.popleft()
        service.waiting.append(waiting)
    for came, _ in queue:
        service.waits[came] = steps - came
    return service


@dataclass(frozen=True, slots=True)
class Congestion:
    """From the step ``first`` through ``last`` jobs wait at the end of each; the most (``jobs``) are there in
    ``worst``. ``is_over``: not all steps through the last one of all."""

    first: int
    last: int
    worst: int
    jobs: int
    waiting: int
    is_over: bool


def congestions(service: Service) -> list[Congestion]:
    """The times in which jobs wait, in order."""
    found: list[Congestion] = []
    first = -1
    steps = len(service.waiting)
    for step in range(steps + 1):
        waits = step < steps and service.waiting[step] > 0
        if waits and first < 0:
            first = step
        elif not waits and first >= 0:
            worst = first
            for each in range(first, step):
                if service.waiting[each] > service.waiting[worst]:
                    worst = each
            found.append(
                Congestion(first, step - 1, worst, service.jobs[worst], service.waiting[worst], is_over=step < steps)
            )
            first = -1
    return found
