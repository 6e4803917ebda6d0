"""Processors and their slots: who could take a job of this definition, and who should.

An inverted index leads from a definition to its processors. Among those with a free slot the most specialised goes
first (fewest definitions; ``*`` counts as infinitely many), then the least busy, then the smaller id: versatile
processors stay free for the jobs that only they can take.

A job occupies its slot by id, whether or not its processor is known (yet, or any more): releasing an unknown job is a
no-op, and a processor that comes back finds its slots as they are.
"""

from collections import Counter
from fractions import Fraction

from hascheduler.model.processor import ANY_DEFINITION, ProcessorRef


class SlotPool:
    def __init__(self) -> None:
        self._processors: dict[str, ProcessorRef] = {}
        self._lost: dict[str, int] = {}
        self._by_definition: dict[str, set[str]] = {}
        self._busy: dict[str, set[str]] = {}
        self._places: dict[str, tuple[str, str]] = {}
        self._running: Counter[str] = Counter()

    # Processors

    def seen(self, processor: ProcessorRef) -> None:
        """The processor's newest registration or heartbeat. A beat later than the lost one brings it back."""
        known = self._processors.get(processor.id)
        if known is None or known.definitions != processor.definitions:
            self._unindex(known)
            for definition in processor.definitions:
                self._by_definition.setdefault(definition, set()).add(processor.id)
        self._processors[processor.id] = processor
        if processor.id in self._lost and processor.beat > self._lost[processor.id]:
            del self._lost[processor.id]

    def lost(self, processor_id: str, beat: int) -> None:
        """Its heartbeat stood still at ``beat``; news of a later one has precedence."""
        known = self._processors.get(processor_id)
        if known is not None and known.beat <= beat:
            self._lost[processor_id] = beat

    def gone(self, processor_id: str) -> None:
        self._unindex(self._processors.pop(processor_id, None))
        self._lost.pop(processor_id, None)

    def is_live(self, processor_id: str) -> bool:
        return processor_id in self._processors and processor_id not in self._lost

    # Slots

    def occupy(self, job_id: str, definition: str, processor_id: str) -> None:
        """The job holds a slot of that processor, and no other slot."""
        if self._places.get(job_id) == (processor_id, definition):
            return
        self.release(job_id)
        self._places[job_id] = (processor_id, definition)
        self._busy.setdefault(processor_id, set()).add(job_id)
        self._running[definition] += 1

    def holds(self, job_id: str) -> bool:
        """Whether the job holds a slot."""
        return job_id in self._places

    def release(self, job_id: str) -> None:
        place = self._places.pop(job_id, None)
        if place is None:
            return
        processor_id, definition = place
        busy = self._busy[processor_id]
        busy.discard(job_id)
        if not busy:
            del self._busy[processor_id]
        self._running[definition] -= 1
        if not self._running[definition]:
            del self._running[definition]

    def occupants(self, processor_id: str) -> list[str]:
        """The ids of the jobs that hold its slots, in order."""
        return sorted(self._busy.get(processor_id, ()))

    def running(self, definition: str) -> int:
        """How many jobs of the definition hold a slot."""
        return self._running[definition]

    def choose(self, definition: str) -> str | None:
        """The processor that should take the next job of ``definition``, or None when all are busy or unable."""
        best: tuple[float, Fraction, str] | None = None
        for wanted in (definition, ANY_DEFINITION):
            for processor_id in self._by_definition.get(wanted, ()):
                rank = self._rank(self._processors[processor_id])
                if rank is not None and (best is None or rank < best):
                    best = rank
        return best[2] if best else None

    def _rank(self, processor: ProcessorRef) -> tuple[float, Fraction, str] | None:
        busy = len(self._busy.get(processor.id, ()))
        if busy >= processor.slots or processor.draining or processor.id in self._lost:
            return None
        breadth = float("inf") if processor.takes_any else float(len(processor.definitions))
        return (breadth, Fraction(busy, processor.slots), processor.id)

    def _unindex(self, processor: ProcessorRef | None) -> None:
        if processor is None:
            return
        for definition in processor.definitions:
            members = self._by_definition[definition]
            members.discard(processor.id)
            if not members:
                del self._by_definition[definition]
