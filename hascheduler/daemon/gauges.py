"""The figures of the moment, put together from what the mirror and the core count anyway."""

from collections import Counter
from collections.abc import Mapping

from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.instants import WallMs


def waited_ms(core: Dispatcher, now: WallMs) -> Mapping[str, int]:
    """By lane, how long the job has waited that is due the longest."""
    return {lane: max(now - since_ms, 0) for lane, since_ms in core.oldest_waits().items()}


def schedules_by_state(mirror: Mirror) -> Mapping[str, int]:
    paused = mirror.live_counts.schedules_paused
    return {"active": len(mirror.nouns(Collection.SCHEDULES)) - paused, "paused": paused}


def processors_by_state(mirror: Mirror, core: Dispatcher) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """How many processors are live, draining or lost, and how many of the slots of the live ones are taken.

    A draining one has no free slots: it takes nothing new.
    """
    states: Counter[str] = Counter(live=0, draining=0, lost=0)
    slots: Counter[str] = Counter(occupied=0, free=0)
    for id, processor in mirror.nouns(Collection.PROCESSORS).items():
        occupied = core.occupied(id)
        slots["occupied"] += occupied
        if not core.is_live(id):
            states["lost"] += 1
        elif processor.draining:
            states["draining"] += 1
        else:
            states["live"] += 1
            slots["free"] += max(processor.slots - occupied, 0)
    return states, slots
