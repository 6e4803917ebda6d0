"""Processors, their slots and resources: which could take a job of a definition, and which should.

An inverted index leads from a definition to the `ProcessorProfile`s of processors that support it. Among those with a
free slot and the resources the most specialised goes first (fewest definitions; ``*`` counts as infinitely many), then
the least busy, then the smaller id: versatile processors stay free for the jobs that only they can take.

A processor that does not start its jobs rests: it gets no jobs for a while, longer each time, and then one at a time
until it starts one. Every replica sees this alike, by the jobs: the count of attempts that were not started grows,
or the job starts.

A job occupies its slot by id, even if its processor is not known (yet, or any more): releasing an unknown job is a
no-op, and a processor that comes back finds its slots as they are.
"""

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from hascheduler.model.processor import ANY_DEFINITION, ProcessorRef, Rest, supports
from hascheduler.model.resources import SLOTS, Resources
from hascheduler.model.values.instants import WallMs

RESTS_MS = (5_000, 10_000, 20_000, 40_000, 60_000)
"""How long a processor rests the first time, the next time, and so on; the last value repeats."""
_SWEEP_MIN = 64


class ProcessorProfile:
    """The processors that support the same definitions, and the order among them: the least busy first, then by id.

    The order is kept in a heap of (busy / slots, id), to which every change pushes; an outdated entry of a processor is
    skipped. Ratios are floats, and still exact: equal fractions divide to the same float, and others, of up to 10,000
    slots, are further apart than two floats. ``free`` is the number of their free slots.
    """

    __slots__ = ("_heap", "_ratios", "breadth", "definitions", "free", "takes_any")

    def __init__(self, definitions: frozenset[str]) -> None:
        self.definitions = definitions
        self.takes_any = ANY_DEFINITION in definitions
        self.breadth = float("inf") if self.takes_any else float(len(definitions))
        self.free = 0
        self._ratios: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def supports(self, definition: str) -> bool:
        return supports(self.definitions, definition)

    def offer(self, processor_id: str, busy: int, slots: int) -> None:
        """Record that the processor can take a job."""
        ratio = busy / slots
        if self._ratios.get(processor_id) != ratio:
            self._ratios[processor_id] = ratio
            heapq.heappush(self._heap, (ratio, processor_id))
            if len(self._heap) > _SWEEP_MIN and len(self._heap) > 2 * len(self._ratios):
                self._heap = [(ratio, id) for id, ratio in self._ratios.items()]
                heapq.heapify(self._heap)

    def withdraw(self, processor_id: str) -> None:
        """Record that the processor can take no job."""
        self._ratios.pop(processor_id, None)

    def first(self) -> tuple[float, str] | None:
        """Return the processor that should take the next job, and its ratio, or None."""
        heap = self._heap
        while heap:
            ratio, processor_id = heap[0]
            if self._ratios.get(processor_id) == ratio:
                return heap[0]
            heapq.heappop(heap)
        return None

    def in_order(self) -> list[tuple[float, str]]:
        return sorted((ratio, id) for id, ratio in self._ratios.items())


class SlotPool:
    """Owner of the processors and their slots.

    Three counts let readers see if something changed: ``arrivals`` (processors came, went or changed), ``changes``
    (which profiles have free slots) and ``relieved`` (a slot was freed, or a processor came).
    """

    def __init__(self) -> None:
        self._processors: dict[str, ProcessorRef] = {}
        self._lost: dict[str, int] = {}
        self._drained: set[str] = set()
        """Names whose processors get no jobs, because people drained them."""
        self._profiles: dict[frozenset[str], ProcessorProfile] = {}
        self._supporting: dict[str, list[ProcessorProfile]] = {}
        self._open: dict[ProcessorProfile, None] = {}
        self._free: dict[str, int] = {}
        self._free_for: dict[str, int] = {}
        self._free_for_any = 0
        self._busy: dict[str, dict[str, None]] = {}
        self._used: dict[str, Counter[str]] = {}
        self._places: dict[str, tuple[str, Resources]] = {}
        self.rests: dict[str, Rest] = {}
        """The rests of processors that have yet to start a job again."""
        self._now = WallMs(0)
        self.totals: Counter[str] = Counter()
        """How much the live processors have of each resource, slots included."""
        self.arrivals = 0
        self.changes = 0
        self.relieved = 0

    def advance(self, now: WallMs) -> None:
        """Let time pass: processors whose rest is over are tried again."""
        before, self._now = self._now, now
        for processor_id, rest in self.rests.items():
            if before < rest.until_ms <= now:
                self.relieved += 1
                self._recount(processor_id)

    def next_at(self) -> int | None:
        """Return when the next rest is over."""
        return min((rest.until_ms for rest in self.rests.values() if rest.until_ms > self._now), default=None)

    # Processors

    def seen(self, processor: ProcessorRef) -> None:
        """Take the processor's newest registration or heartbeat. A beat later than the lost one brings it back."""
        known = self._processors.get(processor.id)
        is_back = processor.id in self._lost and processor.beat > self._lost[processor.id]
        if known is not None and not is_back and _offers(known) == _offers(processor):
            self._processors[processor.id] = processor  # nearly always a mere heartbeat
            return
        if known is not None and known.draining and not processor.draining and processor.id in self.rests:
            # Whatever held it up, it announces that it takes jobs again.
            self.rest(processor.id, replace(self.rests[processor.id], until_ms=self._now))
        self._leave(processor.id)
        if is_back:
            del self._lost[processor.id]
        self._processors[processor.id] = processor
        self._enter(processor)

    def lost(self, processor_id: str, beat: int) -> None:
        """Mark the processor as lost, as its heartbeat stopped at ``beat``, unless a later one was seen."""
        known = self._processors.get(processor_id)
        if known is not None and known.beat <= beat:
            self._leave(processor_id)
            self._lost[processor_id] = beat

    def gone(self, processor_id: str) -> None:
        self._leave(processor_id)
        self._processors.pop(processor_id, None)
        self._lost.pop(processor_id, None)
        self.rests.pop(processor_id, None)

    # Rests

    def missed(self, processor_id: str) -> None:
        """Record that it did not start a job that it was given, unless it is draining or lost."""
        processor = self._processors.get(processor_id)
        if processor is None or processor_id in self._lost or self.is_draining(processor):
            return
        rest = self.rests.get(processor_id, Rest(0, 0, WallMs(0)))
        if rest.until_ms > self._now:
            self.rest(processor_id, replace(rest, missed=rest.missed + 1))  # given before the rest began
            return
        rest_ms = RESTS_MS[min(rest.count, len(RESTS_MS) - 1)]
        self.rest(processor_id, Rest(rest.missed + 1, rest.count + 1, WallMs(self._now + rest_ms)))

    def took_up(self, processor_id: str) -> None:
        """End its rest: it has started a job."""
        if self.rests.pop(processor_id, None) is not None:
            self.relieved += 1
            self._recount(processor_id)

    def rest(self, processor_id: str, rest: Rest) -> None:
        self.rests[processor_id] = rest
        self._recount(processor_id)

    def drain(self, name: str, *, is_drained: bool) -> None:
        """Stop giving jobs to the processors of that name, including future ones; or give them jobs again."""
        if is_drained == (name in self._drained):
            return
        members = [one for id, one in self._processors.items() if one.name == name and id in self._free]
        for processor in members:
            self._leave(processor.id)
        if is_drained:
            self._drained.add(name)
        else:
            self._drained.discard(name)
        for processor in members:
            self._enter(processor)

    def is_draining(self, processor: ProcessorRef) -> bool:
        """Return True if it gets no jobs, by its own announcement or because people drained it."""
        return processor.draining or processor.name in self._drained

    def is_live(self, processor_id: str) -> bool:
        return processor_id in self._processors and processor_id not in self._lost

    def is_known(self, processor_id: str) -> bool:
        return processor_id in self._processors

    def known(self) -> list[tuple[ProcessorRef, int | None]]:
        """Return all registered processors, by id; for lost ones with the beat at which they stopped."""
        return [(self._processors[id], self._lost.get(id)) for id in sorted(self._processors)]

    def live(self) -> list[ProcessorRef]:
        """Return the processors that are not lost, by id, including draining ones."""
        return [processor for processor, lost_at_beat in self.known() if lost_at_beat is None]

    # Slots

    def occupy(self, job_id: str, processor_id: str, needs: Resources) -> None:
        """Give the job a slot of that processor and ``needs`` of its resources; it gives up any other slot."""
        if self._places.get(job_id) == (processor_id, needs):
            return
        self.release(job_id)
        self._places[job_id] = (processor_id, needs)
        self._busy.setdefault(processor_id, {})[job_id] = None
        if needs:
            self._used.setdefault(processor_id, Counter()).update(dict(needs))
        rest = self.rests.get(processor_id)
        if rest is not None and rest.trial is None and rest.until_ms <= self._now:
            self.rests[processor_id] = replace(rest, trial=job_id)
        self._recount(processor_id)

    def processor_of(self, job_id: str) -> str | None:
        """Return the processor whose slot the job holds; None if it holds none."""
        place = self._places.get(job_id)
        return None if place is None else place[0]

    def release(self, job_id: str) -> None:
        place = self._places.pop(job_id, None)
        if place is None:
            return
        processor_id, needs = place
        busy = self._busy[processor_id]
        del busy[job_id]
        if not busy:
            del self._busy[processor_id]
        if needs:
            self._used[processor_id].subtract(dict(needs))
            if not any(self._used[processor_id].values()):
                del self._used[processor_id]
        rest = self.rests.get(processor_id)
        if rest is not None and rest.trial == job_id:
            self.rests[processor_id] = replace(rest, trial=None)
        self.relieved += 1
        self._recount(processor_id)

    def occupants(self, processor_id: str) -> list[str]:
        """Return the ids of the jobs that hold its slots, in order."""
        return sorted(self._busy.get(processor_id, ()))

    def left(self, processor: ProcessorRef) -> tuple[int, Resources]:
        """Return the free slots and resources of the processor."""
        used = self._used.get(processor.id, Counter())
        resources = tuple((name, amount - used[name]) for name, amount in processor.resources)
        return processor.slots - len(self._busy.get(processor.id, ())), resources

    # Choosing

    def choose(self, definition: str, needs: Resources) -> str | None:
        """Return the processor that should take the next job of ``definition``; None if all are busy or unable."""
        best: tuple[float, float, str] | None = None
        for profile in self.supporting(definition):
            if best is not None and profile.breadth > best[0]:
                break
            if profile.free:
                found = self._first_with(profile, needs) if needs else profile.first()
                if found is not None and (best is None or (profile.breadth, *found) < best):
                    best = (profile.breadth, *found)
        return best[2] if best else None

    def free(self, definition: str) -> int:
        """Return the number of free slots that a job of ``definition`` could take."""
        return self._free_for_any + self._free_for.get(definition, 0)

    def could_run(self, definition: str, needs: Resources) -> bool:
        """Return True if a live processor that is not draining could run it when idle.

        A processor that offers no slot now may offer some again: its process has them, and runs other jobs there.
        """
        for id, processor in self._processors.items():
            takes_jobs = id not in self._lost and not self.is_draining(processor)
            if takes_jobs and processor.supports(definition) and _has(processor, needs):
                return True
        return False

    def supporting(self, definition: str) -> list[ProcessorProfile]:
        """Return the profiles that support ``definition``, the most specialised first."""
        known = self._supporting.get(definition)
        if known is None:
            found = [profile for profile in self._profiles.values() if profile.supports(definition)]
            known = self._supporting[definition] = sorted(found, key=lambda profile: profile.breadth)
        return known

    def open(self) -> Iterable[ProcessorProfile]:
        """Return the profiles that have free slots."""
        return self._open

    def _first_with(self, profile: ProcessorProfile, needs: Resources) -> tuple[float, str] | None:
        for ratio, processor_id in profile.in_order():
            processor, used = self._processors[processor_id], self._used.get(processor_id, Counter())
            has = dict(processor.resources)
            if all(has.get(name, 0) - used[name] >= amount for name, amount in needs):
                return ratio, processor_id
        return None

    # Counting

    def _enter(self, processor: ProcessorRef) -> None:
        if processor.id in self._lost:
            return
        self.totals.update({SLOTS: processor.slots, **dict(processor.resources)})
        self.arrivals += 1
        if processor.definitions not in self._profiles:
            self._profiles[processor.definitions] = ProcessorProfile(processor.definitions)
            self._supporting.clear()
        self._free[processor.id] = 0
        self.relieved += 1
        self._recount(processor.id)

    def _leave(self, processor_id: str) -> None:
        """Remove the processor from all counts."""
        free = self._free.pop(processor_id, None)
        if free is None:
            return
        processor = self._processors[processor_id]
        self.totals.subtract({SLOTS: processor.slots, **dict(processor.resources)})
        self.arrivals += 1
        profile = self._profiles[processor.definitions]
        profile.withdraw(processor_id)
        members = [id for id in self._free if self._processors[id].definitions == processor.definitions]
        self._give(profile, -free)
        self.changes += 1
        if not members:
            del self._profiles[processor.definitions]
            self._supporting.clear()
            for definition in processor.definitions:
                if not self._free_for.get(definition, 0):
                    self._free_for.pop(definition, None)

    def _recount(self, processor_id: str) -> None:
        before = self._free.get(processor_id)
        if before is None:
            return
        processor = self._processors[processor_id]
        busy = len(self._busy.get(processor_id, ()))
        free = 0 if self.is_draining(processor) else max(processor.slots - busy, 0)
        rest = self.rests.get(processor_id)
        if rest is not None:
            free = min(free, 0 if rest.until_ms > self._now or rest.trial is not None else 1)
        self._free[processor_id] = free
        profile = self._profiles[processor.definitions]
        if free != before:
            self._give(profile, free - before)
        if free:
            profile.offer(processor_id, busy, processor.slots)
        else:
            profile.withdraw(processor_id)

    def _give(self, profile: ProcessorProfile, more: int) -> None:
        """Count ``more`` free slots of the profile (fewer, if negative)."""
        had_free = profile.free > 0
        profile.free += more
        if profile.takes_any:
            self._free_for_any += more
        else:
            for definition in profile.definitions:
                self._free_for[definition] = self._free_for.get(definition, 0) + more
        if had_free != (profile.free > 0):
            self.changes += 1
            if had_free:
                del self._open[profile]
            else:
                self._open[profile] = None


def _offers(processor: ProcessorRef) -> tuple[frozenset[str], int, bool, Resources]:
    return (processor.definitions, processor.slots, processor.draining, processor.resources)


def _has(processor: ProcessorRef, needs: Resources) -> bool:
    has = dict(processor.resources)
    return all(has.get(name, 0) >= amount for name, amount in needs)
